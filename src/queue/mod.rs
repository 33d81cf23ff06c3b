//! The queues from which workers take expired timers.

mod expired;
mod recv_future;
#[cfg(feature = "stream")]
mod recv_stream;
mod reports;

pub use expired::Expired;
pub use recv_future::RecvFuture;
#[cfg(feature = "stream")]
pub use recv_stream::RecvStream;
pub use reports::Reports;

use core::fmt;
use std::cell::Cell;
use std::panic::RefUnwindSafe;
use std::time::Duration;

use crate::engine::Engine;
use crate::engine::{Bell, Census, SharedCore, TAKES_PER_HOLD, Wait, WaitError};
use crate::id::TimerId;
use crate::shard::{Claimed, Outcome};
use crate::sync::thread::ThreadId;
use crate::sync::{Arc, thread};

/// The number of timers that a worker takes from one shard before it moves on.
const TURNS_PER_SHARD: u32 = 64;

/// A handle to one of an engine's worker queues.
///
/// Expired timers stay in the engine until a worker takes them: one at a time with
/// [`recv`](Queue::recv), many with [`recv_many`](Queue::recv_many). Until then they can
/// be cancelled. A queue is never full. Each worker thread needs a handle of its own:
/// clone one, or call [`Engine::queue`](crate::Engine::queue) again.
///
/// Timers of one shard (usually those that one thread scheduled) arrive in
/// the order of their deadlines. The order across shards is not guaranteed.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Timer};
///
/// let engine = Engine::builder().start()?;
/// engine.schedule(Timer::after(Duration::from_millis(5), "hello"))?;
/// let queue = engine.queue(0);
/// let worker = std::thread::spawn(move || {
///     let expired = queue.recv().unwrap();
///     assert_eq!(*expired.payload(), "hello");
/// });
/// worker.join().unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Queue<T> {
    core: Arc<SharedCore<T>>,
    index: usize,
    /// A shard that had more timers when last visited, and the turns left there.
    hint: Cell<Option<(usize, u32)>>,
    worker: WorkerState,
}

/// The reason why a call returned no timer or no report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvError {
    /// No timer has expired, or no report has come, within the given time.
    Empty,
    /// The engine was shut down, and no more timers or reports will come.
    ShutDown,
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecvError::Empty => "nothing has expired: wait longer, or try again later",
            RecvError::ShutDown => "the engine was shut down: stop receiving",
        })
    }
}

impl std::error::Error for RecvError {}

impl From<WaitError> for RecvError {
    fn from(error: WaitError) -> RecvError {
        match error {
            WaitError::Empty => RecvError::Empty,
            WaitError::Stopped => RecvError::ShutDown,
        }
    }
}

/// A shard in which to look for expired timers.
struct Place {
    shard: usize,
    /// The number of timers that the worker may take there before it moves on.
    turns: u32,
    bell: Option<Bell>,
}

impl Place {
    #[inline]
    fn of(bell: Bell) -> Place {
        Place {
            shard: bell.shard(),
            turns: TURNS_PER_SHARD,
            bell: Some(bell),
        }
    }
}

impl<T> Engine<T> {
    /// Returns a handle to a worker queue.
    ///
    /// # Panics
    /// Panics if there is no queue with that number; see
    /// [`get_queue`](Engine::get_queue).
    #[must_use]
    pub fn queue(&self, index: usize) -> Queue<T> {
        match self.get_queue(index) {
            Some(queue) => queue,
            None => panic!("no queue {index}: this engine has {}", self.core().queues()),
        }
    }

    /// Returns a handle to a worker queue, or `None` if there is no queue
    /// with that number.
    #[must_use]
    pub fn get_queue(&self, index: usize) -> Option<Queue<T>> {
        (index < self.core().queues()).then(|| Queue::new(self.shared(), index))
    }
}

impl<T> Queue<T> {
    pub(crate) fn core(&self) -> &Arc<SharedCore<T>> {
        &self.core
    }

    pub(crate) fn new(core: Arc<SharedCore<T>>, index: usize) -> Queue<T> {
        Queue {
            core,
            index,
            hint: Cell::new(None),
            worker: WorkerState::default(),
        }
    }

