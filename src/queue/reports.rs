//! Where closed reports are read.

use core::fmt;
use core::time::Duration;

use crate::queue::RecvError;
use crate::shard::Shard;
use crate::shared::{Bell, SharedCore, Wait, WaitError};
use crate::sync::Arc;
use crate::timer::Closed;

/// The reports on timers that asked for one, from
/// [`Engine::reports`](crate::Engine::reports).
///
/// Every report is read once, by one reader. A report comes when its timer's
/// last firing has been let go of, and its task has been told if it asked for
/// that, be it after shutdown: until then readers wait, and
/// [`try_recv`](Reports::try_recv) finds nothing yet. A firing that is
/// never let go of, or a task that nobody runs, keeps them waiting for ever; so
/// does a firing in the hands of the reader itself.
///
/// A report that is not read keeps its timer's entry, which counts against
/// [`Builder::max_timers`](crate::Builder::max_timers): with that bound a
/// forgotten reader costs bounded memory, and without it all that there is.
/// Reports outlive shutdown.
pub struct Reports<T> {
    core: Arc<SharedCore<T>>,
}

impl<T> Reports<T> {
    pub(crate) fn new(core: Arc<SharedCore<T>>) -> Reports<T> {
        Reports { core }
    }

    /// Takes a report, waiting for one if there is none.
    ///
    /// # Errors
    /// [`RecvError::ShutDown`] when the engine was shut down, every report has been
    /// read, and no other is to come.
    pub fn recv(&self) -> Result<Closed<T>, RecvError> {
        self.take(Wait::Forever)
    }

    /// Takes a report if there is one.
    ///
    /// # Errors
    /// [`RecvError::Empty`] if there is none, [`RecvError::ShutDown`] when the
    /// engine was shut down, every report has been read, and no other is to
    /// come.
    pub fn try_recv(&self) -> Result<Closed<T>, RecvError> {
        self.take(Wait::No)
    }

    /// Takes a report, waiting for one for at most `limit`.
    ///
    /// # Errors
    /// As [`try_recv`](Reports::try_recv).
    pub fn recv_timeout(&self, limit: Duration) -> Result<Closed<T>, RecvError> {
        self.try_recv().or_else(|error| match error {
            RecvError::Empty => self.take(Wait::at_most(limit)),
            RecvError::ShutDown => Err(error),
        })
    }

    /// Takes the reports that are there, one at a time, without ever waiting.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{CloseReason, Engine, Timer};
    ///
    /// let engine = Engine::builder().start()?;
    /// for n in 0..3 {
    ///     let id = engine.schedule(Timer::after(Duration::from_secs(9), n).reported())?;
    ///     assert_eq!(engine.cancel(id).payload(), Some(n));
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

    /// How many reports wait to be read. Looks at every shard.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.ready_len(self.core.queues())
    }

    /// Whether no report waits to be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn take(&self, wait: Wait) -> Result<Closed<T>, RecvError> {
        loop {
            match self.core.doorbell(self.core.queues()).answer(wait) {
                Ok(bell) => {
                    if let Some(closed) = self.claim(bell.shard(), Some(bell)) {
                        return Ok(closed);
                    }
                    if wait.is_over() {
                        return Err(RecvError::Empty);
                    }
                }
                Err(WaitError::Empty) => return Err(RecvError::Empty),
                Err(WaitError::Stopped) => {
                    return self.last().ok_or(RecvError::ShutDown);
                }
            }
        }
    }

    /// The word that the engine was shut down may have overtaken a bell.
    fn last(&self) -> Option<Closed<T>> {
        (0..self.core.shard_count()).find_map(|shard| self.claim(shard, None))
    }

    fn claim(&self, shard: usize, bell: Option<Bell>) -> Option<Closed<T>> {
        let reports = self.core.queues();
        let (closed, _) = self
            .core
            .take_from(shard, reports, bell, Shard::claim_report);
        closed
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

/// Waits for reports until the engine is shut down, all have been read, and no
/// other is to come.
impl<T> Iterator for Reports<T> {
    type Item = Closed<T>;

    fn next(&mut self) -> Option<Closed<T>> {
        self.recv().ok()
    }
}
