//! When it is certain that no report will come any more.
//!
//! Each shard knows when it is *settled* (see `shard/shutdown.rs`). The thread that
//! settles the last shard of an engine stops the readers of reports.

use crate::sync::{AtomicUsize, Ordering};

/// How many shards of an engine are not settled.
pub(crate) struct Unsettled(AtomicUsize);

impl Unsettled {
    pub(crate) fn new(shards: usize) -> Unsettled {
        Unsettled(AtomicUsize::new(shards))
    }

    /// Counts a shard out. Returns whether it was the last one.
    ///
    /// The readers find every report: each shard's last one was entered under its
    /// lock before this, and this release happens before the last thread's acquire.
    pub(crate) fn settle_one(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}
