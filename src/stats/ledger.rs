//! The account of every timer.

use crate::timer::CloseReason;

/// The account of every timer that an engine has accepted.
///
/// While no call is in progress, [`Ledger::is_balanced`] holds: every accepted timer is
/// live or has ended once, for one reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ledger {
    /// Timers accepted since the start.
    pub accepted: u64,
    /// Timers that have not ended, counted by the entries that they occupy;
    /// [`Engine::live`](crate::Engine::live) visits them.
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
    /// Returns whether `accepted = live + completed + cancelled + shut_down + failed`.
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