    /// Blocks until a timer has expired, and takes it.
    ///
    /// # Errors
    /// Returns [`RecvError::ShutDown`] if the engine was shut down.
    #[inline]
    pub fn recv(&self) -> Result<Expired<T>, RecvError> {
        self.take(Wait::Forever)
    }

    /// Takes an expired timer if there is one.
    ///
    /// # Errors
    /// Returns [`RecvError::Empty`] if there is none, or
    /// [`RecvError::ShutDown`] if the engine was shut down.
    #[inline]
    pub fn try_recv(&self) -> Result<Expired<T>, RecvError> {
        self.take(Wait::No)
    }

    /// Blocks for at most `limit` until a timer has expired, and takes it.
    /// The limit is of real time, whatever clock the engine follows: on a virtual clock, it
    /// bounds how long the thread waits for another one to move the clock.
    ///
    /// # Errors
    /// Returns [`RecvError::Empty`] if none expired in time, or
    /// [`RecvError::ShutDown`] if the engine was shut down.
    pub fn recv_timeout(&self, limit: Duration) -> Result<Expired<T>, RecvError> {
        if self.core.clock.is_virtual() {
            self.worker.join_here(&self.core.census, self.index);
        }
        // Does not read the clock if an expired timer is there.
        self.try_recv().or_else(|error| match error {
            RecvError::Empty => self.take(Wait::at_most(limit)),
            RecvError::ShutDown => Err(error),
        })
    }

