//! The queues from which workers take expired timers, and readers the reports.

mod awaiting;
mod expired;

pub use expired::Expired;

use core::fmt;
use core::marker::PhantomData;
use std::cell::Cell;
use std::panic::RefUnwindSafe;
use std::time::Duration;

use crate::engine::{Bell, Engine, SharedCore, TAKES_PER_HOLD, WorkerState};
use crate::id::TimerId;
use crate::shard::{Claimed, Outcome, Shard};
use crate::sync::{Arc, Wait};
use crate::timer::Closed;

/// The number of timers that a worker takes from one shard before it moves on.
const TURNS_PER_SHARD: u32 = 64;

/// A handle to one of an engine's worker queues.
///
/// Expired timers stay in the engine until a worker takes them: one at a time with
/// [`recv`](Queue::recv), many with [`recv_many`](Queue::recv_many). Until then they can
/// be cancelled. A queue is never full. A handle is not `Sync`, so that each worker thread needs
/// one of its own: clone one, or call [`Engine::queue`](crate::Engine::queue) again.
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
pub struct Queue<T, R = Expired<T>> {
    core: Arc<SharedCore<T>>,
    index: usize,
    /// A shard that had more timers when last visited, and the turns left there.
    hint: Cell<Option<(usize, u32)>>,
    worker: WorkerState,
    hands_out: PhantomData<fn() -> R>,
}

/// Reads the reports on [`reported`](crate::Timer::reported) timers; from
/// [`Engine::reports`](crate::Engine::reports). It is the queue in which ended timers wait.
///
/// Every report is read once, by one reader. A report appears when its timer's
/// last firing is taken or, if that lends the payload, dropped and, for a
/// [`notified`](crate::Timer::notified) task, when the task has run; this may be after shutdown.
/// Until then, readers block, and [`try_recv`](Queue::try_recv) returns [`RecvError::Empty`].
/// Readers block for ever if a firing is never dropped, if such a task is never run, or if the
/// reader itself holds the firing.
///
/// An unread report keeps its timer's entry, which counts against
/// [`Builder::max_timers`](crate::Builder::max_timers). Without that limit,
/// unread reports can fill the memory. Reports outlive shutdown: a reader learns of that
/// when every report has been read and no further one can come.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{CloseReason, Engine, Timer};
///
/// let engine = Engine::builder().start()?;
/// for n in 0..3 {
///     let id = engine.schedule(Timer::after(Duration::from_secs(9), n).reported())?;
///     assert_eq!(engine.cancel(id).into_payload(), Some(n));
/// }
/// let reports = engine.reports();
/// let mut reasons = reports.try_iter().map(|closed| closed.reason);
/// assert!(reasons.all(|reason| reason == CloseReason::Cancelled));
/// assert!(reports.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Reports<T> = Queue<T, Closed<T>>;

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

/// A shard in which to look for expired timers.
#[derive(Debug)]
pub struct Lead {
    shard: usize,
    /// The number of timers that the worker may take there before it moves on.
    turns: u32,
    bell: Option<Bell>,
}

/// What a queue hands out: [`Expired`] timers, or reports on [`Closed`] ones. Other crates
/// can't implement it.
pub trait Received<T>: Sized {
    /// Takes one from a shard and stores it in `into`, if the shard has one. Returned, it would
    /// be copied on every floor.
    #[doc(hidden)]
    fn claim<R>(queue: &Queue<T, R>, lead: Lead, into: &mut Result<Self, RecvError>);
}

impl<T> Received<T> for Expired<T> {
    #[inline]
    fn claim<R>(queue: &Queue<T, R>, lead: Lead, into: &mut Result<Expired<T>, RecvError>) {
        let core = &queue.core;
        let give = |claimed| *into = Ok(Expired::new(claimed, core));
        queue.take(lead, |shard| shard.claim(queue.index, core.time_of_take(), give));
    }
}

/// For a caller that returns a lent payload itself.
impl<T> Received<T> for Claimed<T> {
    #[inline]
    fn claim<R>(queue: &Queue<T, R>, lead: Lead, into: &mut Result<Claimed<T>, RecvError>) {
        let give = |claimed| *into = Ok(claimed);
        queue.take(lead, |shard| shard.claim(queue.index, queue.core.time_of_take(), give));
    }
}

impl<T> Received<T> for Closed<T> {
    fn claim<R>(queue: &Queue<T, R>, lead: Lead, into: &mut Result<Closed<T>, RecvError>) {
        queue.take(lead, |shard| {
            if let Some(closed) = shard.claim_report() {
                *into = Ok(closed);
            }
        });
    }
}

impl<T> Engine<T> {
    /// Returns a handle to a worker queue.
    ///
    /// # Panics
    /// Panics if there is no queue with that number: number it below what
    /// [`Builder::queues`](crate::Builder::queues) was given.
    #[must_use]
    pub fn queue(&self, index: usize) -> Queue<T> {
        let queues = self.core().queues();
        assert!(index < queues, "no queue {index}: this engine has {queues} (`Builder::queues`)");
        Queue::new(self.shared(), index)
    }

