//! The engine: many threads schedule, one ticker moves time along, worker
//! queues fire.

mod builder;
mod live;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod unstarted;

pub use builder::{Builder, StartError};
pub use live::LiveTimers;
pub use unstarted::Unstarted;

pub(crate) use builder::MOST_WORKERS;

use core::fmt;
use std::time::{Duration, Instant};

use crate::id::TimerId;
use crate::observe;
use crate::queue::{Queue, Reports};
use crate::shared::{Core, SharedCore, running};
use crate::stats::{Ledger, Snapshot};
use crate::sync::Arc;
use crate::tick::Tick;
use crate::time::{Time, When};
use crate::timer::{Cancel, CancelledByName, Closed, NotLive, Refused, Timer};

/// A timer engine for many threads.
///
/// A handle: clones share one engine. When the last one is dropped the engine
/// is shut down, without waiting for any thread; queue handles see that it was
/// closed. Use [`shutdown`](Engine::shutdown) or [`drain`](Engine::drain) to
/// learn what was still live.
///
/// # Cost
///
/// Scheduling, cancelling and rescheduling each take one short lock, which
/// belongs to the calling thread's own shard (or, for another thread's timer,
/// to that one's) and not to the engine as a whole. None of them allocates
/// unless more timers are live than ever before, or the timer has a name:
/// scheduling a [named](Timer::named) timer allocates, and takes a lock that it
/// shares with other names. Only a delay, as opposed to a [`Time`], needs the
/// clock to be read.
///
/// # The end of the process
///
/// A process that ends, because `main` returns or by `exit`, waits for no engine:
/// its timers do not fire any more, and what a worker is doing is cut off. If the
/// last handle is dropped before, the payloads are dropped as well, unfired; a
/// handle in a `static` is never dropped. Call [`drain`](Engine::drain) to fire
/// first what is due soon, or [`shutdown`](Engine::shutdown) to get back what is
/// live, and [`TaskEngine::join`](crate::TaskEngine::join) to wait for tasks.
///
/// # Fork
///
/// An engine belongs to the process that started it. In a child made by `fork`
/// there is no ticker thread, and a lock that some other thread held at that
/// moment is held for ever: nothing fires there, and any call may wait for
/// ever. All that a child may do with its copy is to drop it, which does
/// nothing: it stops nothing, waits for nothing, and leaves the payloads alone.
/// Who needs timers in a child starts an engine there.
///
/// Whatever the child does, the parent's timers fire on time: the timerfd that
/// both would share listens to the parent only, and is closed by `exec`.
///
/// # Example
///
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
/// assert_eq!(engine.cancel(id).payload(), Some("session 7"));
/// assert!(engine.ledger().is_balanced());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine<T> {
    /// The same as the handle has, a step nearer.
    core: Arc<Core<T>>,
    handle: Arc<Handle<T>>,
}

/// Shuts the engine down when nobody can use it any more.
struct Handle<T> {
    shared: Arc<SharedCore<T>>,
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        if self.shared.is_owned_here() {
            drop(self.shared.shut_down());
        }
    }
}

impl<T> Engine<T> {
    fn new(shared: Arc<SharedCore<T>>) -> Engine<T> {
        Engine {
            core: Arc::clone(shared.core()),
            handle: Arc::new(Handle { shared }),
        }
    }

    fn shared(&self) -> Arc<SharedCore<T>> {
        Arc::clone(&self.handle.shared)
    }

    /// Schedules a timer.
    ///
    /// From any thread, also from within a task. It never fires early: the
    /// clock is read in this call, and the deadline rounded up to a tick.
    ///
    /// # Errors
    /// The timer comes back in the error, unchanged, with the reason: see
    /// [`Refusal`].
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
    pub fn schedule(&self, timer: Timer<T>) -> Result<TimerId, Refused<T>> {
        self.core.schedule(timer)
    }

    /// Cancels a timer.
    ///
    /// Wins until a worker takes the timer, even when it has expired and waits
    /// in a queue: the answer [`Cancel::Cancelled`] carries the payload, and no
    /// worker will see it. The storage is free when the call returns. A task
    /// that asked to be [`notified`](Timer::notified) keeps its payload, and the
    /// answer is [`Cancel::Notified`].
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

    /// Cancels many timers, and answers for each, in the order of `ids`, as
    /// [`cancel`](Engine::cancel) does.
    ///
    /// For whoever ends many timers at a time, and above all those of another
    /// thread: ids that stand together and were scheduled by one thread share
    /// the lock, and the memory that they need is fetched side by side.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Cancel, Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let schedule = |n| engine.schedule(Timer::after(Duration::from_secs(9), n));
    /// let ids = [schedule(1)?, schedule(2)?];
    /// engine.cancel(ids[0]);
    /// assert_eq!(engine.cancel_many(&ids), [Cancel::Gone, Cancel::Cancelled(2)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "a running timer was not stopped, and a cancelled one's payload is in here"]
    pub fn cancel_many(&self, ids: &[TimerId]) -> Vec<Cancel<T>> {
        self.core.cancel_many(ids)
    }

