//! Giving memory back: timers are brought together at the beginning of the
//! block, and what is then vacant at its end is cut off.
//!
//! That is done in steps which touch a bounded number of entries, so that an
//! engine can let go of a shard's lock in between: `entries/pass.rs` has what is kept
//! from one step to the next. A timer keeps its id (see `entries/moved.rs`) and its
//! place among others: it goes to an entry of its lane, where its neighbours
//! are linked to it, or, if its lane is full, it is linked again like one that
//! is moved to its own deadline. The heads of levels that were made late stand
//! among the timers; at the end they slide down to the last of these.
//!
//! When entries are taken away, nobody may hold an `EntryIndex` of one. Between two calls
//! of the wheel these do: lists, whose neighbours are linked anew when a timer
//! or a head is moved; `Levels`, told where its heads went; `Wheel::fronts`,
//! likewise; the lists of vacant entries, which have none of those that can be
//! taken away (see `entries/pass.rs`); `Moved`, which has live timers only. Whatever else
//! remembers an index asks [`Entries::entry_at`] or [`Entries::find`]: ids, what is
//! being sorted, the middle of a list, walks. Hints for the processor may be
//! wrong. A paused cascade and a slot that is being fired look their lists up
//! again.
//!
//! [`Entries::entry_at`]: super::entries::Entries::entry_at
//! [`Entries::find`]: super::entries::Entries::find

use super::Wheel;
use super::entries::{Below, EntryIndex, Gather, LANES, Stage};
use super::work::{Fronts, SORTING, Work};

/// How a timer hangs, which says where it can be brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hangs {
    /// On a slot's list, or on that of what is late.
    InWheel,
    /// On another list, or, having been set aside, on none.
    Elsewhere,
}

impl<T> Wheel<T> {
    /// Gives back the memory that the wheel does not need for the timers that
    /// are in it. Ids stay what they are, and so does the order.
    ///
    /// # Cost
    ///
    /// Follows the largest number of timers that the wheel held since it last
    /// shrank. Afterwards a timer that was brought to another place takes some
    /// thirty bytes more and a look into a sorted map when it ends; what fires
    /// together may have to be sorted.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// let ids: Vec<_> = (0..1_000).map(|n| wheel.schedule_at(Tick(n + 1), n)).collect();
    /// for &id in &ids[..999] {
    ///     wheel.cancel(id);
    /// }
    /// wheel.shrink();
    /// assert_eq!(wheel.cancel(ids[999]), Some(999));
    /// ```
    pub fn shrink(&mut self) {
        self.begin_shrink();
        let mut unlimited = usize::MAX;
        while !self.shrink_some(&mut unlimited, |_, _| Hangs::InWheel) {}
        if self.heap.is_empty() {
            self.heap.shrink_to_fit();
        }
    }

    /// Begins to shrink, unless that has begun.
    pub(crate) fn begin_shrink(&mut self) {
        self.entries.begin_pass();
    }

    /// Has what was begun bring no more timers to other places.
    pub(crate) fn stop_gathering(&mut self) {
        if let Some(Stage::Gather(_)) = self.entries.stage() {
            self.list_the_rest();
        }
    }

    /// Goes on with shrinking until `budget` cells were touched, or some memory
    /// was given back. Returns whether nothing is left to do. `hangs` tells how a
    /// timer hangs.
    pub(crate) fn shrink_some(
        &mut self,
        budget: &mut usize,
        hangs: impl Fn(&Wheel<T>, EntryIndex) -> Hangs,
    ) -> bool {
        self.entries.settle_last();
        while let Some(stage) = self.entries.stage() {
            if *budget == 0 {
                return false;
            }
            match stage {
                Stage::Gather(gather) => self.gather_some(gather, budget, &hangs),
                Stage::List { until } => self.entries.list_vacant(until, budget),
            }
        }
        self.entries.trim_some()
    }

    /// Brings timers from the end of the block to vacant entries.
    fn gather_some(
        &mut self,
        mut gather: Gather,
        budget: &mut usize,
        hangs: &impl Fn(&Wheel<T>, EntryIndex) -> Hangs,
    ) {
        let before = *budget;
        while *budget > 0 {
            *budget -= 1;
            if !self.gather_one(&mut gather, budget, hangs) {
                return self.end_gathering(gather);
            }
        }
        match self.entries.spend(before - *budget) {
            true => self.entries.set_stage(Stage::Gather(gather)),
            false => self.list_the_rest(),
        }
    }