    /// Returns an iterator that takes expired timers one at a time. It
    /// never blocks, and ends if no expired timer is left. A timer that it
    /// has not reached can still be cancelled. [`recv_many`](Queue::recv_many)
    /// costs less for a worker that needs nothing but the payloads.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// for n in 0..3 {
    ///     engine.schedule(Timer::after(Duration::from_secs(1), n))?;
    /// }
    /// clock.advance(Duration::from_secs(1));
    /// let queue = engine.queue(0);
    /// let taken = queue.try_iter().map(|expired| expired.into_payload());
    /// assert_eq!(taken.collect::<Vec<_>>(), [0, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_iter(&self) -> impl Iterator<Item = Expired<T>> + '_ {
        std::iter::from_fn(|| self.try_recv().ok())
    }

    /// Returns the number of expired timers that are waiting to be taken.
    /// Locks each shard once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.ready_len(self.index)
    }

    /// Returns whether no expired timer is waiting to be taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the engine was shut down; see
    /// [`Engine::is_shut_down`](crate::Engine::is_shut_down). After that,
    /// only [`notified`](crate::Timer::notified) tasks are still handed out.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.core.is_shut_down()
    }

    /// Returns the queue's number.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Makes [`VirtualClock::run_until`](crate::VirtualClock::run_until) wait until `count`
    /// workers of this queue have come, before it moves the clock. Defaults to zero.
    ///
    /// A worker comes when its handle waits in `recv` or `recv_timeout` for the first time.
    /// Workers that came before this call, and those that have left, count too. Workers of
    /// a [`TaskEngine`](crate::TaskEngine) count from its start; they need not be expected.
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Time, Timer};
    ///
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// for seconds in 1..=3 {
    ///     engine.schedule(Timer::after(Duration::from_secs(seconds), ()))?;
    /// }
    /// let worker = thread::spawn({
    ///     let (engine, queue) = (engine.clone(), engine.queue(0));
    ///     move || queue.map(|_| engine.now()).collect::<Vec<_>>()
    /// });
    /// engine.queue(0).expect_workers(1); // the thread may not have begun
    /// clock.run_until(Time::from_secs(3));
    /// engine.shutdown();
    /// assert_eq!(worker.join().unwrap(), [1, 2, 3].map(Time::from_secs));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expect_workers(&self, count: usize) {
        self.core.census.expect(self.index, count);
    }

    /// Lets the limits of all waits on this queue pass, in a model: of waits that have
    /// begun and of those that begin later. Wakes no thread. A receiver finds its limit
    /// passed when it begins to wait or is woken; see
    /// [`wake_receivers`](Queue::wake_receivers).
    ///
    /// Without this call, a [`recv_timeout`](Queue::recv_timeout) of a model waits until
    /// a timer comes. Exists only with `--cfg loom` or `--cfg shuttle`.
    #[cfg(any(loom, shuttle))]
    pub fn pass_limits(&self) {
        self.core.doorbell(self.index).pass_limits();
    }

    /// Wakes all threads that wait on this queue, in a model, so that they check their
    /// limits. To let a `recv_timeout` end, call [`pass_limits`](Queue::pass_limits) and
    /// then this.
    ///
    /// Exists only with `--cfg loom` or `--cfg shuttle`.
    #[cfg(any(loom, shuttle))]
    pub fn wake_receivers(&self) {
        self.core.doorbell(self.index).wake_receivers();
    }

    #[inline]
    pub(crate) fn take(&self, wait: Wait<'_>) -> Result<Expired<T>, RecvError> {
        self.take_as(wait, Queue::expired)
    }

    /// Takes a timer, for a caller that returns a lent payload itself.
    pub(crate) fn claim_next(&self, wait: Wait<'_>) -> Result<Claimed<T>, RecvError> {
        self.take_as(wait, |_, claimed| claimed)
    }

    /// Returns a firing whose task is consumed, and then takes a timer as
    /// [`claim_next`](Queue::claim_next) does. Does both in one hold if the worker goes
    /// on in the same shard.
    pub(crate) fn claim_after(
        &self,
        done: TimerId,
        wait: Wait<'_>,
    ) -> Result<Claimed<T>, RecvError> {
        match self.hint.take() {
            Some((shard, turns)) if self.core.is_in(done, shard) => {
                let (claimed, more) = self.core.return_and_take(done, shard, self.index);
                self.stay(shard, turns - 1, more);
                if let Some(claimed) = claimed {
                    self.notify_census();
                    return Ok(claimed);
                }
            }
            hint => {
                self.hint.set(hint);
                self.core.return_firing(done, None, Outcome::Returned);
            }
        }
        self.claim_next(wait)
    }

    #[inline]
    fn take_as<C>(
        &self,
        wait: Wait<'_>,
        make: impl Fn(&Queue<T>, Claimed<T>) -> C,
    ) -> Result<C, RecvError> {
        let taken = self.take_next(wait, make);
        self.notify_census();
        taken
    }

    #[inline]
    fn take_next<C>(
        &self,
        wait: Wait<'_>,
        make: impl Fn(&Queue<T>, Claimed<T>) -> C,
    ) -> Result<C, RecvError> {
        loop {
            let place = match self.place(wait) {
                Err(RecvError::ShutDown) => return self.last(make).ok_or(RecvError::ShutDown),
                place => place?,
            };
            if let Some(taken) = self.claim(place, &make) {
                return Ok(taken);
            }
            if wait.is_over() {
                return Err(RecvError::Empty);
            }
        }
    }

    /// Returns the place at which to look for a timer. While the shard of the last call
    /// has more timers and turns are left, goes there without a bell. Meanwhile, the bell
    /// is in the channel for other workers.
    #[inline]
    fn place(&self, wait: Wait<'_>) -> Result<Place, RecvError> {
        if let Some(hint) = self.hinted() {
            return Ok(hint);
        }
        Ok(Place::of(self.answer(wait)?))
    }

    #[inline]
    fn hinted(&self) -> Option<Place> {
        let (shard, turns) = self.hint.take()?;
        let bell = None;
        Some(Place { shard, turns, bell })
    }

    /// Takes one of the notified tasks left after a shutdown.
    #[cold]
    fn last<C>(&self, make: impl Fn(&Queue<T>, Claimed<T>) -> C) -> Option<C> {
        let place = |shard| Place {
            shard,
            turns: TURNS_PER_SHARD,
            bell: None,
        };
        (0..self.core.shard_count()).find_map(|shard| self.claim(place(shard), &make))
    }

    /// Takes one timer from a shard.
    #[inline]
    fn claim<C>(&self, place: Place, make: impl Fn(&Queue<T>, Claimed<T>) -> C) -> Option<C> {
        let Place { shard, turns, bell } = place;
        let (claimed, more) = self.core.take_timer(shard, self.index, bell);
        self.stay(shard, turns - 1, more);
        Some(make(self, claimed?))
    }

    #[inline(always)]
    fn expired(&self, claimed: Claimed<T>) -> Expired<T> {
        Expired::new(claimed, &self.core)
    }

    /// Makes the next call go to this shard, if it has `more` timers and `turns`
    /// are left.
    #[inline]
    fn stay(&self, shard: usize, turns: u32, more: bool) {
        if more && turns > 0 {
            self.hint.set(Some((shard, turns)));
        }
    }

    /// Waits for a bell. A virtual clock counts the worker as idle.
    #[inline]
    fn answer(&self, wait: Wait<'_>) -> Result<Bell, RecvError> {
        let doorbell = self.core.doorbell(self.index);
        if matches!(wait, Wait::No) || !self.core.clock.is_virtual() {
            return Ok(doorbell.answer(wait)?);
        }
        let (census, queue) = (&self.core.census, self.index);
        self.worker.set_idle(census, queue);
        let received = doorbell.answer(wait);
        self.worker.set_busy(census, received.is_ok());
        Ok(received?)
    }

    /// Makes a virtual clock check the queue again after a non-worker handle
    /// took a timer, because the worker that the clock waits for may never come.
    fn notify_census(&self) {
        if self.core.clock.is_virtual() && !self.worker.has_joined() {
            self.core.census.notify();
        }
    }

    /// Counts this handle as a worker that is busy until it waits, in a thread that has
    /// not begun.
    pub(crate) fn join(&self) {
        if self.core.clock.is_virtual() {
            self.worker.join(&self.core.census, self.index, None);
        }
    }

    /// Notes that a task of this queue panicked.
    pub(crate) fn count_panic(&self) {
        self.core.count_panic();
    }
}

