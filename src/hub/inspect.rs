//! Inspecting all shards, without keeping other threads waiting.

use core::time::Duration;

use crate::hub::{Core, ShardCell};
use crate::stats::{InspectedShard, Inspection};
use crate::tick::Tick;
use crate::wheel::Level;

/// The number of slots that one hold of a shard's lock visits, or of entries in them unless a
/// single slot has more.
const VISITS_PER_HOLD: usize = 256;

impl<T> Core<T> {
    pub(crate) fn inspect(&self, most: usize) -> Inspection {
        let size = self.wheel_size();
        let shards = self.shards.iter();
        Inspection {
            tick: Duration::from_nanos(self.tick.as_nanos()),
            wheel_size: size,
            shards: shards.map(|cell| inspect(cell, size, most)).collect(),
        }
    }

    fn wheel_size(&self) -> usize {
        self.shards[0].lock().wheel.geometry().size()
    }
}

fn inspect<T>(cell: &ShardCell<T>, size: usize, most: usize) -> InspectedShard {
    let mut inspected = cell.lock().inspect();
    inspected.next_wakeup = Some(cell.next()).filter(|&next| next < Tick::MAX);
    for (index, level) in inspected.levels.iter_mut().enumerate() {
        level.timers = vec![0; size];
        count(cell, index, level, most);
    }
    inspected
}

/// Counts a level's timers, a bounded number in each hold of the lock.
fn count<T>(cell: &ShardCell<T>, index: usize, level: &mut Level, most: usize) {
    let size = level.timers.len();
    let slots_per_hold = (VISITS_PER_HOLD / most.max(1)).max(1);
    for first in (0..size).step_by(slots_per_hold) {
        let slots = first..size.min(first + slots_per_hold);
        cell.lock().count_in_slots(index, level, slots, most);
        cell.step_aside();
    }
}
