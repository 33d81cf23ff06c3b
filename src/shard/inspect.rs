//! Inspecting a shard, in several holds of its lock; its memory.

use core::ops::Range;

use crate::shard::record::TimerRecord;
use crate::shard::{Phase, Shard};
use crate::stats::InspectedShard;
use crate::wheel::Level;

impl<T> Shard<T> {
    /// Returns everything but the counts of slots and the next wake-up.
    pub(crate) fn inspect(&self) -> InspectedShard {
        // The last list is that of the reports.
        let queues = &self.ready[..self.ready.len() - 1];
        InspectedShard {
            ledger: self.ledger(),
            queued: queues.iter().map(|ready| ready.len()).collect(),
            next_wakeup: None,
            reached: self.wheel.now(),
            levels: match self.phase {
                Phase::Closed => Vec::new(),
                _ => self.wheel.uncounted_levels(),
            },
        }
    }

    /// Returns the number of bytes of the shard's timers: entries and records.
    pub(crate) fn bytes(&self) -> usize {
        let records = self.records.capacity() * size_of::<TimerRecord<T>>();
        self.wheel.bytes() + records
    }

    /// Counts the timers in some slots of a level, each up to `most`. Leaves the counts
    /// of a closed shard, whose lists are no longer maintained.
    pub(crate) fn count_in_slots(
        &self,
        index: usize,
        level: &mut Level,
        slots: Range<usize>,
        most: usize,
    ) {
        if self.phase != Phase::Closed {
            let counts = &mut level.timers;
            self.wheel.count_in_slots(index, slots, most, counts);
        }
    }
}
