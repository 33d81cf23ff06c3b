//! The engine as everybody has it but the ticker, and what is left in it when
//! nobody has it any more.
//!
//! The ticker outlives the others by the time that it takes to wake up, and
//! would be the last to let go of the core: with that it would drop the payloads
//! of reports that nobody read. So the others count themselves, and the last of
//! them drops what is left. Nothing comes after that: a timer ends by the hand
//! of somebody who counts.

use std::ops::Deref;

use crate::engine::core::{Core, Held, Slot};
use crate::engine::shard::Shard;
use crate::process::Process;
use crate::sync::Arc;

/// How many payloads one hold of a shard's lock takes out.
const LEFTOVERS_PER_HOLD: usize = 32;

pub(crate) struct Shared<T> {
    core: Arc<Core<T>>,
    /// The process that started the engine.
    owner: Process,
}

impl<T> Shared<T> {
    pub(super) fn new(core: Arc<Core<T>>) -> Arc<Shared<T>> {
        let owner = Process::this();
        Arc::new(Shared { core, owner })
    }

    /// For who keeps a share as well, and saves a step to the core by this.
    pub(super) fn core(&self) -> &Arc<Core<T>> {
        &self.core
    }

    /// Whether this is the process that started the engine, and not a forked
    /// child: that could wait for threads that it does not have, and the
    /// payloads are the parent's.
    pub(super) fn is_owned_here(&self) -> bool {
        self.owner.is_this()
    }
}

impl<T> Deref for Shared<T> {
    type Target = Core<T>;

    #[inline]
    fn deref(&self) -> &Core<T> {
        &self.core
    }
}

impl<T> Drop for Shared<T> {
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
    slots: std::slice::Iter<'a, Slot<T>>,
}

impl<'a, T> Leftovers<'a, T> {
    fn of(core: &'a Core<T>) -> Leftovers<'a, T> {
        let slots = core.shards.iter();
        Leftovers { core, slots }
    }

    fn take_some(&self, slot: &Slot<T>) -> Vec<Option<T>> {
        let Held { slot, mut shard } = self.core.hold(slot);
        let leftovers = shard.take_leftovers(LEFTOVERS_PER_HOLD);
        self.core.release(Held { slot, shard });
        leftovers
    }
}

impl<T> Iterator for Leftovers<'_, T> {
    type Item = Vec<Option<T>>;

    fn next(&mut self) -> Option<Vec<Option<T>>> {
        while let Some(slot) = self.slots.as_slice().first() {
            let leftovers = self.take_some(slot);
            if !leftovers.is_empty() {
                return Some(leftovers);
            }
            self.slots.next();
        }
        None
    }
}

impl<T> Drop for Leftovers<'_, T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

impl<T> Shard<T> {
    /// Takes up to `count` of the tasks that wait to be told and of the reports
    /// that wait to be read.
    fn take_leftovers(&mut self, count: usize) -> Vec<Option<T>> {
        let mut leftovers = Vec::new();
        while leftovers.len() < count {
            let Some(leftover) = self.take_leftover() else {
                break;
            };
            leftovers.push(leftover);
        }
        leftovers
    }

    fn take_leftover(&mut self) -> Option<Option<T>> {
        let reports = self.ready.len() - 1;
        let task = (0..reports).find_map(|queue| self.claim(queue, false).0);
        match task {
            Some(task) => Some(Some(task.payload)),
            None => Some(self.claim_report(false).0?.payload),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::{Engine, Timer};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    const TICK: Duration = Duration::from_millis(1);

    /// Counts its drops, of which one panics.
    struct Counted<'a> {
        drops: &'a AtomicUsize,
        panics: bool,
    }

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.drops.fetch_add(1, Ordering::Relaxed);
            assert!(!self.panics, "on purpose");
        }
    }

    /// Leaves so many reports unread, in two shards, and drops all handles while
    /// somebody still has the core, as a ticker may. Returns how many payloads
    /// were dropped by then.
    fn drops_of_unread(count: usize, panics: Option<usize>) -> usize {
        let drops = AtomicUsize::new(0);
        let builder = Engine::builder().shards(2);
        let (engine, clock) = builder.start_virtual().unwrap();
        let core = Arc::clone(engine.shared().core());
        let schedule = |n| {
            let panics = panics == Some(n);
            let drops = &drops;
            let last = Timer::every(TICK, Counted { drops, panics }).times(1);
            engine.schedule(last.reported()).unwrap();
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| (0..count / 2).for_each(schedule));
            // A sanitizer sees what a joined thread did, and nothing of a scope's end.
            other.join().unwrap();
        });
        (count / 2..count).for_each(schedule);
        clock.advance(TICK);
        engine.queue(0).try_iter().for_each(drop);
        assert_eq!(engine.closed().len(), count);
        drop(clock);
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(engine)));
        assert_eq!(dropped.is_err(), panics.is_some());
        let before_the_core = drops.load(Ordering::Relaxed);
        drop(core);
        before_the_core
    }

    #[test]
    fn the_last_handle_drops_what_nobody_read_in_any_number() {
        for count in [0, 1, LEFTOVERS_PER_HOLD, 5 * LEFTOVERS_PER_HOLD + 3] {
            assert_eq!(drops_of_unread(count, None), count);
        }
    }

    #[test]
    fn what_stands_behind_a_drop_that_panics_is_dropped_as_well() {
        for panics in [0, 7, 60, 99] {
            assert_eq!(drops_of_unread(100, Some(panics)), 100);
        }
    }
}
