//! Giving memory back while others go on using the engine: one shard after the
//! other, and a bounded number of cells in each hold of its lock.

use crate::shared::{Core, Slot};

impl<T> Core<T> {
    /// Gives back the memory that is not needed for live timers.
    pub(crate) fn shrink(&self) {
        for slot in &self.shards {
            let unneeded = slot.lock().begin_shrink();
            drop(unneeded);
            while !self.shrink_some(slot) {
                slot.step_aside();
            }
        }
    }

    fn shrink_some(&self, slot: &Slot<T>) -> bool {
        slot.lock().shrink_some()
    }
}
