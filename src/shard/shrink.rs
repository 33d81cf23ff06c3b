//! Giving back a shard's memory, a bounded number of cells at a time: the vacant entries
//! behind the last timer. A shard that was shut down gives nothing back (see `shutdown.rs`).

use std::collections::VecDeque;

use slab::Slab;

use crate::shard::record::TimerRecord;
use crate::shard::{Phase, Shard};
use crate::wheel::EntryIndex;

/// The number of entries that one hold of the shard's lock passes. Each costs a cache miss.
pub(crate) const CELLS_PER_HOLD: usize = 256;

/// What is not needed any more, to be dropped after the lock is released.
type Unneeded<T> = (Slab<TimerRecord<T>>, Vec<VecDeque<EntryIndex>>);

impl<T> Shard<T> {
    /// Begins to give memory back: that of the records, if there is none, and that of the
    /// ready lists' prefetching.
    pub(crate) fn begin_shrink(&mut self) -> Unneeded<T> {
        let records = match self.records.is_empty() {
            true => std::mem::take(&mut self.records),
            false => Slab::new(),
        };
        let ahead = self.ready.iter_mut().map(|ready| ready.take_ahead());
        (records, ahead.collect())
    }

    /// Passes a bounded number of entries. Returns whether the wheel's memory was given back.
    pub(crate) fn shrink_some(&mut self) -> bool {
        self.shrink_within(&mut { CELLS_PER_HOLD })
    }

    pub(super) fn shrink_within(&mut self, budget: &mut usize) -> bool {
        // The lists of a closed shard may contain vacant entries.
        self.phase == Phase::Closed || self.wheel.trim_some(budget)
    }
}
