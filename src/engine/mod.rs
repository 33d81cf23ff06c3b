//! The users' handle to an engine, in which many threads schedule timers, a ticker
//! moves time forward, and workers take expired timers from queues.

// In this order on the page of `Engine`.
mod schedule;

mod awaited;
mod cancel;
mod census;
pub(crate) mod doing;
pub(crate) mod expire;
pub(crate) mod hub;
mod lent;
pub(crate) mod shutdown;
mod step_aside;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests;
mod waiters;
mod walks;
pub(crate) mod workers;

pub use schedule::Unstarted;

pub(crate) use awaited::{Registered, Seen};
pub(crate) use census::WorkerState;
pub(crate) use hub::{Bell, Core, ShardCell, SharedCore, Sink, TAKES_PER_HOLD};

// Not the `Arc` of `crate::sync`: that of a model has no weak references.
use std::sync::Arc as StdArc;
use std::time::Instant;

use crate::sync::Arc;
use crate::tick::Tick;
use crate::timeline::Time;

use hub::Held;

/// A timer engine for many threads.
///
/// Clones of a handle share one engine; a [`WeakEngine`](crate::WeakEngine) does not keep it alive. Dropping
/// the last clone shuts the engine down without waiting for any thread; its queues then
/// return [`RecvError::ShutDown`](crate::RecvError::ShutDown). To get the live timers
/// back, call [`shutdown`](Engine::shutdown) or [`drain`](Engine::drain). Each of these makes a
/// list of the live timers, with some 80 bytes and the payload for each.
///
/// # Cost
/// Scheduling, cancelling and rescheduling each take one short lock, that of
/// the timer's shard; a timer that is due before all others also sets the system's timer. A new
/// timer goes to the calling thread's own shard, or to that of its [name](crate::Timer::named).
/// They allocate only when the storage of a shard grows, and to schedule a named timer. The clock
/// is read only for a delay, not for a [`Time`], and for a report.
///
/// # The end of the process
/// A process that ends because `main` returns or calls `exit` does not wait
/// for any engine. Timers no longer fire, and running tasks are cut off. If
/// the last handle is dropped before that, the payloads are dropped
/// unfired; a handle in a `static` is never dropped. To fire timers that
/// are due soon, call [`drain`](Engine::drain) first. To get live timers
/// back, call [`shutdown`](Engine::shutdown). To wait for tasks, call
/// [`TaskEngine::join`](crate::TaskEngine::join).
///
/// # Fork
/// The child of a fork has no ticker and no workers: build engines after forking. Don't
/// use a parent's engine in the child, and don't drop it there.
///
/// # Example
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Timer};
///
/// let engine = Engine::builder().queues(2).start()?;
/// let id = engine.schedule(Timer::after(Duration::from_secs(30), "session 7"))?;
/// engine.schedule(Timer::every(Duration::from_millis(2), "beat").times(3).queue(1))?;
///
/// for _ in 0..3 {
///     assert_eq!(*engine.queue(1).recv()?.payload(), "beat");
/// }
/// assert_eq!(engine.cancel(id).into_payload(), Some("session 7"));
/// assert!(engine.ledger().is_balanced());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine<T> {
    /// The core of `handle`, without the indirection.
    core: Arc<Core<T>>,
    handle: StdArc<Handle<T>>,
}

/// Shuts the engine down when the last clone is dropped.
pub(crate) struct Handle<T> {
    shared: Arc<SharedCore<T>>,
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        drop(self.shared.shut_down());
    }
}

impl<T> Engine<T> {
    pub(crate) fn of(handle: StdArc<Handle<T>>) -> Engine<T> {
        let core = Arc::clone(handle.shared.core());
        Engine { core, handle }
    }

    pub(crate) fn handle(&self) -> &StdArc<Handle<T>> {
        &self.handle
    }

    pub(crate) fn new(shared: Arc<SharedCore<T>>) -> Engine<T> {
        Engine::of(StdArc::new(Handle { shared }))
    }

    #[inline]
    pub(crate) fn core(&self) -> &Arc<Core<T>> {
        &self.core
    }

    pub(crate) fn shared(&self) -> Arc<SharedCore<T>> {
        Arc::clone(&self.handle.shared)
    }

    /// Returns the engine's name; see [`Builder::name`](crate::Builder::name).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Returns the current time of the engine's clock.
    #[must_use]
    pub fn now(&self) -> Time {
        self.core.clock.now()
    }

    /// Returns the current tick: the last one that has begun.
    #[must_use]
    pub fn current_tick(&self) -> Tick {
        self.core.tick_now()
    }

    /// Converts an `Instant` to the engine's own time, rounded up; an instant
    /// before the start becomes the start. Returns `None` unless the engine runs
    /// on the monotonic clock.
    ///
    /// [`Timer::at`](crate::Timer::at) and [`reschedule`](Engine::reschedule) take an `Instant` as it is.
    #[must_use]
    pub fn time_of(&self, instant: Instant) -> Option<Time> {
        self.core.clock.time_of(instant)
    }

    /// Converts a time of the engine to an `Instant`, rounded up. Returns `None` for
    /// [`Time::MAX`], which never comes, for a time beyond the range of `Instant`, and
    /// unless the engine runs on the monotonic clock.
    ///
    /// The way there and back is exact to the duration of two readings of the clock:
    /// `time_of(instant_of(time))` is `time` or a moment later, and never earlier.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use tickwheel::{Engine, Timer};
    ///
    /// let engine = Engine::builder().start()?;
    /// let id = engine.schedule(Timer::after(Duration::from_secs(30), "lease"))?;
    /// let ends = engine.deadline(id).and_then(|time| engine.instant_of(time)).unwrap();
    /// assert!(ends > Instant::now() + Duration::from_secs(20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn instant_of(&self, time: Time) -> Option<Instant> {
        self.core.clock.instant_of(time)
    }
}

impl<T> Clone for Engine<T> {
    fn clone(&self) -> Engine<T> {
        Engine::of(StdArc::clone(&self.handle))
    }
}

debug!(it: [T] Engine<T> => "Engine" {
    name: it.core.name, queues: it.core.queues(), shards: it.core.shard_count(), now: it.now(),
    sleeps_on: it.core.alarm.device()
});