    /// Looks at the last cell that has not been dealt with. Returns whether to go
    /// on.
    fn gather_one(
        &mut self,
        gather: &mut Gather,
        budget: &mut usize,
        hangs: &impl Fn(&Wheel<T>, EntryIndex) -> Hangs,
    ) -> bool {
        // What came since stands behind everything.
        let is_new = self.entries.used() > gather.top;
        let end = if is_new {
            self.entries.used()
        } else {
            gather.high
        };
        let Some(entry) = end
            .checked_sub(1)
            .and_then(|last| self.entries.entry_at(last))
        else {
            return false;
        };
        if self.entries.is_timer(entry) {
            return match self.bring_down(entry, budget, hangs) {
                Below::Found(to) => {
                    gather.high = gather.high.max(to.index() + 1);
                    self.entries.pass_over(entry, gather);
                    true
                }
                // It is looked at again.
                Below::Paused => true,
                Below::Nothing => false,
            };
        }
        if self.entries.is_vacant(entry) {
            let is_listed = self.entries.is_below(entry);
            if !is_listed {
                self.entries.pass_over(entry, gather);
            }
            return !is_listed;
        }
        let Some(first) = self.levels.first_of_level_with(entry) else {
            // A list's that is no level's stays where it is.
            return false;
        };
        if is_new {
            // The heads of a level that was needed since, and timers before them.
            (gather.top, gather.high) = (end, end);
        }
        gather.high = first.index();
        true
    }

    /// Brings a timer to a vacant entry that comes before its own.
    fn bring_down(
        &mut self,
        entry: EntryIndex,
        budget: &mut usize,
        hangs: &impl Fn(&Wheel<T>, EntryIndex) -> Hangs,
    ) -> Below {
        let own = entry.lane();
        let is_sorting = self.entries.stamp(entry).tag() & SORTING != 0;
        let is_bound = !is_sorting && hangs(self, entry) == Hangs::InWheel;
        // What is due has a place in its order that filing would not give it.
        let is_fixed = is_bound && self.is_due(entry);
        let others = (0..LANES).filter(|&lane| lane != own && !is_fixed);
        for lane in core::iter::once(own).chain(others) {
            match self.entries.vacant_below(entry, lane, budget) {
                Below::Found(to) if is_bound && lane != own => {
                    self.unlink(entry);
                    self.entries.set_aside(entry);
                    self.entries.move_timer(entry, to);
                    self.relink(to);
                    return Below::Found(to);
                }
                Below::Found(to) => {
                    self.entries.move_timer(entry, to);
                    return Below::Found(to);
                }
                Below::Paused => return Below::Paused,
                Below::Nothing => {}
            }
        }
        Below::Nothing
    }

    /// Cuts off what is vacant at the end of the block.
    fn end_gathering(&mut self, gather: Gather) {
        if self.is_empty() {
            self.forget_work();
        }
        if self.entries.used() == gather.top {
            let used = self.slide_heads(gather.high);
            self.entries.truncate(used);
        }
        self.list_the_rest();
    }

    /// Goes on to put on lists what is still vacant.
    fn list_the_rest(&mut self) {
        let until = self.entries.used();
        self.entries.set_stage(Stage::List { until });
    }

    /// Brings the heads of levels that stand behind `end` down to there, or
    /// forgets them if there is no timer. Returns where they end.
    fn slide_heads(&mut self, end: u32) -> u32 {
        let mut end = end;
        for level in self.levels.levels_from(end) {
            if self.is_empty() {
                self.levels.forget_heads(level);
                continue;
            }
            let count = self.levels.heads_per_level();
            let (was, is) = self.levels.move_heads(&mut self.entries, level, end);
            if let Some(nth) = self.fronts.nth_of(was).filter(|&nth| nth < count) {
                self.fronts.follow(self.entries.nth(is, nth));
            }
            end += count;
        }
        end
    }

    /// There is nothing to do, and nothing to remember of what was being done.
    fn forget_work(&mut self) {
        self.work = Work::Nothing;
        self.fronts = Fronts::none(self.overdue);
        self.heap.clear();
        self.levels.clear_marks();
        self.next_turn = 0;
    }
}

#[cfg(test)]
mod tests;
