//! The endings of timers, and the reports on them.

// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc;

use crate::id::TimerId;
use crate::tick::Tick;
use crate::timeline::Time;

/// The reason why a timer ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CloseReason {
    /// A one-shot was taken, or the last firing of a counted timer or a task
    /// returned.
    Completed,
    /// The timer was cancelled.
    Cancelled,
    /// The timer was live when the engine was shut down.
    ShutDown,
    /// The timer's only or last firing panicked, or the closure that was to make
    /// its payload.
    Failed,
}

/// The report on a timer that has ended.
///
/// Read from [`Engine::reports`](crate::Engine::reports) for
/// [`reported`](crate::Timer::reported) timers, and returned by
/// [`Engine::shutdown`](crate::Engine::shutdown) for every timer that was live.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Closed<T> {
    /// The timer.
    pub id: TimerId,
    /// The timer's name, if it has one.
    pub name: Option<Arc<str>>,
    /// The timer's queue.
    pub queue: usize,
    /// The tick at which the timer ended: the due tick of its last firing if it completed
    /// or failed, otherwise the tick at which it was cancelled or shut down.
    pub tick: Tick,
    /// The time at which the timer was due next, or last if a worker had its last firing:
    /// the beginning of a tick. To move the timers of a shutdown to another engine, schedule
    /// their payloads there for this time.
    pub deadline: Time,
    /// The number of deliveries.
    pub firings: u64,
    /// The reason why the timer ended.
    pub reason: CloseReason,
    /// The payload, unless it went to the caller of `cancel`, to a worker, or
    /// into the list that shutdown returned. `None` for a task: the worker drops
    /// a closure that has run, so that
    /// [`TaskEngine::join`](crate::TaskEngine::join) can wait for the drop.
    pub payload: Option<T>,
}
