//! The users' handle to an engine, in which many threads schedule timers, a ticker
//! moves time forward, and workers take expired timers from queues.

mod builder;
mod cancel;
mod inspect;
mod live_timers;
mod named_timers;
mod start_error;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests;
mod unstarted;
mod weak;

pub use builder::{Builder, Family};
pub use live_timers::LiveTimers;
pub use named_timers::NamedTimers;
pub use start_error::StartError;
pub use unstarted::Unstarted;
pub use weak::WeakEngine;

pub(crate) use builder::{Sealed, check_workers};

use core::fmt;
use std::time::{Duration, Instant};

use crate::hub::{Core, SharedCore};
use crate::id::TimerId;
use crate::observe;
use crate::queue::{Queue, Reports};
use crate::stats::{Ledger, Snapshot};
use crate::sync::{Arc, CountedArc};
use crate::tick::Tick;
use crate::timeline::{Time, When};
use crate::timer::{Cancel, Closed, Refusal, Refused, Timer};

/// A timer engine for many threads.
///
/// Clones of a handle share one engine; a [`WeakEngine`] does not keep it alive. Dropping
/// the last clone shuts the engine down without waiting for any thread; its queues then
/// return [`RecvError::ShutDown`](crate::RecvError::ShutDown). To get the live timers
/// back, call [`shutdown`](Engine::shutdown) or [`drain`](Engine::drain).
///
/// # Cost
/// Scheduling, cancelling and rescheduling each take one short lock, that of
/// the timer's shard; a new timer goes to the calling thread's own shard. They
/// allocate only when more timers are live than ever before. Scheduling a
/// [named](Timer::named) timer also allocates, and takes a lock that several
/// names share. The clock is read only for a delay, not for a [`Time`].
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
    handle: CountedArc<Handle<T>>,
}

/// Shuts the engine down when the last clone is dropped.
struct Handle<T> {
    shared: Arc<SharedCore<T>>,
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        drop(self.shared.shut_down());
    }
}

impl<T> Engine<T> {
    fn new(shared: Arc<SharedCore<T>>) -> Engine<T> {
        Engine {
            core: Arc::clone(shared.core()),
            handle: CountedArc::new(Handle { shared }),
        }
    }

    #[inline]
    pub(crate) fn core(&self) -> &Arc<Core<T>> {
        &self.core
    }

    fn shared(&self) -> Arc<SharedCore<T>> {
        Arc::clone(&self.handle.shared)
    }

    /// Schedules a timer, and returns its id. The id is a plain value: dropping it
    /// cancels nothing.
    ///
    /// Any thread may call this, even within a task. The timer never fires early,
    /// because this call reads the clock and rounds the deadline up to a tick.
    ///
    /// # Errors
    /// Returns the timer unchanged, with a [`Refusal`](crate::Refusal).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let id = engine.schedule(Timer::after(Duration::from_secs(5), 17))?;
    /// assert!(engine.deadline(id).is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline(always)]
    pub fn schedule(&self, timer: Timer<T>) -> Result<TimerId, Refused<Timer<T>>> {
        self.core.schedule(timer)
    }

