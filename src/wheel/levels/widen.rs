//! Changes to the list heads of whole levels: giving each slot all its lanes or one,
//! and moving heads to other entries. `wheel/lanes.rs` and `wheel/shrink.rs` decide
//! when.

use alloc::vec;
use alloc::vec::Vec;

use super::super::entries::{Entries, EntryIndex, LANES};
use super::super::geometry::{MAX_LEVELS, Place};
use super::Levels;

impl Levels {
    #[inline]
    pub(crate) fn can_widen(&self) -> bool {
        self.lane_shift != 0 && self.can_have_lanes()
    }

    pub(crate) fn can_narrow(&self) -> bool {
        self.lane_shift == 0
    }

    /// Gives every slot all its lanes, instead of one.
    pub(crate) fn widen<T>(&mut self, entries: &mut Entries<T>) {
        let narrow = self.heads;
        (0..MAX_LEVELS).for_each(|level| self.forget_heads(level));
        self.lane_shift = 0;
        for (level, first) in narrow.into_iter().enumerate() {
            if first == EntryIndex::FIRST {
                continue;
            }
            for slot in 0..self.geometry.size() {
                let timers = self.take_all(entries, entries.nth(first, slot as u32));
                self.append_all(entries, level, slot, timers);
            }
            let size = self.geometry.size() as u32;
            (0..size).for_each(|n| entries.remove_sentinel(entries.nth(first, n)));
        }
    }

    /// Gives every slot one lane, instead of several. Marks of unsorted slots stay.
    /// The first heads of a level stay in use, so that this does not allocate entries.
    pub(crate) fn narrow<T>(&mut self, entries: &mut Entries<T>) {
        let (size, per_level) = (self.geometry.size() as u32, self.heads_per_level());
        self.lane_shift = LANES.trailing_zeros();
        for level in 0..self.geometry.levels() {
            let Some(first) = self.first_head(level) else {
                continue;
            };
            let mut slots = vec![Vec::new(); size as usize];
            for n in 0..per_level {
                let timers = self.take_all(entries, entries.nth(first, n));
                slots[n as usize / LANES].extend(timers);
            }
            (size..per_level).for_each(|n| entries.remove_sentinel(entries.nth(first, n)));
            for (slot, mut timers) in slots.into_iter().enumerate() {
                let bitmap_index = self.bitmap_index_of(level, slot, 0);
                entries.reset_list(entries.nth(first, slot as u32), bitmap_index);
                timers.sort_unstable_by_key(|&entry| entries.stamp(entry));
                self.append_all(entries, level, slot, timers);
            }
        }
    }

    /// Returns the timers of a list, which counts as empty from now on.
    fn take_all<T>(&mut self, entries: &Entries<T>, list: EntryIndex) -> Vec<EntryIndex> {
        self.list_is_empty(entries.bitmap_index(list));
        let mut timers = Vec::new();
        let mut entry = entries.next(list);
        while entry != list {
            timers.push(entry);
            entry = entries.next(entry);
        }
        timers
    }

    /// Appends timers to the lanes of a slot.
    fn append_all<T>(
        &mut self,
        entries: &mut Entries<T>,
        level: usize,
        slot: usize,
        timers: Vec<EntryIndex>,
    ) {
        for entry in timers {
            let place = Place {
                level,
                slot,
                start: 0,
            };
            self.append(entries, place, entry);
        }
    }

    /// Returns the first head of the level that `head` belongs to.
    pub(crate) fn first_of_level_with(&self, head: EntryIndex) -> Option<EntryIndex> {
        let count = self.heads_per_level();
        let is_in = |first: &EntryIndex| *first <= head && head.index() - first.index() < count;
        let levels = self.heads[..self.geometry.levels()].iter();
        levels
            .copied()
            .find(|first| *first != EntryIndex::FIRST && is_in(first))
    }

    /// Returns the levels whose heads stand at `index` or behind it, in the order
    /// of their heads.
    pub(crate) fn levels_from(&self, index: u32) -> Vec<usize> {
        let is_behind = |&level: &usize| {
            let first = self.heads[level];
            first != EntryIndex::FIRST && first.index() >= index
        };
        let levels = 0..self.geometry.levels();
        let mut levels: Vec<usize> = levels.filter(is_behind).collect();
        levels.sort_unstable_by_key(|&level| self.heads[level]);
        levels
    }

    pub(crate) fn heads_per_level(&self) -> u32 {
        (self.geometry.size() * self.lanes()) as u32
    }

    /// Moves a level's heads to `to`. All entries between `to` and the heads are
    /// vacant. Returns the old and the new first head.
    pub(crate) fn move_heads<T>(
        &mut self,
        entries: &mut Entries<T>,
        level: usize,
        to: u32,
    ) -> (EntryIndex, EntryIndex) {
        let was = self.heads[level];
        let is = entries.nth(EntryIndex::FIRST, to);
        if was != is {
            for n in 0..self.heads_per_level() {
                let (from, to) = (entries.nth(was, n), entries.nth(is, n));
                entries.move_sentinel(from, to);
            }
        }
        self.set_heads(level, is);
        (was, is)
    }

    /// Forgets a level's heads, whose lists are empty.
    pub(crate) fn forget_heads(&mut self, level: usize) {
        self.set_heads(level, EntryIndex::FIRST);
    }

    /// Returns the number of list heads.
    pub(crate) fn heads(&self) -> usize {
        self.geometry.levels() * self.heads_per_level() as usize - self.heads_to_come()
    }
}
