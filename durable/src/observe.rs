//! What a node has done, for operators: counts, and events of the crate `tracing`.
//!
//! The node calls an [`Observer`] after it has done something, and never under a lock of its
//! own, because a subscriber of events is foreign code that may block. It may also panic, which
//! must end no thread of the node. Counts are kept in any case: beside a commit, they cost nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use parking_lot::Mutex;
use tickwheel::stats::Histogram;
pub(crate) use tracing::Span;
use tracing::{error, info, info_span, warn};

use crate::job::StoredJob;
use crate::outcome::{Outcome, drop_thrown};
use crate::store::{Answer, Change, Lease, Result, StoreError, Then};
use crate::wall::WallTime;

/// The target of all events.
const TARGET: &str = "tickwheel_durable";

/// What a node has done since it was opened.
///
/// Each attempt ends as one of `done`, `again`, `failed`, `dead` and `given_up`, or still runs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Counts {
    /// Attempts: jobs that were started.
    pub attempts: u64,
    /// Runs that ended with [`Outcome::Done`].
    pub done: u64,
    /// Runs that ended with [`Outcome::AgainAt`] or [`Outcome::AgainAfter`].
    pub again: u64,
    /// Runs that failed, and whose jobs are tried again.
    pub failed: u64,
    /// Runs after which a job is a dead letter, unless the outcome is [refused](Counts::refused).
    pub dead: u64,
    /// Attempts without a run, because the lease was lost in between.
    pub given_up: u64,
    /// Outcomes that the store did not accept: the lease was lost, or the job was cancelled,
    /// moved or replaced while it ran.
    pub refused: u64,
    /// Leases that were taken. A renewed lease does not count.
    pub leases_taken: u64,
    /// Leases that were lost: another node took over, or the lease was not renewed in time.
    pub leases_lost: u64,
    /// Commits that succeeded.
    pub commits: u64,
    /// Changes in these commits.
    pub changes: u64,
    /// Commits that failed, requests for a lease, and loads of the window.
    pub store_failures: u64,
    /// How often the store accepted changes again after a failure.
    pub recoveries: u64,
    /// Steps of the wall clock.
    pub clock_steps: u64,
    /// The times from a job's due time to the start of its handler.
    pub lag: Histogram,
}

/// Counts what a node does, and emits events.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) owner: String,
    pub(crate) counts: Mutex<Counts>,
}

impl Observer {
    pub(crate) fn new(owner: String) -> Observer {
        let counts = Mutex::default();
        Observer { owner, counts }
    }

    pub(crate) fn opened(&self, delivers: bool) {
        tell(|| info!(target: TARGET, owner = self.owner, delivers, "opened"));
    }

    pub(crate) fn closed(&self) {
        tell(|| info!(target: TARGET, owner = self.owner, "closed"));
    }

    /// Takes note of a commit.
    pub(crate) fn committed(&self, changes: &[Change], result: &Result<Vec<Answer>>) {
        let answers = match result {
            Ok(answers) => answers,
            Err(error) => return self.store_failed(error),
        };
        let mut counts = self.counts.lock();
        counts.commits += 1;
        counts.changes += changes.len() as u64;
        for (change, answer) in changes.iter().zip(answers) {
            counts.attempts += u64::from(matches!(answer, Answer::Started { .. }));
            counts.refused += u64::from(is_refused(change, answer));
        }
    }

    /// Takes note of a commit that failed, of a request for a lease, or of a load.
    pub(crate) fn store_failed(&self, error: &StoreError) {
        self.counts.lock().store_failures += 1;
        tell(|| error!(target: TARGET, owner = self.owner, %error, "store failed"));
    }

    pub(crate) fn recovered(&self) {
        self.counts.lock().recoveries += 1;
        tell(|| info!(target: TARGET, owner = self.owner, "store recovered"));
    }

    /// Takes note of the answer to a request for a lease. The node had `before`.
    pub(crate) fn leased(&self, before: Option<Lease>, answer: &Result<Option<Lease>>) {
        match answer {
            Ok(Some(lease)) if before.map(|lease| lease.fence) != Some(lease.fence) => {
                self.counts.lock().leases_taken += 1;
                let (owner, fence) = (&self.owner, lease.fence);
                tell(|| info!(target: TARGET, owner, fence, "lease taken"));
            }
            Ok(_) => {}
            Err(error) => self.store_failed(error),
        }
    }

    pub(crate) fn lost(&self, lease: Option<Lease>) {
        if let Some(lease) = lease {
            self.counts.lock().leases_lost += 1;
            let (owner, fence) = (&self.owner, lease.fence);
            tell(|| warn!(target: TARGET, owner, fence, "lease lost"));
        }
    }

    pub(crate) fn clock_stepped(&self, by: Duration) {
        self.counts.lock().clock_steps += 1;
        tell(|| warn!(target: TARGET, owner = self.owner, ?by, "wall clock stepped"));
    }

    /// Takes note of an attempt that has no run.
    pub(crate) fn given_up(&self) {
        self.counts.lock().given_up += 1;
    }

    /// Takes note of a run that begins at `now`, and returns its span.
    pub(crate) fn begun(&self, job: &StoredJob, now: WallTime) -> Span {
        self.counts.lock().lag.record(now.since(job.due));
        let (id, kind, attempt) = (job.id, job.kind.as_str(), job.attempts);
        tell(|| info_span!(target: TARGET, "job", %id, kind, attempt)).unwrap_or(Span::none())
    }

    /// Takes note of the end of a run, and of what becomes of the job.
    pub(crate) fn ended(&self, job: &StoredJob, outcome: &Outcome, then: &Then) {
        let mut counts = self.counts.lock();
        match (then, outcome) {
            (Then::Die { .. }, _) => counts.dead += 1,
            (_, Outcome::Done) => counts.done += 1,
            (_, Outcome::AgainAt(_) | Outcome::AgainAfter(_)) => counts.again += 1,
            (_, Outcome::Failed(_) | Outcome::Never(_)) => counts.failed += 1,
        }
        drop(counts);
        // A success is no event: it is counted.
        let (id, kind, attempt) = (job.id, job.kind.as_str(), job.attempts);
        tell(|| match then {
            Then::Die { failure, .. } => {
                error!(target: TARGET, owner = self.owner, %id, kind, attempt, failure, "dead letter");
            }
            Then::Again { due, failure: Some(failure) } => {
                warn!(target: TARGET, owner = self.owner, %id, kind, attempt, failure, next = %due, "attempt failed")
            }
            Then::Again { failure: None, .. } | Then::End => {}
        });
    }
}

/// Calls a subscriber. Returns `None` if it panics.
fn tell<R>(call: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(call)).map_err(drop_thrown).ok()
}

/// Returns whether the store did not accept an outcome.
fn is_refused(change: &Change, answer: &Answer) -> bool {
    let is_accepted = matches!(answer, Answer::Placed(_) | Answer::Removed(_) | Answer::Changed(_));
    matches!(change, Change::Finish { .. }) && !is_accepted
}
