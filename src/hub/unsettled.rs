//! The number of shards from which a report may still come.
//!
//! Each shard knows when it is *settled* (see `shard/shutdown.rs`). The thread that
//! settles the last shard of an engine tells the readers that no report will follow.

use crate::sync::{AtomicUsize, Ordering};

/// The number of shards of an engine that are not settled.
pub(crate) struct Unsettled(AtomicUsize);

impl Unsettled {
    pub(crate) fn new(shards: usize) -> Unsettled {
        Unsettled(AtomicUsize::new(shards))
    }

    /// Notes that a shard is settled. Returns whether it was the last one.
    ///
    /// The readers find every report: each shard's last report was entered under its lock
    /// before this call, whose release happens before the last call's acquire.
    pub(crate) fn settle_one(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}
