//! An engine as seen from outside.

mod lateness;
mod ledger;
#[cfg(feature = "metrics")]
mod publish;

// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc;

pub use lateness::Lateness;
pub use ledger::Ledger;

/// Counts of an engine at one moment, from
/// [`Engine::snapshot`](crate::Engine::snapshot).
///
/// With the feature `metrics`, it can be published; see `Snapshot::publish`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Snapshot {
    /// The engine's name; see [`Builder::name`](crate::Builder::name).
    pub name: Arc<str>,
    /// The account of all timers, as returned by [`Engine::ledger`](crate::Engine::ledger).
    /// It agrees with `lateness`, because both are read under the same lock.
    pub ledger: Ledger,
    /// The number of expired timers waiting in each queue.
    pub queued: Vec<usize>,
    /// The number of unread reports.
    pub reports: usize,
    /// The lateness of timers when they entered their queues.
    pub lateness: Lateness,
    /// The number of times that the ticker thread woke up.
    pub wakeups: u64,
    /// The number of task runs that panicked.
    pub panics: u64,
}
