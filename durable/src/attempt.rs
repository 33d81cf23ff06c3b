//! A job as its handler sees it.

use std::fmt;

use crate::job::{JobId, StoredJob};
use crate::jobs::Jobs;
use crate::wall::WallTime;

/// One run of a job's handler.
pub struct Attempt<'a> {
    job: &'a StoredJob,
    fence: u64,
    jobs: &'a Jobs,
}

impl fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut attempt = f.debug_struct("Attempt");
        attempt
            .field("id", &self.id())
            .field("kind", &self.job.kind);
        attempt
            .field("number", &self.number())
            .finish_non_exhaustive()
    }
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(job: &'a StoredJob, fence: u64, jobs: &'a Jobs) -> Attempt<'a> {
        Attempt { job, fence, jobs }
    }

    /// Returns the job as it was when it was started.
    #[must_use]
    pub fn job(&self) -> &StoredJob {
        self.job
    }

    /// Returns the job's id. It is the same in every attempt, and so serves others as a token
    /// by which they know a repeated request.
    #[must_use]
    pub fn id(&self) -> JobId {
        self.job.id
    }

    /// Returns the bytes.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.job.payload
    }

    /// Returns the number of this attempt since the last success, from 1 on.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.job.attempts
    }

    /// Returns the time at which this run was due.
    #[must_use]
    pub fn due(&self) -> WallTime {
        self.job.due
    }

    /// Returns a number that is higher than that of every earlier holder of the job, in every
    /// store. A resource that remembers the highest number for each job, and refuses lower ones,
    /// is safe from a node that was paused. Runs of a job on one node may have the same number.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Returns the jobs, to schedule others or to cancel them.
    #[must_use]
    pub fn jobs(&self) -> &Jobs {
        self.jobs
    }
}