// The cells of a handle are each set by one store, between two calls that may panic.
impl<T> RefUnwindSafe for Queue<T> {}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Queue<T> {
        Queue::new(Arc::clone(&self.core), self.index)
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        self.worker.leave(&self.core.census, self.index);
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

/// Blocks for each expired timer, and ends when the engine is shut down.
impl<T> Iterator for Queue<T> {
    type Item = Expired<T>;

    fn next(&mut self) -> Option<Expired<T>> {
        self.recv().ok()
    }
}

impl<T> Queue<T> {
    /// Blocks until a timer has expired, and appends the payloads of up to `max` expired
    /// timers to `payloads`. Takes what is there and does not wait for more.
    ///
    /// A payload in `payloads` belongs to the worker, and its timer has ended. It is as
    /// if the worker had called [`recv`](Queue::recv) and [`Expired::into_payload`] for
    /// each of them, one after the other.
    ///
    /// A repeating or [`rearmable`](crate::Timer::rearmable) timer only lends its
    /// payload. The call ends at such a timer and returns its firing: the firing comes
    /// after the payloads that were appended. Dropping it returns the payload to the
    /// engine. The worker calls again for the timers behind it.
    ///
    /// # Errors
    /// Returns [`RecvError::ShutDown`] if the engine was shut down, and appends nothing.
    ///
    /// # Cost
    /// Takes up to 32 timers in one hold of a shard's lock, and so costs less than half
    /// of what `recv` costs for each. The price is that a timer in `payloads` can no
    /// longer be cancelled: a cancel of it returns [`Cancel::Gone`](crate::Cancel::Gone),
    /// although the worker has not come to it. [`try_iter`](Queue::try_iter) takes a
    /// timer only when it reaches it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// let second = Duration::from_secs(1);
    /// engine.schedule(Timer::after(second, "first"))?;
    /// engine.schedule(Timer::after(second, "second"))?;
    /// engine.schedule(Timer::every(second, "beat"))?;
    /// clock.advance(second);
    /// let (queue, mut payloads) = (engine.queue(0), Vec::new());
    /// let lent = queue.recv_many(&mut payloads, 100)?;
    /// assert_eq!(payloads, ["first", "second"]);
    /// assert_eq!(lent.map(|firing| *firing.payload()), Some("beat"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recv_many(
        &self,
        payloads: &mut Vec<T>,
        max: usize,
    ) -> Result<Option<Expired<T>>, RecvError> {
        self.take_many(Wait::Forever, payloads, max)
    }

