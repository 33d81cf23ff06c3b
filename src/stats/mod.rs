//! An engine as seen from outside.

mod histogram;
mod inspection;
mod ledger;
#[cfg(feature = "metrics")]
mod publish;
mod refused_timers;

// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc;
use std::time::Duration;

pub use histogram::Histogram;
pub use inspection::{InspectedShard, Inspection};
pub use ledger::Ledger;
pub use refused_timers::RefusedTimers;

/// Counts of an engine at one moment, from
/// [`Engine::snapshot`](crate::Engine::snapshot).
///
/// With the feature `metrics`, it can be published; see `Snapshot::publish`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Snapshot {
    /// The engine's name; see [`Builder::name`](crate::Builder::name).
    pub name: Arc<str>,
    /// The account of all timers, as returned by
    /// [`Engine::ledger`](crate::Engine::ledger). It agrees with `lateness`, because both
    /// are read under the same lock.
    pub ledger: Ledger,
    /// The number of timers that were not accepted.
    pub refused: RefusedTimers,
    /// The bound on live timers; see [`Builder::max_timers`](crate::Builder::max_timers).
    pub max_timers: Option<usize>,
    /// The bytes that the engine has allocated for timers: entries, with the payloads in
    /// them, and records, both occupied and vacant.
    /// [`Engine::shrink`](crate::Engine::shrink) gives back what live timers do not need.
    /// Leaves out names, and what payloads themselves own.
    pub memory: usize,
    /// The time for which due timers have been waiting to be found due: how far the
    /// ticker, or the caller's loop, is behind. Measured from the earliest tick at which
    /// a shard wanted to be visited: that of a timer, even if the timer was cancelled
    /// since, or the start of a slot. Zero if no such tick has come. `lateness` cannot
    /// show a ticker that has stopped, because it counts only timers that were found due.
    pub behind: Duration,
    /// The number of expired timers waiting in each queue.
    pub queued: Vec<usize>,
    /// The number of unread reports.
    pub reports: usize,
    /// The lateness of timers when they entered their queues: from the deadline, rounded
    /// up to a tick, to the moment at which the ticker found the timer due. Only the
    /// ticker records it. A firing that is caught up late enters its queue without it.
    pub lateness: Histogram,
    /// The lateness of firings when a worker took them: from the same deadline to that
    /// moment. If this exceeds `lateness`, firings wait for a worker. Empty unless the
    /// engine [measures work](crate::Builder::measure_work), as a
    /// [`TaskEngine`](crate::TaskEngine) does. Leaves out tasks that run because their
    /// timers were cancelled or shut down.
    pub lateness_at_start: Histogram,
    /// The time for which workers held firings: for a task, the duration of its run.
    /// Empty unless the engine measures work. Leaves out what `held` leaves out.
    pub durations: Histogram,
    /// The number of firings that workers hold now. In a
    /// [`TaskEngine`](crate::TaskEngine), it is the number of busy workers.
    ///
    /// Only lent firings are held: those of tasks and of repeating timers. The payload of
    /// another one-shot belongs to the worker that took it.
    pub held: usize,
    /// The number of worker threads that a [`TaskEngine`](crate::TaskEngine) is to have;
    /// see [`TaskEngine::workers`](crate::TaskEngine::workers). Zero in an engine whose
    /// workers are the caller's own threads, or in a driven one.
    pub workers: usize,
    /// The number of times that the ticker thread woke up.
    pub wakeups: u64,
    /// The number of task runs that panicked, and of calls of async tasks' wakers
    /// that did.
    pub panics: u64,
}
