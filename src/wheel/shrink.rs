//! Giving memory back: timers are moved to the front of the block, and the vacant
//! entries at its end are cut off.
//!
//! This is done in steps that touch a bounded number of entries, so that an engine
//! can release a shard's lock in between. The state that is kept between two steps
//! is in `entries/pass.rs`. A timer keeps its id (see `entries/moved.rs`) and its
//! place in the order: it moves to an entry of its lane, and the entries before and
//! after it on its list are linked to its new entry. If its lane is full, the timer
//! is linked again, as if it were rescheduled for its own deadline. List heads of
//! levels that were added late stand among the timers. At the end, they slide down
//! to the last timer.
//!
//! When entries are cut off, no `EntryIndex` of any of them may remain. Between two
//! calls of the wheel, indices are kept in five places:
//!
//! - lists, whose links change when a timer or a head is moved;
//! - `Levels`, which move their own heads;
//! - `Wheel::fronts`, which follow their slot's heads;
//! - the lists of vacant entries, which hold none that can be cut off (see
//!   `entries/pass.rs`);
//! - `Moved`, which holds only live timers.
//!
//! Ids, walks and entries that are being sorted are kept as numbers, which
//! [`Entries::entry_at`] or [`Entries::find`] looks up. A wrong hint to the processor
//! does no harm. A paused cascade and a slot that is being fired
//! look up their lists again.
//!
//! [`Entries::entry_at`]: super::entries::Entries::entry_at
//! [`Entries::find`]: super::entries::Entries::find

use super::Wheel;
use super::entries::{EntryIndex, Gather, LANES, Stage, Vacancy};
use super::work::{Fronts, SORTING, Work};

/// The kind of list that a timer is on. It limits where the timer can be moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Linkage {
    /// A slot's list, or that of overdue timers.
    InWheel,
    /// Another list, or no list because the timer was set aside.
    Elsewhere,
}

impl<T> Wheel<T> {
    /// Gives back the memory that the wheel does not need for its timers. The ids
    /// and the order of the timers do not change.
    ///
    /// # Cost
    ///
    /// The cost grows with the largest number of timers that the wheel has held
    /// since it last shrank. Afterwards, each timer that was moved in memory takes
    /// some twenty bytes more, and needs a look-up in a sorted map when it ends.
    /// Timers that fire together may have to be sorted.
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
        while !self.shrink_some(&mut unlimited, |_, _| Linkage::InWheel) {}
        if self.heap.is_empty() {
            self.heap.shrink_to_fit();
        }
    }

    /// Begins a pass of shrinking, unless one has begun already.
    pub(crate) fn begin_shrink(&mut self) {
        if self.entries.stage().is_none() {
            self.narrow();
            self.entries.begin_pass();
        }
    }

    /// Stops the current pass from moving more timers.
    pub(crate) fn stop_gathering(&mut self) {
        if let Some(Stage::Gather(_)) = self.entries.stage() {
            self.list_the_rest();
        }
    }

    /// Continues to shrink until `budget` entries have been touched or some memory
    /// has been given back. Returns whether the pass is complete. `linkage` returns
    /// the kind of list that a timer is on.
    pub(crate) fn shrink_some(
        &mut self,
        budget: &mut usize,
        linkage: impl Fn(&Wheel<T>, EntryIndex) -> Linkage,
    ) -> bool {
        self.entries.settle_last();
        while let Some(stage) = self.entries.stage() {
            if *budget == 0 {
                return false;
            }
            match stage {
                Stage::Gather(gather) => self.gather_some(gather, budget, &linkage),
                Stage::List { until } => self.entries.list_vacant(until, budget),
            }
        }
        let is_trimmed = self.entries.trim_some();
        if is_trimmed {
            self.widen_for(self.entries.used() as usize - self.levels.heads());
        }
        is_trimmed
    }

    /// Moves timers from the end of the block to vacant entries.
    fn gather_some(
        &mut self,
        mut gather: Gather,
        budget: &mut usize,
        linkage: &impl Fn(&Wheel<T>, EntryIndex) -> Linkage,
    ) {
        let before = *budget;
        while *budget > 0 {
            *budget -= 1;
            if !self.gather_one(&mut gather, budget, linkage) {
                return self.end_gathering(gather);
            }
        }
        match self.entries.spend(before - *budget) {
            true => self.entries.set_stage(Stage::Gather(gather)),
            false => self.list_the_rest(),
        }
    }

    /// Handles the last entry that has not yet been handled. Returns whether to
    /// continue.
    fn gather_one(
        &mut self,
        gather: &mut Gather,
        budget: &mut usize,
        linkage: &impl Fn(&Wheel<T>, EntryIndex) -> Linkage,
    ) -> bool {
        // New entries stand behind all other entries.
        let is_new = self.entries.used() > gather.top;
        let end = match is_new {
            true => self.entries.used(),
            false => gather.high,
        };
        let Some(entry) = end
            .checked_sub(1)
            .and_then(|last| self.entries.entry_at(last))
        else {
            return false;
        };
        if self.entries.is_timer(entry) {
            return match self.bring_down(entry, budget, linkage) {
                Vacancy::Found(to) => {
                    gather.high = gather.high.max(to.index() + 1);
                    self.entries.pass_over(entry, gather);
                    true
                }
                // The next step handles the entry again.
                Vacancy::Paused => true,
                Vacancy::None => false,
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
            // The head of a list outside all levels stays where it is.
            return false;
        };
        if is_new {
            // A level was added meanwhile, and timers stand before its heads.
            (gather.top, gather.high) = (end, end);
        }
        gather.high = first.index();
        true
    }

    /// Moves a timer to a vacant entry before its own.
    fn bring_down(
        &mut self,
        entry: EntryIndex,
        budget: &mut usize,
        linkage: &impl Fn(&Wheel<T>, EntryIndex) -> Linkage,
    ) -> Vacancy {
        let own = entry.lane();
        let is_sorting = self.entries.stamp(entry).tag() & SORTING != 0;
        let is_bound = !is_sorting && linkage(self, entry) == Linkage::InWheel;
        // Linking a due timer again would change its place in the order.
        let is_fixed = is_bound && self.is_due(entry);
        let others = (0..LANES).filter(|&lane| lane != own && !is_fixed);
        for lane in core::iter::once(own).chain(others) {
            match self.entries.vacant_below(entry, lane, budget) {
                Vacancy::Found(to) if is_bound && lane != own => {
                    self.unlink(entry);
                    self.entries.set_aside(entry);
                    self.entries.move_timer(entry, to);
                    self.relink(to);
                    return Vacancy::Found(to);
                }
                Vacancy::Found(to) => {
                    self.entries.move_timer(entry, to);
                    return Vacancy::Found(to);
                }
                Vacancy::Paused => return Vacancy::Paused,
                Vacancy::None => {}
            }
        }
        Vacancy::None
    }

    /// Cuts off the vacant entries at the end of the block.
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

    /// Begins to put the remaining vacant entries on their lists.
    fn list_the_rest(&mut self) {
        let until = self.entries.used();
        self.entries.set_stage(Stage::List { until });
    }

    /// Moves the list heads that stand behind `end` down to `end`, or forgets them
    /// if the wheel is empty. Returns the index at which the heads now end.
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

    /// Forgets the unfinished work of an empty wheel.
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
