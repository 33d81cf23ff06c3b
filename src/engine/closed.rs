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
/// Read from [`Engine::closed`](crate::Engine::closed) for timers that asked
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

/// The account of every timer that an engine has accepted.
///
/// While no call is in progress, [`Ledger::is_balanced`] holds: every timer
/// that was accepted is live or has ended, once, for one reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Ledger {
    /// Timers accepted since the start.
    pub accepted: u64,
    /// Timers that have not ended, counted by the entries that they take up;
    /// [`Engine::live`](crate::Engine::live) walks through them.
    pub live: u64,
    /// Timers that ended by firing for the last time.
    pub completed: u64,
    /// Timers that ended by being cancelled.
    pub cancelled: u64,
    /// Timers that ended by shutdown.
    pub shut_down: u64,
    /// Timers whose last firing panicked.
    pub failed: u64,
}

impl Ledger {
    /// Whether `accepted = live + completed + cancelled + shut_down + failed`.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        let ended = self.completed + self.cancelled + self.shut_down + self.failed;
        self.accepted == self.live + ended
    }

    pub(crate) fn ended(&mut self, reason: CloseReason) {
        *match reason {
            CloseReason::Completed => &mut self.completed,
            CloseReason::Cancelled => &mut self.cancelled,
            CloseReason::ShutDown => &mut self.shut_down,
            CloseReason::Failed => &mut self.failed,
        } += 1;
    }

    pub(crate) fn add(&mut self, other: &Ledger) {
        self.accepted += other.accepted;
        self.live += other.live;
        self.completed += other.completed;
        self.cancelled += other.cancelled;
        self.shut_down += other.shut_down;
        self.failed += other.failed;
    }
}
