//! Freeing memory while other threads use the engine: one shard after another, with a
//! bounded number of entries in each hold of the lock.

use crate::hub::{Core, ShardCell};

impl<T> Core<T> {
    /// Frees the memory that live timers do not need.
    pub(crate) fn shrink(&self) {
        for cell in &self.shards {
            let unneeded = cell.lock().begin_shrink();
            drop(unneeded);
            while !self.shrink_some(cell) {
                cell.step_aside();
            }
        }
    }

    fn shrink_some(&self, cell: &ShardCell<T>) -> bool {
        cell.lock().shrink_some()
    }
}
