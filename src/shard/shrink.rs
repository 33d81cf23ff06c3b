//! Giving back a shard's memory, a bounded number of cells at a time.
//!
//! Shrinking moves timers to other entries. While a shard is being walked or drained, a
//! cursor outlives a hold of the lock. Such a shard therefore keeps its timers in place
//! and gives back only the memory behind them. A shard that was shut down gives nothing
//! back (see `shutdown.rs`).

use std::collections::VecDeque;

use slab::Slab;

use crate::shard::body::Body;
use crate::shard::ready::Ready;
use crate::shard::record::{State, TimerRecord};
use crate::shard::{Phase, Shard};
use crate::wheel::{EntryIndex, Linkage, Wheel};

/// The number of cells touched in one hold of a shard's lock. Each may cost one or more
/// cache misses.
pub(crate) const CELLS_PER_HOLD: usize = 256;

/// The memory that a shard no longer needs, to be dropped outside its lock.
type Unneeded<T> = (Slab<TimerRecord<T>>, Vec<VecDeque<EntryIndex>>);

impl<T> Shard<T> {
    pub(crate) fn begin_shrink(&mut self) -> Unneeded<T> {
        if self.phase != Phase::Closed {
            self.wheel.begin_shrink();
        }
        let records = match self.records.is_empty() {
            true => std::mem::take(&mut self.records),
            false => Slab::new(),
        };
        let ahead = self.ready.iter_mut().map(|ready| ready.take_ahead());
        (records, ahead.collect())
    }

    /// Continues to shrink, for a bounded number of cells. Returns whether the work is
    /// done.
    pub(crate) fn shrink_some(&mut self) -> bool {
        self.shrink_within(&mut { CELLS_PER_HOLD })
    }

    /// Continues to shrink until `budget` cells have been touched.
    pub(super) fn shrink_within(&mut self, budget: &mut usize) -> bool {
        if self.phase == Phase::Closed {
            // The lists of a closed shard may contain vacant entries.
            return true;
        }
        if self.phase == Phase::Draining || self.walks > 0 {
            self.wheel.stop_gathering();
        }
        // Ready timers move, too, and other holds may have added some since the last one.
        self.ready.iter_mut().for_each(Ready::forget_ahead);
        let records = &self.records;
        let linkage = |wheel: &Wheel<Body<T>>, at| linkage_of(wheel, records, at);
        self.wheel.shrink_some(budget, linkage)
    }

    /// Notes the beginning of a walk, whose cursor outlives a hold of the lock.
    pub(crate) fn begin_walk(&mut self) {
        self.walks += 1;
        self.wheel.stop_gathering();
    }

    pub(crate) fn end_walk(&mut self) {
        self.walks -= 1;
    }
}

/// Returns the kind of list that a timer of the shard is on.
fn linkage_of<T>(
    wheel: &Wheel<Body<T>>,
    records: &Slab<TimerRecord<T>>,
    at: EntryIndex,
) -> Linkage {
    if Shard::tag_in(wheel, at).is_ready() {
        return Linkage::Elsewhere;
    }
    match Shard::record_in(wheel, at) {
        Some(key) if records[key].state != State::Waiting => Linkage::Elsewhere,
        _ => Linkage::InWheel,
    }
}
