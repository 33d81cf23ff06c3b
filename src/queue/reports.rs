//! Reading the reports on timers that have ended.

use core::fmt;
use core::task::{Poll, Waker, ready};
use core::time::Duration;

use crate::engine::{Bell, Engine, SharedCore, Wait, WaitError, Waits};
use crate::queue::RecvError;
use crate::shard::Shard;
use crate::sync::Arc;
use crate::timer::Closed;

/// Reads the reports on [`reported`](crate::Timer::reported) timers; from
/// [`Engine::reports`](crate::Engine::reports).
///
/// Every report is read once, by one reader. A report appears when its timer's
/// last firing is dropped and, for a [`notified`](crate::Timer::notified)
/// task, when the task has run; this may be after shutdown. Until then,
/// readers block, and [`try_recv`](Reports::try_recv) returns
/// [`RecvError::Empty`]. Readers block for ever if a firing is never dropped,
/// if such a task is never run, or if the reader itself holds the firing.
///
/// An unread report keeps its timer's entry, which counts against
/// [`Builder::max_timers`](crate::Builder::max_timers). Without that limit,
/// unread reports can fill the memory. Reports outlive shutdown.
pub struct Reports<T> {
    core: Arc<SharedCore<T>>,
}

impl<T> Engine<T> {
    /// Returns a reader for the reports on ended timers that were scheduled with
    /// [`Timer::reported`](crate::Timer::reported).
    #[must_use]
    pub fn reports(&self) -> Reports<T> {
        Reports::new(self.shared())
    }
}

impl<T> Reports<T> {
    pub(crate) fn new(core: Arc<SharedCore<T>>) -> Reports<T> {
        Reports { core }
    }

    /// Blocks until there is a report, and takes it.
    ///
    /// # Errors
    /// Returns [`RecvError::ShutDown`] if the engine was shut down, every
    /// report has been read, and no further report can come.
    pub fn recv(&self) -> Result<Closed<T>, RecvError> {
        self.take(Wait::Forever)
    }

    /// Takes a report if there is one.
    ///
    /// # Errors
    /// Returns [`RecvError::Empty`] if there is none, or the error of
    /// [`recv`](Reports::recv).
    pub fn try_recv(&self) -> Result<Closed<T>, RecvError> {
        self.take(Wait::No)
    }

    /// Blocks for at most `limit` until there is a report, and takes it.
    /// The limit is of real time, whatever clock the engine follows: on a virtual clock, it
    /// bounds how long the thread waits for another one to move the clock.
    ///
    /// # Errors
    /// Fails as [`try_recv`](Reports::try_recv) does.
    pub fn recv_timeout(&self, limit: Duration) -> Result<Closed<T>, RecvError> {
        self.try_recv().or_else(|error| match error {
            RecvError::Empty => self.take(Wait::at_most(limit)),
            RecvError::ShutDown => Err(error),
        })
    }

    /// Returns an iterator that takes reports one at a time. It never
    /// blocks, and ends if no report is left.
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
    pub fn try_iter(&self) -> impl Iterator<Item = Closed<T>> + '_ {
        std::iter::from_fn(|| self.try_recv().ok())
    }

    /// Returns the number of unread reports. Locks each shard once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.ready_len(self.core.queues())
    }

    /// Returns whether there is no unread report.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn take(&self, wait: Wait<'_>) -> Result<Closed<T>, RecvError> {
        loop {
            match self.core.doorbell(self.core.queues()).answer(wait) {
                Err(WaitError::Stopped) => {
                    return self.last().ok_or(RecvError::ShutDown);
                }
                bell => {
                    let bell = bell?;
                    if let Some(closed) = self.claim(bell.shard(), Some(bell)) {
                        return Ok(closed);
                    }
                }
            }
            if wait.is_over() {
                return Err(RecvError::Empty);
            }
        }
    }

    /// Does the same for a task, which is woken for the next bell.
    pub(super) fn poll_take(
        &self,
        waits: &mut Waits,
        waker: &Waker,
    ) -> Poll<Result<Closed<T>, RecvError>> {
        let doorbell = self.core.doorbell(self.core.queues());
        loop {
            let bell = match ready!(doorbell.poll_answer(waits, waker)) {
                Err(WaitError::Stopped) => {
                    return Poll::Ready(self.last().ok_or(RecvError::ShutDown));
                }
                bell => bell?,
            };
            if let Some(closed) = self.claim(bell.shard(), Some(bell)) {
                return Poll::Ready(Ok(closed));
            }
        }
    }

    pub(super) fn leave_places(&self, waits: &mut Waits) {
        self.core.doorbell(self.core.queues()).leave(waits);
    }

    /// Searches every shard, because the stop sign may have overtaken a bell.
    fn last(&self) -> Option<Closed<T>> {
        (0..self.core.shard_count()).find_map(|shard| self.claim(shard, None))
    }

    fn claim(&self, shard: usize, bell: Option<Bell>) -> Option<Closed<T>> {
        let (core, reports) = (&self.core, self.core.queues());
        core.take_from(shard, reports, bell, Shard::claim_report).0
    }
}

impl<T> Clone for Reports<T> {
    fn clone(&self) -> Reports<T> {
        Reports::new(Arc::clone(&self.core))
    }
}

impl<T> fmt::Debug for Reports<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reports").finish_non_exhaustive()
    }
}

/// Blocks for each report, and ends when [`recv`](Reports::recv) fails.
impl<T> Iterator for Reports<T> {
    type Item = Closed<T>;

    fn next(&mut self) -> Option<Closed<T>> {
        self.recv().ok()
    }
}
