//! How timers end, and the account of it.

use crate::id::TimerId;
use crate::tick::Tick;

/// How a timer ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CloseReason {
    /// A one-shot was taken, or the last firing of a counted timer or a task
    /// returned.
    Completed,
    /// The timer was cancelled.
    Cancelled,
    /// The timer was live when the engine was shut down.
    ShutDown,
    /// A panic ended its only or its last firing.
    Failed,
}

/// The report on a timer that has ended.
///
/// Read from [`Engine::reports`](crate::Engine::reports) for
/// [`reported`](crate::Timer::reported) timers, and returned by [`Engine::shutdown`](crate::Engine::shutdown) for
/// every timer that was live.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Closed<T> {
    /// The timer.
    pub id: TimerId,
    /// The queue that it fired into.
    pub queue: usize,
    /// The tick at which the timer ended: the due tick of its last firing if it
    /// completed or failed, else the tick at which it was cancelled or shut down.
    pub tick: Tick,
    /// The number of deliveries.
    pub firings: u64,
    /// How it ended.
    pub reason: CloseReason,
    /// The payload, unless the caller of `cancel`, a worker, or the list that
    /// shutdown returned got it. `None` for a task: the worker drops a closure that
    /// has run, so that [`TaskEngine::join`](crate::TaskEngine::join) can wait for
    /// that.
    pub payload: Option<T>,
}
