//! Jobs that are refused before they are stored.

use crate::job::{Job, JobId};
use crate::store::{Answer, Change, NewJob, Result, StoreError};
use crate::wall::WallTime;

pub(crate) const MOST_KIND: usize = 256;
const MOST_KEY: usize = 1_024;
const MOST_PAYLOAD: usize = 16 << 20;

/// A job that was not stored.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Refused {
    /// The job.
    pub job: Box<Job>,
    /// The reason.
    pub reason: Refusal,
}

/// The reason why a job was not stored.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// This waiting or running job has the key.
    #[error("job {0} has the key: cancel it first, or replace it with `IfTaken::Replace`")]
    KeyTaken(JobId),
    /// The kind is longer than 256 bytes, the key than 1,024, or the payload than 16 MiB.
    #[error(
        "too large: a kind has at most 256 bytes, a key 1,024, a payload 16 MiB; store larger data elsewhere"
    )]
    TooLarge,
    /// The kind or the key contains a NUL, which a database cannot keep in a text.
    #[error("a kind or key contains a NUL: leave it out, or put it into the payload")]
    Nul,
    /// The recurrence has no occurrence.
    #[error("never due: the cron expression has no occurrence")]
    NeverDue,
    /// The store does not write.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Checks the sizes, and reads the clock.
pub(crate) fn check(job: Job, now: WallTime, has_room: bool) -> Result<NewJob, Refused> {
    let key = job.key.as_ref().map_or(0, String::len);
    let refuse = |job, reason| {
        let job = Box::new(job);
        Err(Refused { job, reason })
    };
    if job.kind.len() > MOST_KIND || key > MOST_KEY || job.payload.len() > MOST_PAYLOAD {
        return refuse(job, Refusal::TooLarge);
    }
    if job.kind.contains('\0') || job.key.as_ref().is_some_and(|key| key.contains('\0')) {
        return refuse(job, Refusal::Nul);
    }
    if !has_room {
        return refuse(job, Refusal::Store(StoreError::Full));
    }
    let reason = Refusal::NeverDue;
    NewJob::new(job, now).map_err(|job| Refused { job, reason })
}

/// Returns the id of a job that was to be stored, or the job.
pub(crate) fn scheduled(answer: Result<Answer>, change: Change) -> Result<JobId, Refused> {
    let reason = match answer {
        Ok(Answer::Placed(placed)) => return Ok(placed.id),
        Ok(Answer::Kept(id)) => return Ok(id),
        Ok(Answer::Taken(id)) => Refusal::KeyTaken(id),
        Ok(Answer::Damaged(how)) => Refusal::Store(StoreError::Damaged(how)),
        Err(error) => Refusal::Store(error),
        Ok(answer) => unreachable!("a store answered {answer:?} to an insert"),
    };
    let Change::Insert(new) = change else {
        unreachable!("{change:?} came back from an insert");
    };
    let job = Box::new(new.job);
    Err(Refused { job, reason })
}
