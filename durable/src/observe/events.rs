//! Events with the target `tickwheel_durable`, and a span around each handler.

use std::time::Duration;

pub(crate) use tracing::Span;
use tracing::{error, info, info_span, warn};

use crate::job::StoredJob;
use crate::store::{Lease, StoreError, Then};

const TARGET: &str = "tickwheel_durable";

pub(crate) fn opened(owner: &str, delivers: bool) {
    info!(target: TARGET, owner, delivers, "opened");
}

pub(crate) fn closed(owner: &str) {
    info!(target: TARGET, owner, "closed");
}

pub(crate) fn lease_taken(owner: &str, lease: Lease) {
    info!(target: TARGET, owner, fence = lease.fence, "lease taken");
}

pub(crate) fn lease_lost(owner: &str, lease: Lease) {
    warn!(target: TARGET, owner, fence = lease.fence, "lease lost");
}

pub(crate) fn store_failed(owner: &str, error: &StoreError) {
    error!(target: TARGET, owner, %error, "store failed");
}

pub(crate) fn recovered(owner: &str) {
    info!(target: TARGET, owner, "store recovered");
}

pub(crate) fn clock_stepped(owner: &str, by: Duration) {
    warn!(target: TARGET, owner, ?by, "wall clock stepped");
}

/// Returns the span of a handler, so that its events name its job.
pub(crate) fn span(job: &StoredJob) -> Span {
    let (id, kind, attempt) = (job.id, job.kind.as_str(), job.attempts);
    info_span!(target: TARGET, "job", %id, kind, attempt)
}

/// Reports a failed attempt or a death. A success is no event: it is counted.
pub(crate) fn ended(owner: &str, job: &StoredJob, then: &Then) {
    let (id, kind, attempt) = (job.id, job.kind.as_str(), job.attempts);
    match then {
        Then::Die { failure, .. } => {
            error!(target: TARGET, owner, %id, kind, attempt, failure, "dead letter");
        }
        Then::Again {
            due,
            failure: Some(failure),
        } => {
            warn!(target: TARGET, owner, %id, kind, attempt, failure, next = %due, "attempt failed")
        }
        Then::Again { failure: None, .. } | Then::End => {}
    }
}
