//! A job as its handler sees it.

use std::sync::Arc;

use crate::inner::Run;
use crate::job::{JobId, StoredJob};
use crate::jobs::Jobs;
use crate::wall::WallTime;

/// One run of a job's handler.
#[derive(Clone)]
pub struct Attempt {
    run: Arc<Run>,
    jobs: Jobs,
    in_transaction: bool,
}

debug!(Attempt, this, id: this.id(), kind: this.job().kind, number: this.number());

impl Attempt {
    pub(crate) fn new(run: Arc<Run>, jobs: Jobs, in_transaction: bool) -> Attempt {
        Attempt { run, jobs, in_transaction }
    }

    /// Returns the job as it was when it was started.
    #[must_use]
    pub fn job(&self) -> &StoredJob {
        &self.run.job
    }

    /// Returns the job's id. It is the same in every attempt, and so serves others as a token
    /// by which they know a repeated request.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.job().id
    }

    /// Returns the bytes.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.job().payload
    }

    /// Returns the number of this attempt since the last success, from 1 on.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.job().attempts
    }

    /// Returns the time at which this run was due.
    #[must_use]
    pub fn due(&self) -> WallTime {
        self.job().due
    }

    /// Returns a number that is higher than that of every earlier holder of the job, in every
    /// store. A resource that remembers the highest number for each job, and refuses lower ones,
    /// is safe from a node that was paused. Runs of a job on one node may have the same number.
    #[must_use]
    pub fn fence(&self) -> u64 {
        let Run { token, .. } = *self.run;
        token
    }

    /// Returns whether the handler should end soon: the node has lost the lease, so that the outcome
    /// will be refused, or it is being closed.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let node = &self.jobs.inner.node;
        node.has_lost(self.run.fence) || node.engine.is_shut_down()
    }

    /// Waits until the handler [should end](Attempt::is_cancelled), for asynchronous handlers.
    ///
    /// ```no_run
    /// # async fn send_mail(_: &[u8]) {}
    /// # async fn handler(attempt: tickwheel_durable::Attempt) {
    /// tokio::select! {
    ///     () = send_mail(attempt.payload()) => {}
    ///     () = attempt.cancelled() => {}
    /// }
    /// # }
    /// ```
    #[cfg(feature = "tokio")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
    pub async fn cancelled(&self) {
        loop {
            let changed = self.jobs.inner.node.lease_changed();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if self.is_cancelled() {
                return;
            }
            changed.await;
        }
    }

    /// Returns the payload as [`Job::json`](crate::Job::json) has stored it.
    ///
    /// # Errors
    /// Returns an error if the payload is something else.
    #[cfg(feature = "serde")]
    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(self.payload())
    }

    /// Returns the jobs, to schedule others or to cancel them. What is scheduled is stored whatever
    /// becomes of this run.
    ///
    /// # Panics
    /// In a handler in a transaction (`Builder::handler_in_transaction`): what it schedules belongs to
    /// its transaction (`Transaction::schedule`). The run fails by that.
    #[must_use]
    pub fn jobs(&self) -> &Jobs {
        assert!(!self.in_transaction, "this handler works in a transaction: schedule jobs in that");
        &self.jobs
    }
}