    /// Returns a reader for the reports on ended timers that were scheduled with
    /// [`Timer::reported`](crate::Timer::reported).
    #[must_use]
    pub fn reports(&self) -> Reports<T> {
        Queue::new(self.shared(), self.core().queues())
    }
}

impl<T, R> Queue<T, R> {
    pub(crate) fn core(&self) -> &Arc<SharedCore<T>> {
        &self.core
    }

    pub(crate) fn new(core: Arc<SharedCore<T>>, index: usize) -> Queue<T, R> {
        Queue {
            core,
            index,
            hint: Cell::new(None),
            worker: WorkerState::default(),
            hands_out: PhantomData,
        }
    }

    /// Returns the number of expired timers that are waiting to be taken, or of unread
    /// reports. Locks each shard once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.ready_len(self.index)
    }

    /// Returns whether nothing is waiting to be taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a virtual clock waits for the workers of this queue.
    #[inline]
    fn is_counted(&self) -> bool {
        self.core.clock.is_virtual() && self.index < self.core.queues()
    }

    /// Notes what a take has left. The next call goes to this shard, if it has `more` timers
    /// and `turns` are left.
    #[inline]
    fn note_take(&self, shard: usize, turns: u32, more: bool) {
        if more && turns > 0 {
            self.hint.set(Some((shard, turns)));
        }
        // A virtual clock checks the queue again after a take by a handle that is no worker's,
        // because the worker that it waits for may never come.
        if self.is_counted() && !self.worker.is_enrolled() {
            self.core.census.notify();
        }
    }

    /// Takes one timer or report with `take`.
    #[inline]
    fn take(&self, lead: Lead, take: impl FnOnce(&mut Shard<T>)) {
        let Lead { shard, turns, bell } = lead;
        let more = self.core.take_from(shard, self.index, bell, take);
        self.note_take(shard, turns - 1, more);
    }

    /// Returns the shard of the last call while it has more timers and turns are left.
    /// Meanwhile, the bell is in the channel for other workers.
    #[inline]
    fn hinted(&self) -> Option<Lead> {
        let (shard, turns) = self.hint.take()?;
        let bell = None;
        Some(Lead { shard, turns, bell })
    }

    /// Waits for a bell. A virtual clock counts the worker as idle.
    #[inline]
    fn answer(&self, wait: Wait<'_>) -> Option<Bell> {
        let doorbell = self.core.doorbell(self.index);
        if matches!(wait, Wait::No) || !self.is_counted() {
            return doorbell.recv(wait);
        }
        let (census, queue) = (&self.core.census, self.index);
        self.worker.set_idle(census, queue);
        let received = doorbell.recv(wait);
        self.worker.set_busy(census);
        received
    }

    #[inline]
    pub(crate) fn receive<C: Received<T>>(&self, wait: Wait<'_>) -> Result<C, RecvError> {
        let mut received = Err(RecvError::Empty);
        loop {
            let lead = match self.hinted() {
                Some(lead) => lead,
                None => match self.answer(wait) {
                    Some(bell) => Lead::by(bell),
                    None => return self.receive_last(),
                },
            };
            C::claim(self, lead, &mut received);
            if received.is_ok() || wait.is_over() {
                return received;
            }
        }
    }

    /// Does what is left to do without a bell. After a shutdown, takes one of the notified
    /// tasks or reports that are left.
    #[cold]
    fn receive_last<C: Received<T>>(&self) -> Result<C, RecvError> {
        if !self.core.doorbell(self.index).is_closed() {
            return Err(RecvError::Empty);
        }
        let mut last = Err(RecvError::ShutDown);
        let is_left = (0..self.core.shard_count()).any(|shard| {
            C::claim(self, Lead::to(shard), &mut last);
            last.is_ok()
        });
        if !is_left && self.worker.is_enrolled() {
            // A virtual clock does not wait for it, because it need not wait again.
            self.worker.set_idle(&self.core.census, self.index);
        }
        last
    }
}

impl Lead {
    #[inline]
    pub(crate) fn to(shard: usize) -> Lead {
        Lead { shard, turns: TURNS_PER_SHARD, bell: None }
    }

    #[inline]
    fn by(bell: Bell) -> Lead {
        let lead = Lead::to(bell.0 as usize);
        Lead { bell: Some(bell), ..lead }
    }
}

impl<T, R: Received<T>> Queue<T, R> {
    /// Blocks until a timer has expired, and takes it; or until there is a report.
    ///
    /// # Errors
    /// Returns [`RecvError::ShutDown`] if the engine was shut down.
    #[inline]
    pub fn recv(&self) -> Result<R, RecvError> {
        self.receive(Wait::Forever)
    }

    /// Takes an expired timer, or a report, if there is one.
    ///
    /// # Errors
    /// Returns [`RecvError::Empty`] if there is none, or
    /// [`RecvError::ShutDown`] if the engine was shut down.
    ///
    /// Beside other threads, `Empty` may be early: one of them is taking a timer from the
    /// shard that has others, or has just made them ready. A call that waits gets them.
    #[inline]
    pub fn try_recv(&self) -> Result<R, RecvError> {
        self.receive(Wait::No)
    }