    /// Cancels the timers that go by a name: all of them, or at most `max`,
    /// the ones that were created first before the others. A name that no
    /// timer goes by is none. Timers that are created while it runs are left
    /// alone.
    ///
    /// # Cost
    ///
    /// Follows what is cancelled, and not how many share the name. Others who use
    /// the name get in between, every few timers.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// for n in 0..3 {
    ///     engine.schedule(Timer::after(Duration::from_secs(9), n).named("batch"))?;
    /// }
    /// assert_eq!(engine.cancel_by_name("batch", 2).payloads, [0, 1]);
    /// assert_eq!(engine.cancel_by_name("batch", usize::MAX).count, 1);
    /// assert_eq!(engine.cancel_by_name("batch", usize::MAX).count, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_by_name(&self, name: &str, max: usize) -> CancelledByName<T> {
        self.core.cancel_by_name(name, max)
    }

    /// Creates a timer that is started later, or never: it has an id and may
    /// have a name, and can be cancelled by both. It counts against
    /// [`Builder::max_timers`] from now on, and is in the ledger once it is
    /// started.
    ///
    /// # Errors
    /// As [`schedule`](Engine::schedule).
    pub fn create(&self, timer: Timer<T>) -> Result<Unstarted<T>, Refused<T>> {
        let id = self.core.create(timer)?;
        Ok(Unstarted::new(self.shared(), id))
    }

    /// Cancels a timer, and waits until no firing of it is in a worker's hands
    /// any more. The answer is that of [`cancel`](Engine::cancel).
    ///
    /// Called from within the timer's own task it does not wait, not even where
    /// that task drives another engine and is called back from there. A worker
    /// that calls it for an [`Expired`](crate::Expired) that it holds itself
    /// waits for ever; so do two tasks that wait for each other.
    pub fn cancel_and_wait(&self, id: TimerId) -> Cancel<T> {
        let cancelled = self.cancel(id);
        self.wait_unless_here(id, &cancelled);
        cancelled
    }

    /// Waits for a firing that is running, unless it is the caller's own.
    pub(crate) fn wait_unless_here<P>(&self, id: TimerId, cancelled: &Cancel<P>) {
        if matches!(cancelled, Cancel::Running) && !running::is_running_here(id) {
            self.core.wait_for_return(id);
        }
    }

    /// Gives a live timer another deadline: a [`Duration`] from now, or a
    /// [`Time`]. A repeating timer goes on from there. Postponing touches no
    /// list; a timer that has expired and was not taken yet waits again.
    ///
    /// A rescheduled timer keeps its place, among those of its new tick, by
    /// when it was first scheduled.
    ///
    /// # Errors
    /// If the timer is not live, or a firing of it is in a worker's hands.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let keep_alive = engine.schedule(Timer::after(Duration::from_secs(30), "session"))?;
    /// engine.reschedule(keep_alive, Duration::from_secs(30))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn reschedule(&self, id: TimerId, when: impl Into<When>) -> Result<(), NotLive> {
        self.core.reschedule(id, when.into())
    }

    /// Puts another payload in a timer's place and returns the old one.
    ///
    /// # Errors
    /// Returns `payload`, with the reason, if the timer is not live or a firing
    /// of it is in a worker's hands.
    pub fn replace(&self, id: TimerId, payload: T) -> Result<T, (NotLive, T)> {
        self.core.replace(id, payload)
    }

    /// When a live timer is due next, or was, if it waits to be taken or runs.
    #[must_use]
    pub fn deadline(&self, id: TimerId) -> Option<Time> {
        let tick = self.core.deadline(id)?;
        Some(self.core.tick.start_of(tick))
    }

    /// The exact earliest deadline of the timers that have not expired. `None`
    /// if nothing is ever due. A repeating timer has no deadline while a firing
    /// of it waits in its queue or is in a worker's hands.
    ///
    /// Exact while nothing is scheduled or moved meanwhile. For a loop that wants
    /// to know how long it may sleep,
    /// [`Driver::next_wakeup`](crate::Driver::next_wakeup) costs nothing.
    ///
    /// # Cost
    ///
    /// In each shard a search of some hundred entries at most; where that is not
    /// enough, because very many are due in one slot, a walk through the shard, a
    /// bounded part in one hold of its lock.
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

    /// What the engine's clock says.
    #[must_use]
    pub fn now(&self) -> Time {
        self.core.clock.now()
    }

    /// The tick that has begun last.
    #[must_use]
    pub fn current_tick(&self) -> Tick {
        self.core.tick_now()
    }

    /// An `Instant` as the engine's own time, never earlier than it; the start
    /// for those before it. `None` on a clock that is not the monotonic one.
    #[must_use]
    pub fn time_of(&self, instant: Instant) -> Option<Time> {
        self.core.clock.time_of(instant)
    }

    /// A handle to a worker queue.
    ///
    /// # Panics
    /// If there is no queue of that number; see [`get_queue`](Engine::get_queue).
    #[must_use]
    pub fn queue(&self, index: usize) -> Queue<T> {
        match self.get_queue(index) {
            Some(queue) => queue,
            None => panic!("no queue {index}: this engine has {}", self.core.queues()),
        }
    }

    /// A handle to a worker queue, if there is one of that number.
    #[must_use]
    pub fn get_queue(&self, index: usize) -> Option<Queue<T>> {
        (index < self.core.queues()).then(|| Queue::new(self.shared(), index))
    }

    /// Where the reports on ended timers are read, of those that asked for one
    /// with [`Timer::reported`].
    #[must_use]
    pub fn reports(&self) -> Reports<T> {
        Reports::new(self.shared())
    }

    /// Returns the account of all timers: exact while no call is in progress. For
    /// a dashboard there is [`snapshot`](Engine::snapshot), which has it among
    /// other counts.
    ///
    /// # Cost
    ///
    /// A look at each shard, however many timers there are.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.core.ledger()
    }

    /// Everything that can be counted, for a dashboard: ledger, queue depths,
    /// lateness, wake-ups, panics.
    ///
    /// # Cost
    ///
    /// A look at each shard, however many timers there are.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.core.snapshot()
    }

    /// Gives back the memory that is not needed for live timers: after a peak,
    /// say, or once in a while where peaks move from thread to thread. Nothing
    /// does that by itself.
    ///
    /// A shard through which a [`LiveTimers`] walks at that moment, and one whose
    /// engine is drained, gives back only what stands behind its last timer; that
    /// of an engine that was shut down is given back with the engine; and where others schedule meanwhile, a part may stay. Then
    /// another call gives back more. What repeating, named, reported and task
    /// timers have beside their entries is given back when there are none of
    /// them in a shard.
    ///
    /// # Cost
    ///
    /// Follows the largest number of timers that were live since the last call.
    /// No hold of a shard's lock touches more than some hundred entries, or the
    /// list heads of the levels if these have to move. A timer that was brought to
    /// another place takes some thirty bytes more from then on and a look into a
    /// sorted map when it ends; timers that fire together may have to be sorted
    /// first.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let schedule = |n| engine.schedule(Timer::after(Duration::from_secs(9), n));
    /// let ids = (0..1_000).map(schedule).collect::<Result<Vec<_>, _>>()?;
    /// ids[..999].iter().for_each(|&id| _ = engine.cancel(id));
    /// engine.shrink();
    /// assert_eq!(engine.cancel(ids[999]).payload(), Some(999));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shrink(&self) {
        self.core.shrink();
    }

    /// Stops at once, and returns every live timer exactly once, whether it
    /// waited for its deadline or for a worker. Of a repeating timer whose
    /// payload is in a worker's hands it returns the rest; one whose last
    /// firing runs, or that was cancelled while a firing runs, is left to end
    /// by itself.
    ///
    /// Waits for no thread. From its beginning timers are refused. It then collects
    /// what is live, a bounded part in one hold of a shard's lock, in which others
    /// may still cancel and take timers: each goes to one of them. At its end queues
    /// say that they are closed; only then the descriptor of a
    /// [`Driver`](crate::Driver) becomes readable, and it stays so.
    pub fn shutdown(&self) -> Vec<Closed<T>> {
        self.core.shut_down()
    }

    /// Returns whether the engine was shut down: by
    /// [`shutdown`](Engine::shutdown), at the end of a [`drain`](Engine::drain),
    /// or because its last handle was dropped. From then on it accepts nothing
    /// and nothing more falls due.
    ///
    /// While a shutdown is under way, and during a drain, the engine refuses
    /// timers and is not closed yet.
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

    /// Refuses new timers, waits until the one-shots that are due within
    /// `limit` have been taken by workers, and then shuts down as
    /// [`shutdown`](Engine::shutdown) does.
    ///
    /// Returns as soon as there is no such one-shot left, and at the latest one
    /// second after `limit`, the shutdown included, as long as that second is
    /// enough to collect what is live; whatever others cancel and move meanwhile.
    /// Reports that nobody has read are not waited for. A virtual clock is moved on
    /// by `limit`, rounded up to a tick as deadlines are.
    pub fn drain(&self, limit: Duration) -> Vec<Closed<T>> {
        observe::drain_begun(self.core.first, limit);
        let complete = self.core.drain(limit);
        observe::drain_ended(self.core.first, complete);
        self.core.shut_down()
    }
}

impl<T> Clone for Engine<T> {
    fn clone(&self) -> Engine<T> {
        Engine {
            core: Arc::clone(&self.core),
            handle: Arc::clone(&self.handle),
        }
    }
}

impl<T> fmt::Debug for Engine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("queues", &self.core.queues())
            .field("shards", &self.core.shard_count())
            .field("now", &self.now())
            .field("sleeps_on", &self.core.alarm.device())
            .finish_non_exhaustive()
    }
}