    /// Cancels a timer.
    ///
    /// Succeeds until a worker takes the timer, even if the timer has
    /// expired and is waiting in a queue. Returns the payload in
    /// [`Cancel::Cancelled`], and no worker receives it. The storage is
    /// free when the call returns. A [`notified`](Timer::notified) task
    /// keeps its payload; the answer is then [`Cancel::Notified`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Cancel, Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let id = engine.schedule(Timer::after(Duration::ZERO, 17))?;
    /// assert_eq!(engine.cancel(id), Cancel::Cancelled(17));
    /// assert_eq!(engine.cancel(id), Cancel::Gone);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn cancel(&self, id: TimerId) -> Cancel<T> {
        self.core.cancel(id)
    }

    /// Creates a timer that is started later, or never. It can be cancelled by
    /// its id and by its name. It counts against [`Builder::max_timers`] from
    /// now on, and enters the ledger when it is started. Its payload can
    /// [contain its id](crate::guide#put-an-id-into-its-payload).
    ///
    /// # Errors
    /// Fails as [`schedule`](Engine::schedule) does.
    pub fn create(&self, timer: Timer<T>) -> Result<Unstarted<T>, Refused<Timer<T>>> {
        let id = self.core.create(timer)?;
        Ok(Unstarted::new(self.shared(), id))
    }

    /// Moves a live timer to another deadline: a [`Duration`] from now, a
    /// [`Time`], or an [`Instant`]. A repeating timer continues from there. An
    /// expired timer that no worker has taken waits again. Postponing does not
    /// touch any list.
    ///
    /// Among the timers of its new tick, a rescheduled timer keeps the
    /// place of its first scheduling.
    ///
    /// # Reusable timers
    /// A timer at [`Time::MAX`] never fires: it is disarmed. It stays live, with its id
    /// and its payload, until it is cancelled or the engine is shut down. A connection
    /// therefore needs one timer, which it arms for each request and disarms after it.
    /// Disarming stores to the timer and touches no list, and so does arming it again for
    /// a deadline that is not before its last one. The ticker may wake once per delay for
    /// a timer that is disarmed by then. A timer is [paused](crate::guide#pause-a-timer)
    /// in the same manner.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use tickwheel::{Engine, Time, Timer};
    ///
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// let request = engine.schedule(Timer::at(Time::MAX, "connection 7"))?;
    /// for _ in 0..3 {
    ///     engine.reschedule(request, Duration::from_secs(30))?; // arm
    ///     clock.advance(Duration::from_secs(20));
    ///     engine.reschedule(request, Time::MAX)?; // disarm
    /// }
    /// assert!(engine.queue(0).try_recv().is_err());
    /// engine.reschedule(request, Duration::from_secs(30))?;
    /// clock.advance(Duration::from_secs(30));
    /// assert_eq!(engine.queue(0).recv()?.into_payload(), "connection 7");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Refusal`] if the timer is not live, or a worker holds a firing
    /// of it; the holder can [re-arm](crate::Expired::rearm) the timer. Also if `when`
    /// is an instant and the engine does not follow the monotonic clock
    /// ([`Refusal::InstantOnOtherClock`]).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let keep_alive = engine.schedule(Timer::after(Duration::from_secs(30), "session"))?;
    /// engine.reschedule(keep_alive, Duration::from_secs(30))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "arm")]
    #[doc(alias = "disarm")]
    #[doc(alias = "pause")]
    #[doc(alias = "reset")]
    #[doc(alias = "resume")]
    #[inline(always)]
    pub fn reschedule(&self, id: TimerId, when: impl Into<When>) -> Result<(), Refusal> {
        self.core.reschedule(id, when.into())
    }

    /// Replaces a timer's payload and returns the old one.
    ///
    /// # Errors
    /// Returns `payload`, with the reason, if the timer is not live or a worker
    /// holds a firing of it.
    pub fn replace(&self, id: TimerId, payload: T) -> Result<T, Refused<T>> {
        self.core.replace(id, payload)
    }

    /// Returns a live timer's next deadline, or the last one if the timer
    /// is running or waiting to be taken. Returns `None` if it is not live.
    #[must_use]
    pub fn deadline(&self, id: TimerId) -> Option<Time> {
        let tick = self.core.deadline(id)?;
        Some(self.core.tick.start_of(tick))
    }

    /// Returns the exact earliest deadline of all unexpired timers, or `None` if
    /// no timer can ever expire. A repeating timer has no deadline while a firing
    /// of it waits in its queue or is held by a worker.
    ///
    /// Exact if no other call schedules or moves timers meanwhile. A loop that
    /// computes the time to sleep should use the cheaper
    /// [`Driver::next_wakeup`](crate::Driver::next_wakeup).
    ///
    /// # Cost
    /// Searches at most a few hundred entries of each shard. If very many
    /// timers share a slot, walks through that shard, a bounded part per
    /// hold of its lock.
    ///
    /// ```
    /// use tickwheel::{Engine, Time, Timer};
    ///
    /// // A simulation: from one event to the next.
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// engine.schedule(Timer::at(Time::from_millis(350), "arrival"))?;
    /// engine.schedule(Timer::at(Time::from_secs(3_600), "closing time"))?;
    /// let mut events = Vec::new();
    /// while let Some(time) = engine.earliest_deadline() {
    ///     clock.advance_to(time);
    ///     let due = engine.queue(0).recv()?;
    ///     events.push((time, due.into_payload()));
    /// }
    /// assert_eq!(events[0], (Time::from_millis(350), "arrival"));
    /// assert_eq!(events[1], (Time::from_secs(3_600), "closing time"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn earliest_deadline(&self) -> Option<Time> {
        self.core.earliest_deadline()
    }

    /// Returns the engine's name; see [`Builder::name`].
    #[must_use]
    pub fn name(&self) -> &str {
        self.core.name.as_str()
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
    /// [`Timer::at`] and [`reschedule`](Engine::reschedule) take an `Instant` as it is.
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

    /// Returns a handle to a worker queue.
    ///
    /// # Panics
    /// Panics if there is no queue with that number; see
    /// [`get_queue`](Engine::get_queue).
    #[must_use]
    pub fn queue(&self, index: usize) -> Queue<T> {
        match self.get_queue(index) {
            Some(queue) => queue,
            None => panic!("no queue {index}: this engine has {}", self.core.queues()),
        }
    }

    /// Returns a handle to a worker queue, or `None` if there is no queue
    /// with that number.
    #[must_use]
    pub fn get_queue(&self, index: usize) -> Option<Queue<T>> {
        (index < self.core.queues()).then(|| Queue::new(self.shared(), index))
    }

    /// Returns a reader for the reports on ended timers that were scheduled with
    /// [`Timer::reported`].
    #[must_use]
    pub fn reports(&self) -> Reports<T> {
        Reports::new(self.shared())
    }

    /// Returns the account of all timers. It is exact only while no other call is
    /// running. Prefer [`snapshot`](Engine::snapshot) for monitoring.
    ///
    /// # Cost
    /// Locks each shard once, whatever the number of timers.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.core.ledger()
    }

    /// Returns all counts, for monitoring: ledger, queue depths, lateness, work,
    /// wake-ups, panics.
    ///
    /// # Cost
    /// Locks each shard once, whatever the number of timers.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.core.snapshot()
    }

    /// Gives back memory that live timers do not need. The engine never
    /// does so by itself. Call this after a peak, or now and then if peaks
    /// move from thread to thread.
    ///
    /// A shard that a [`LiveTimers`] is walking through, or whose engine is
    /// being drained, gives back only the memory behind its last timer. If
    /// other threads schedule meanwhile, some memory may remain. In both cases,
    /// a later call gives back more. Records of repeating, named, reported and
    /// task timers are given back when a shard has none of them left. An engine
    /// that was shut down keeps its memory until it is dropped.
    ///
    /// # Cost
    /// Grows with the largest number of timers live since the last call. A hold
    /// of a shard's lock touches at most a few hundred entries, or the list
    /// heads of the levels if these have to move. A timer that was moved takes
    /// some twenty bytes more from then on, and needs a lookup in a sorted map
    /// when it ends. Timers that fire together may have to be sorted first.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let schedule = |n| engine.schedule(Timer::after(Duration::from_secs(9), n));
    /// let ids = (0..1_000).map(schedule).collect::<Result<Vec<_>, _>>()?;
    /// ids[..999].iter().for_each(|&id| _ = engine.cancel(id));
    /// engine.shrink();
    /// assert_eq!(engine.cancel(ids[999]).into_payload(), Some(999));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shrink(&self) {
        self.core.shrink();
    }

    /// Stops at once, and returns every live timer exactly once, whether it
    /// was waiting for its deadline or for a worker. A repeating timer
    /// whose payload a worker holds is returned without it. A timer whose
    /// last firing is running, or that was cancelled during a firing, ends
    /// by itself and is not returned. A running chain is returned only if its
    /// holder has [re-armed](crate::Firing::rearm) it by now; a later attempt
    /// is refused ([`Refusal::ShutDown`]).
    ///
    /// Does not wait for any thread. New timers are refused from the beginning
    /// of the call. The call then collects the live timers, a bounded part per
    /// hold of a shard's lock. Other threads may cancel and take timers
    /// meanwhile; each timer goes to one of them or is returned. At the end,
    /// the queues return [`RecvError::ShutDown`](crate::RecvError::ShutDown).
    /// After that, the descriptor of a [`Driver`](crate::Driver) becomes
    /// readable and stays readable.
    pub fn shutdown(&self) -> Vec<Closed<T>> {
        self.core.shut_down()
    }

    /// Returns whether the engine was shut down: by
    /// [`shutdown`](Engine::shutdown), at the end of a
    /// [`drain`](Engine::drain), or because its last handle was dropped.
    /// Such an engine refuses timers, and its timers no longer expire.
    ///
    /// Returns `false` during a shutdown and during a drain, although the engine
    /// then refuses timers.
    ///
    /// ```
    /// use tickwheel::Engine;
    ///
    /// let engine = Engine::<()>::builder().start()?;
    /// assert!(!engine.is_shut_down());
    /// engine.shutdown();
    /// assert!(engine.is_shut_down() && engine.queue(0).is_shut_down());
    /// # Ok::<(), tickwheel::StartError>(())
    /// ```
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.core.is_shut_down()
    }

    /// Refuses new timers, blocks until workers have taken the one-shots due
    /// within `limit`, and then shuts down as [`shutdown`](Engine::shutdown) does.
    /// Repeating timers and re-armed ones fire meanwhile, but are not waited for:
    /// a chain of short delays would otherwise hold the call to its limit.
    ///
    /// Returns as soon as no such one-shot is left and the shutdown is
    /// complete. Returns at the latest one second after `limit`, provided
    /// that a second suffices to collect the live timers. Other threads may
    /// cancel and move timers meanwhile. Does not wait for reports to be
    /// read. Moves a virtual clock forward by `limit`, rounded up to a tick.
    pub fn drain(&self, limit: Duration) -> Vec<Closed<T>> {
        observe::drain_begun(self.core.subject(), limit);
        let complete = self.core.drain(limit);
        observe::drain_ended(self.core.subject(), complete);
        self.core.shut_down()
    }
}

impl<T> Clone for Engine<T> {
    fn clone(&self) -> Engine<T> {
        Engine {
            core: Arc::clone(&self.core),
            handle: CountedArc::clone(&self.handle),
        }
    }
}

impl<T> fmt::Debug for Engine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("name", &self.core.name)
            .field("queues", &self.core.queues())
            .field("shards", &self.core.shard_count())
            .field("now", &self.now())
            .field("sleeps_on", &self.core.alarm.device())
            .finish_non_exhaustive()
    }
}
