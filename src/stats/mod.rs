//! An engine seen from outside.

mod lateness;
mod ledger;
#[cfg(feature = "metrics")]
mod publish;

pub use lateness::Lateness;
pub use ledger::Ledger;

/// Counts of an engine, as they were when it was asked; from
/// [`Engine::snapshot`](crate::Engine::snapshot).
///
/// With the feature `metrics` it can be published; see `Snapshot::publish`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Snapshot {
    /// The account of all timers, as from
    /// [`Engine::ledger`](crate::Engine::ledger): in here because it is taken in
    /// the same look at each shard as the lateness, so that one dashboard does
    /// not show two moments.
    pub ledger: Ledger,
    /// How many expired timers wait in each queue.
    pub queued: Vec<usize>,
    /// How many closed reports wait to be read.
    pub reports: usize,
    /// How long after their deadlines timers were put into their queues.
    pub lateness: Lateness,
    /// How often the ticker thread was woken.
    pub wakeups: u64,
    /// How many runs of tasks have panicked.
    pub panics: u64,
}
