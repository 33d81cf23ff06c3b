//! Which closed reports are still to come, and when it is certain that none is.
//!
//! A shard counts the reported timers that it has accepted and whose report is
//! not there yet: they are live, or a firing of them is in a worker's hands, or
//! their task has still to be told. When the shard is closed nothing is added,
//! and once nothing is left it is *settled*. Whoever settles the last shard of
//! an engine tells the readers to stop.

use crate::engine::core::Core;
use crate::engine::shard::{Phase, Shard};
use crate::sync::{AtomicUsize, Ordering};

/// How many shards of an engine are not settled.
pub(super) struct Unsettled(AtomicUsize);

impl Unsettled {
    pub(super) fn new(shards: usize) -> Unsettled {
        Unsettled(AtomicUsize::new(shards))
    }

    /// Counts a shard out. Returns whether it was the last one.
    ///
    /// The readers find every report: each shard's last one was entered under
    /// its lock before this, and the releases lead up to whoever is last.
    fn settle_one(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl<T> Core<T> {
    /// A shard has said that it is settled.
    pub(super) fn settled(&self) {
        if self.unsettled.settle_one() {
            self.doorbell(self.queues()).stop();
        }
    }
}

impl<T> Shard<T> {
    /// Counts a timer as accepted.
    pub(super) fn accept(&mut self, reported: bool) {
        self.ledger.accepted += 1;
        self.to_report += usize::from(reported);
    }

    /// A report is there.
    pub(super) fn has_reported(&mut self) {
        self.to_report -= 1;
        self.see_if_settled();
    }

    /// Accepts nothing from here on.
    pub(super) fn close_for_good(&mut self) {
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
