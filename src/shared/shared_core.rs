//! The engine as everybody has it but the ticker, and what is left in it when
//! nobody has it any more.
//!
//! The ticker outlives the others by the time that it takes to wake up, and
//! would be the last to let go of the core: with that it would drop the payloads
//! of reports that nobody read. So the others count themselves, and the last of
//! them drops what is left. Nothing comes after that: a timer ends by the hand
//! of somebody who counts.

use std::ops::Deref;

use crate::process::Process;
use crate::shared::{Core, Held, ShardCell};
use crate::sync::Arc;

/// How many payloads one hold of a shard's lock takes out.
pub(crate) const LEFTOVERS_PER_HOLD: usize = 32;

pub(crate) struct SharedCore<T> {
    core: Arc<Core<T>>,
    /// The process that started the engine.
    owner: Process,
}

impl<T> SharedCore<T> {
    pub(crate) fn new(core: Arc<Core<T>>) -> Arc<SharedCore<T>> {
        let owner = Process::this();
        Arc::new(SharedCore { core, owner })
    }

    /// For who keeps a share as well, and saves a step to the core by this.
    pub(crate) fn core(&self) -> &Arc<Core<T>> {
        &self.core
    }

    /// Whether this is the process that started the engine, and not a forked
    /// child: that could wait for threads that it does not have, and the
    /// payloads are the parent's.
    pub(crate) fn is_owned_here(&self) -> bool {
        self.owner.is_this()
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
        if self.is_owned_here() {
            let mut leftovers = Leftovers::of(&self.core);
            leftovers.by_ref().for_each(drop);
        } else {
            std::mem::forget(Arc::clone(&self.core));
        }
    }
}

/// Payloads that nobody will ask for, a few at a time, so that they are dropped
/// outside of every lock. Where a drop panics the rest is dropped all the same.
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