    /// Blocks as [`recv`](Queue::recv) does, but for at most `limit`.
    /// The limit is of real time, whatever clock the engine follows: on a virtual clock, it
    /// bounds how long the thread waits for another one to move the clock.
    ///
    /// # Errors
    /// Returns [`RecvError::Empty`] if none came in time, or
    /// [`RecvError::ShutDown`] if the engine was shut down.
    pub fn recv_timeout(&self, limit: Duration) -> Result<R, RecvError> {
        if self.is_counted() {
            self.worker.enrol_here(&self.core.census, self.index);
        }
        // Does not read the clock if an expired timer is there.
        self.try_recv().or_else(|_| self.receive(Wait::at_most(limit)))
    }

    /// Returns an iterator that takes expired timers, or reports, one at a time. It
    /// never blocks, and ends if none is left. A timer that it
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
    pub fn try_iter(&self) -> impl Iterator<Item = R> + '_ {
        std::iter::from_fn(|| self.try_recv().ok())
    }
}

// The cells of a handle are each set by one store, between two calls that may panic.
impl<T, R> RefUnwindSafe for Queue<T, R> {}

impl<T, R> Clone for Queue<T, R> {
    fn clone(&self) -> Queue<T, R> {
        Queue::new(Arc::clone(&self.core), self.index)
    }
}

impl<T, R> Drop for Queue<T, R> {
    fn drop(&mut self) {
        self.worker.leave(&self.core.census, self.index);
    }
}

debug!(it: [T, R] Queue<T, R> => "Queue" { index: it.index });

/// Blocks for each expired timer or report, and ends when the engine is shut down.
impl<T, R: Received<T>> Iterator for Queue<T, R> {
    type Item = R;

    fn next(&mut self) -> Option<R> {
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
    /// With a `max` of zero, it returns `None` at once.
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
        mut wait: Wait<'_>,
        payloads: &mut Vec<T>,
        max: usize,
    ) -> Result<Option<Expired<T>>, RecvError> {
        let (before, mut left, mut lent) = (payloads.len(), max, None);
        while left > 0 && lent.is_none() {
            // A bell in hand must not meet a failed allocation, which would lose it.
            payloads.reserve(left.min(TAKES_PER_HOLD));
            let lead = match self.hinted() {
                Some(lead) => lead,
                None => match self.answer(wait) {
                    Some(bell) => Lead::by(bell),
                    None if left < max => break,
                    None => return self.receive_last().map(Some),
                },
            };
            lent = self.claim_many(lead, payloads, left);
            left = max - (payloads.len() - before);
            if left < max {
                wait = Wait::No;
            }
        }
        Ok(lent)
    }

    /// Takes payloads from one shard in one hold of its lock. Returns the firing at which
    /// it stopped, if any.
    pub(crate) fn claim_many(
        &self,
        lead: Lead,
        payloads: &mut Vec<T>,
        most: usize,
    ) -> Option<Expired<T>> {
        let Lead { shard, turns, bell } = lead;
        let before = payloads.len();
        let (most, mut lent) = (most.min(turns as usize).min(TAKES_PER_HOLD), None);
        let more = self.core.take_from(shard, self.index, bell, |shard| {
            lent = shard.claim_many(self.index, most, self.core.time_of_take(), payloads);
        });
        let taken = payloads.len() - before + usize::from(lent.is_some());
        self.note_take(shard, turns - taken as u32, more);
        lent.map(|lent| Expired::new(lent, &self.core))
    }

    /// Returns a firing whose task is consumed, and then takes a timer. Does both in one hold
    /// if the worker goes on in the same shard.
    pub(crate) fn claim_after(
        &self,
        done: TimerId,
        wait: Wait<'_>,
    ) -> Result<Claimed<T>, RecvError> {
        match self.hint.take() {
            // The shard of the last take, and so that of `done`.
            Some((shard, turns)) => {
                let mut claimed = Err(RecvError::Empty);
                let give = |it| claimed = Ok(it);
                let more = self.core.return_and_take(done, shard, self.index, give);
                self.note_take(shard, turns - 1, more);
                if claimed.is_ok() {
                    return claimed;
                }
            }
            None => self.core.return_firing(done, None, Outcome::Returned),
        }
        self.receive(wait)
    }

    /// Counts this handle as a worker that is busy until it waits, in a thread that has
    /// not begun.
    pub(crate) fn enrol(&self) {
        if self.is_counted() {
            self.worker.enrol(&self.core.census, self.index, None);
        }
    }

    /// Makes [`VirtualClock::run_until`](crate::VirtualClock::run_until) wait until `count`
    /// workers of this queue have come, before it moves the clock. Defaults to zero.
    ///
    /// A worker comes when its handle first waits, in `recv` or another call that blocks.
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
}
