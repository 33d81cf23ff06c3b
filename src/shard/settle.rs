//! When it is certain that no report will come of a shard any more.
//!
//! A shard counts the reported timers that it has accepted and whose report is
//! not there yet: they are live, or a firing of them is in a worker's hands, or
//! their task has still to be told. When the shard is closed nothing is added,
//! and once nothing is left it is *settled*.

use crate::shard::{Phase, Shard};

impl<T> Shard<T> {
    /// Counts a timer as accepted.
    pub(crate) fn accept(&mut self, reported: bool) {
        self.ledger.accepted += 1;
        self.to_report += usize::from(reported);
    }

    /// A report is there.
    pub(crate) fn has_reported(&mut self) {
        self.to_report -= 1;
        self.see_if_settled();
    }

    /// Accepts nothing from here on.
    pub(crate) fn close_for_good(&mut self) {
        if self.phase != Phase::Closed {
            self.phase = Phase::Closed;
            self.see_if_settled();
        }
    }

    /// Says so once: nothing is accepted when the shard is closed, so that the
    /// count reaches zero, or is zero at the closing, only once.
    fn see_if_settled(&mut self) {
        if self.phase == Phase::Closed && self.to_report == 0 {
            self.signals.settled = true;
            self.signalled = true;
        }
    }
}