    /// Takes payloads as [`recv_many`](Queue::recv_many) does, if a timer has expired.
    ///
    /// # Errors
    /// Returns [`RecvError::Empty`] if none has, or [`RecvError::ShutDown`] if the engine
    /// was shut down, and appends nothing.
    ///
    /// ```
    /// use tickwheel::{Engine, RecvError};
    ///
    /// let engine = Engine::<u64>::builder().start()?;
    /// let taken = engine.queue(0).try_recv_many(&mut Vec::new(), 100);
    /// assert!(matches!(taken, Err(RecvError::Empty)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_recv_many(
        &self,
        payloads: &mut Vec<T>,
        max: usize,
    ) -> Result<Option<Expired<T>>, RecvError> {
        self.take_many(Wait::No, payloads, max)
    }

    fn take_many(
        &self,
        wait: Wait<'_>,
        payloads: &mut Vec<T>,
        max: usize,
    ) -> Result<Option<Expired<T>>, RecvError> {
        let taken = self.take_up_to(wait, payloads, max);
        self.notify_census();
        taken
    }

    fn take_up_to(
        &self,
        wait: Wait<'_>,
        payloads: &mut Vec<T>,
        max: usize,
    ) -> Result<Option<Expired<T>>, RecvError> {
        let before = payloads.len();
        let (mut left, mut wait) = (max, wait);
        while left > 0 {
            // A bell in hand must not meet a failed allocation, which would lose it.
            payloads.reserve(left.min(TAKES_PER_HOLD));
            let place = match self.place(wait) {
                Err(_) if left < max => break,
                place => place?,
            };
            if let Some(lent) = self.claim_many(place, payloads, left) {
                return Ok(Some(lent));
            }
            left = max - (payloads.len() - before);
            if left < max {
                wait = Wait::No;
            }
        }
        Ok(None)
    }

    /// Takes payloads from one shard in one hold of its lock. Returns the firing at which
    /// it stopped, if any.
    fn claim_many(&self, place: Place, payloads: &mut Vec<T>, most: usize) -> Option<Expired<T>> {
        let Place { shard, turns, bell } = place;
        let before = payloads.len();
        let most = most.min(turns as usize);
        let (lent, more) = self.core.take_many(shard, self.index, bell, payloads, most);
        let taken = payloads.len() - before + usize::from(lent.is_some());
        self.stay(shard, turns - taken as u32, more);
        lent.map(|lent| self.lent(lent))
    }

    #[cold]
    fn lent(&self, lent: Claimed<T>) -> Expired<T> {
        self.expired(lent)
    }
}

#[derive(Clone, Copy, Default)]
enum State {
    /// Not known to belong to a worker.
    #[default]
    Unknown,
    /// Busy in this thread, if it is known.
    Busy(Option<ThreadId>),
    Waiting,
}

#[derive(Default)]
pub(super) struct WorkerState(Cell<State>);

impl WorkerState {
    pub(super) fn has_joined(&self) -> bool {
        !matches!(self.0.get(), State::Unknown)
    }

    /// Counts a worker of `queue`, unless it has already been counted. It is busy in
    /// `thread`, or in a thread that has not begun.
    pub(super) fn join(&self, census: &Census, queue: usize, thread: Option<ThreadId>) {
        if !self.has_joined() {
            census.join(queue, thread);
            self.0.set(State::Busy(thread));
        }
    }

    /// Counts the calling thread as a worker of `queue`.
    pub(super) fn join_here(&self, census: &Census, queue: usize) {
        self.join(census, queue, Some(thread::current().id()));
    }

    /// Notes that the worker is about to wait.
    pub(super) fn set_idle(&self, census: &Census, queue: usize) {
        self.join_here(census, queue);
        if let State::Busy(thread) = self.0.replace(State::Waiting) {
            census.set_idle(thread);
        }
    }

    /// Notes that the worker has waited, and works if it has received something. If not,
    /// its handle may go to another thread, so that its thread is not known.
    pub(super) fn set_busy(&self, census: &Census, has_received: bool) {
        let thread = has_received.then(|| thread::current().id());
        census.set_busy(thread);
        self.0.set(State::Busy(thread));
    }

    /// Notes that the handle no longer belongs to a worker.
    pub(super) fn leave(&self, census: &Census, queue: usize) {
        if self.has_joined() {
            self.set_idle(census, queue);
            census.leave(queue);
            self.0.set(State::Unknown);
        }
    }
}
