//! The share in the core that every owner other than the ticker holds.
//!
//! The ticker outlives the other owners by the time that it takes to wake up. As the
//! last owner of the core, it would drop the payloads of unread reports. So the other
//! owners are counted, and the last of them drops the remaining payloads. No payload
//! comes later, because only a counted owner can end a timer.

use std::ops::Deref;

use crate::hub::{Core, Held, ShardCell};
use crate::sync::Arc;

/// The number of payloads that one hold of a shard's lock takes out.
pub(crate) const LEFTOVERS_PER_HOLD: usize = 32;

pub(crate) struct SharedCore<T> {
    core: Arc<Core<T>>,
}

impl<T> SharedCore<T> {
    pub(crate) fn new(core: Arc<Core<T>>) -> Arc<SharedCore<T>> {
        Arc::new(SharedCore { core })
    }

    /// Returns the core itself, saving a step for a holder that also keeps its share.
    pub(crate) fn core(&self) -> &Arc<Core<T>> {
        &self.core
    }
}

impl<T> Deref for SharedCore<T> {
    type Target = Core<T>;

    #[inline]
    fn deref(&self) -> &Core<T> {
        &self.core
    }
}

impl<T> Drop for SharedCore<T> {
    fn drop(&mut self) {
        let mut leftovers = Leftovers::of(&self.core);
        leftovers.by_ref().for_each(drop);
    }
}

/// The remaining payloads, a few at a time, because they must be dropped outside every
/// lock. If a drop panics, the rest are still dropped.
struct Leftovers<'a, T> {
    core: &'a Core<T>,
    cells: std::slice::Iter<'a, ShardCell<T>>,
}

impl<'a, T> Leftovers<'a, T> {
    fn of(core: &'a Core<T>) -> Leftovers<'a, T> {
        let cells = core.shards.iter();
        Leftovers { core, cells }
    }

    fn take_some(&self, cell: &ShardCell<T>) -> Vec<Option<T>> {
        let Held { cell, mut shard } = self.core.hold(cell);
        let leftovers = shard.take_leftovers(LEFTOVERS_PER_HOLD);
        self.core.release(Held { cell, shard });
        leftovers
    }
}

impl<T> Iterator for Leftovers<'_, T> {
    type Item = Vec<Option<T>>;

    fn next(&mut self) -> Option<Vec<Option<T>>> {
        while let Some(cell) = self.cells.as_slice().first() {
            let leftovers = self.take_some(cell);
            if !leftovers.is_empty() {
                return Some(leftovers);
            }
            self.cells.next();
        }
        None
    }
}

impl<T> Drop for Leftovers<'_, T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}
