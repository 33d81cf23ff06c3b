//! How timers end, and the account of it.

use crate::id::TimerId;
use crate::tick::Tick;

/// How a timer ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CloseReason {
    /// A one-shot was taken, or the last firing of a counted timer or a task
    /// returned.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It was live when the engine was shut down.
    ShutDown,
    /// A panic ended its only or its last firing.
    Failed,
}

/// The report on a timer that has ended.
///
/// Read from [`Engine::reports`](crate::Engine::reports) for timers that asked
/// for it, and returned by [`Engine::shutdown`](crate::Engine::shutdown) for
/// every timer that was live.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Closed<T> {
    /// The timer.
    pub id: TimerId,
    /// The queue that it fired into.
    pub queue: usize,
    /// The tick at which it ended: that of its last firing where it completed
    /// or failed, else the one at which it was cancelled or shut down.
    pub tick: Tick,
    /// How often it was delivered.
    pub firings: u64,
    /// How it ended.
    pub reason: CloseReason,
    /// The payload, unless it went somewhere else: to the caller of `cancel`,
    /// to the worker that took it, to the list that shutdown returned. The
    /// report on a task has none: a closure that has run is dropped by its
    /// worker, so that [`TaskEngine::join`](crate::TaskEngine::join) can wait
    /// for that.
    pub payload: Option<T>,
}
