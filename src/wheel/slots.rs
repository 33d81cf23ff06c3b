//! The slots of all levels: which list belongs to a deadline, and whose turn is next.
//!
//! The heads of all lists stand side by side in the storage, level after level. A bit says
//! whether a list has an entry. All occupied slots of a level lie behind the slot
//! that covers the present, in the same rotation, because a deadline of a later rotation
//! belongs to an outer level. So the first occupied slot of the first occupied level has
//! the next turn, and its bit is the lowest of all.
//!
//! # Parts
//! A slot of an outer level has several lists, its *parts*. Each part takes the deadlines of
//! one stretch of the slot's time. When the slot has its turn, a cascade walks along all its
//! parts at once, so that the processor fetches an entry of each at the same time instead of
//! waiting for one after another. The order of timers doesn't suffer, because all timers of
//! a tick are in the same part.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::entries::{EntryIndex, PARTS};
use super::geometry::Geometry;

/// Slots of more ticks than this have one part each. Few programs live to see their turn.
const LONG: u64 = 1 << 32;

/// So have the slots of a wheel that has more of them in each level. Its levels are large as
/// they are.
const MANY: u32 = 1 << 12;

const PER_WORD: u32 = u64::BITS;

/// Enough for all words. A wheel of 65,535 slots has the most: 1,024 in each of five levels.
const SUMMARIES: usize = 128;

#[derive(Clone)]
pub(super) struct Slots {
    pub(super) geometry: Geometry,
    /// The present.
    pub(super) now: u64,
    /// No slot has its turn before this tick, and no timer is due. During a pass, and while
    /// a timer is overdue, it is 0.
    pub(super) next: u64,
    /// The next turn. Without lists if it is not known, because a list has become occupied or
    /// empty since the last pass.
    pub(super) known: Turn,
    /// The lists of deadlines, by the highest bit in which a deadline differs from now.
    rows: [Row; 64],
    /// A bit for each list of the storage up to those of the last level.
    words: Box<[Word]>,
    /// A bit for each word that has an occupied list.
    summaries: [u64; SUMMARIES],
    /// The first list of each level.
    levels: Box<[u32]>,
    /// Whether a list may be out of order, up to the lists of level 0. Others need no order.
    pub(super) unsorted: Box<[bool]>,
    /// The first tick of the rotation of the levels that has the first timer beyond them.
    beyond: u64,
}

/// Where the deadlines of a level lie, if the wheel's size is a power of two. Otherwise, all
/// fields are zero.
#[derive(Clone, Copy, Default)]
struct Row {
    first: u32,
    mask: u32,
    shift: u32,
    /// The bits of a deadline that are also in the first tick of its slot.
    start: u64,
}

/// The bits of 64 lists, and which slots these belong to.
#[derive(Clone, Copy)]
struct Word {
    /// Whether each list has an entry.
    occupied: u64,
    /// The number of parts of a slot, a power of two.
    parts: u32,
    level: u8,
    row: Row,
}

/// The turn of a slot.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    /// The first tick of the slot.
    pub(super) start: u64,
    /// The last tick of the slot.
    pub(super) last: u64,
    pub(super) level: u32,
    /// The first of the slot's lists that has an entry.
    pub(super) list: EntryIndex,
    /// The bits of the slot's lists that have an entry.
    pub(super) lists: u64,
}

impl Turn {
    pub(super) const NEVER: Turn =
        Turn { start: u64::MAX, last: u64::MAX, level: 0, list: EntryIndex::new(0), lists: 0 };
}

impl Slots {
    /// Creates the slots of a wheel, with lists from this number on.
    pub(super) fn new(now: u64, geometry: Geometry, first: u32) -> Slots {
        let (mut words, mut levels, mut first) = (Vec::new(), Vec::new(), first);
        let (mut rows, size) = ([Row::default(); 64], geometry.size() as u32);
        // Without bits, levels have no rows.
        let bits = if size.is_power_of_two() { size.ilog2() } else { 0 };
        for level in 0..geometry.levels() {
            levels.push(first);
            let has_parts = level > 0 && size <= MANY && geometry.unit(level) <= LONG;
            let parts = if has_parts { 1 << PARTS.min(size).ilog2() } else { 1 };
            let (lists, row) = (size * parts, level as u32 * bits);
            let shift = row.saturating_sub(parts.ilog2());
            let same = Row { first, mask: lists - 1, shift, start: u64::MAX << row };
            rows[row as usize..64.min(row + bits) as usize].fill(same);
            let word = Word { occupied: 0, parts, level: level as u8, row: rows[row as usize] };
            // The first word also has bits for lists before those of level 0.
            words.resize((first + lists).div_ceil(PER_WORD) as usize, word);
            first = words.len() as u32 * PER_WORD;
        }
        // Behind them is the list of what no level reaches.
        levels.push(first);
        let level = geometry.levels() as u8;
        words.push(Word { occupied: 0, parts: 1, level, row: Row::default() });
        debug_assert!(words.len() <= 64 * SUMMARIES);
        Slots {
            geometry,
            now,
            next: u64::MAX,
            known: Turn::NEVER,
            rows,
            summaries: [0; SUMMARIES],
            words: words.into_boxed_slice(),
            unsorted: vec![false; levels[1] as usize].into_boxed_slice(),
            levels: levels.into_boxed_slice(),
            beyond: u64::MAX,
        }
    }

    /// Returns the number of the first list that is not a slot's.
    pub(super) fn end(&self) -> u32 {
        self.words.len() as u32 * PER_WORD
    }

    /// Returns the list for a deadline from now on, and the first tick of its slot, for
    /// [`Slots::occupy`]. Returns `None` if [`Slots::list_by_division`] must find them.
    #[inline(always)]
    pub(super) fn list_for(&self, deadline: u64) -> Option<(EntryIndex, u64)> {
        // The lowest bit changes no level, and shows the compiler that this is not zero.
        let highest_bit = ((self.now ^ deadline) | 1).ilog2();
        let row = &self.rows[highest_bit as usize % 64];
        if row.mask == 0 {
            return None;
        }
        let list = row.first + ((deadline >> row.shift) as u32 & row.mask);
        Some((EntryIndex::new(list), deadline & row.start))
    }

    /// Returns the same, for any size and any cap.
    #[cold]
    #[inline(never)]
    pub(super) fn list_by_division(&mut self, deadline: u64) -> (EntryIndex, u64) {
        let level = self.geometry.level_of(self.now, deadline);
        let (first, unit) = (EntryIndex::new(self.levels[level]), self.geometry.unit(level));
        let (slot, ahead) = (self.geometry.slot(level, deadline) as u32, deadline % unit);
        let start = deadline - ahead;
        if level == self.geometry.levels() {
            self.beyond = if self.is_occupied(first) { self.beyond.min(start) } else { start };
            // An earlier one brings the turn of an occupied list forward, too.
            self.next = self.next.min(start);
            self.known.lists = 0;
            return (first, start);
        }
        let parts = self.word_of(first).parts;
        let part = (ahead * u64::from(parts) / unit) as u32;
        (first.nth(slot * parts + part), start)
    }

    /// Returns the lists of a slot that have an entry.
    pub(super) fn lists(&self, level: usize, slot: usize) -> impl Iterator<Item = EntryIndex> {
        let level = EntryIndex::new(self.levels[level]);
        let parts = self.word_of(level).parts;
        let first = level.nth(slot as u32 * parts);
        let occupied = self.word_of(first).occupied >> (first.index() % PER_WORD);
        first.picked(occupied & ((1 << parts) - 1))
    }

    /// Returns a tick before which no deadline belongs to a list that has an entry.
    pub(super) fn start_of_part(&self, list: EntryIndex) -> u64 {
        let Word { level, parts, .. } = *self.word_of(list);
        let part = u64::from(list.index() % parts);
        let ahead = part * self.geometry.unit(level.into()) / u64::from(parts);
        self.start_of(list).saturating_add(ahead)
    }

    /// Returns whether a list of a slot has an entry.
    pub(super) fn is_occupied(&self, list: EntryIndex) -> bool {
        self.word_of(list).occupied >> (list.index() % PER_WORD) & 1 == 1
    }

    /// Notes that a list has an entry, and when its slot has its turn.
    #[inline(always)]
    pub(super) fn occupy(&mut self, list: EntryIndex, start: u64) {
        self.next = self.next.min(start);
        self.known.lists = 0;
        self.mark(list);
    }

    /// Notes only that a list has an entry, which is enough during a pass.
    #[inline(always)]
    pub(super) fn mark(&mut self, list: EntryIndex) {
        let index = (list.index() / PER_WORD) as usize;
        let word = &mut self.words[index];
        if word.occupied == 0 {
            self.summaries[index / 64 % SUMMARIES] |= 1 << (index % 64);
        }
        word.occupied |= 1 << (list.index() % PER_WORD);
    }

    /// Notes that this list and others of its word have become empty, whose bits these are. They
    /// need not be a slot's.
    #[inline(always)]
    pub(super) fn vacate(&mut self, list: EntryIndex, lists: u64) {
        let index = (list.index() / PER_WORD) as usize;
        self.known.lists = 0;
        if let Some(word) = self.words.get_mut(index) {
            word.occupied &= !lists;
            if word.occupied == 0 {
                self.summaries[index / 64 % SUMMARIES] &= !(1 << (index % 64));
            }
        }
    }

    /// Returns the next turn, or [`Turn::NEVER`] if no slot is occupied.
    #[inline(always)]
    pub(super) fn next_turn(&self) -> Turn {
        if self.known.lists != 0 {
            return self.known;
        }
        let mut index = 0;
        while index < self.words.len() {
            match self.summaries[index / 64 % SUMMARIES] {
                0 => index += 64,
                summary => return self.turn_in(index + summary.trailing_zeros() as usize),
            }
        }
        Turn::NEVER
    }

    /// Returns the turn of the slot to which the first occupied list of a word belongs.
    #[inline(always)]
    fn turn_in(&self, index: usize) -> Turn {
        let Word { occupied, parts, level, row } = self.words[index];
        let bit = occupied.trailing_zeros();
        let list = EntryIndex::new(index as u32 * PER_WORD + bit);
        let (start, last) = if row.mask == 0 {
            let start = self.start_of(list);
            (start, start.saturating_add(self.geometry.unit(level.into()) - 1))
        } else {
            let offset = u64::from(list.index() - row.first) << row.shift & row.start;
            let rotation = (u64::from(row.mask) + 1) << row.shift;
            let start = self.now & rotation.wrapping_neg() | offset;
            (start, start | !row.start)
        };
        // All bits up to that of the slot's last part.
        let lists = occupied & u64::MAX >> (63 - (bit | (parts - 1)));
        Turn { start, last, level: level.into(), list, lists }
    }

    /// Returns the first tick of a list's slot, which is in the present rotation of its level.
    /// That of the timers beyond all levels is in the rotation that has the first of them.
    #[cold]
    #[inline(never)]
    pub(super) fn start_of(&self, list: EntryIndex) -> u64 {
        let (level, slot) = self.slot_of(list);
        let is_slot = level < self.geometry.levels();
        if is_slot { self.geometry.start_of(level, slot, self.now) } else { self.beyond }
    }

    #[inline(always)]
    fn word_of(&self, list: EntryIndex) -> &Word {
        &self.words[(list.index() / PER_WORD) as usize]
    }

    /// Returns the level of a list, and its slot in the level. The level is that behind the last
    /// one for the timers beyond all levels.
    #[inline(always)]
    pub(super) fn slot_of(&self, list: EntryIndex) -> (usize, usize) {
        let Word { level, parts, .. } = *self.word_of(list);
        let ahead = list.index() - self.levels[usize::from(level)];
        (level.into(), (ahead / parts) as usize)
    }

    /// Returns the last level that has an entry.
    pub(super) fn last_level(&self) -> usize {
        self.words.iter().rfind(|word| word.occupied != 0).map_or(0, |word| word.level.into())
    }

    /// Returns all lists that have an entry, in the order of their turns.
    pub(super) fn occupied(&self) -> impl Iterator<Item = EntryIndex> {
        let firsts = (0..).step_by(PER_WORD as usize).map(EntryIndex::new);
        firsts.zip(&self.words).flat_map(|(first, word)| first.picked(word.occupied))
    }
}

#[cfg(test)]
mod tests {
    use crate::wheel::Advance;
    use crate::{Tick, Wheel};

    #[test]
    fn a_list_that_becomes_empty_leaves_the_turns_of_all_others() {
        for size in [64, 124, 256] {
            let mut wheel = Wheel::new(size);
            let ticks = [5, 60, 100, 180, 900, 2_000, 9_000, 70_000, 1 << 40];
            for (stays, goes) in ticks.iter().flat_map(|&a| ticks.map(|b| (Tick(a), Tick(b)))) {
                let id = wheel.schedule_at(stays, ());
                let wakeup = wheel.next_wakeup();
                let other = wheel.schedule_at(goes, ());
                // At the end of a pass, the next turn is known.
                wheel.schedule_at(Tick(1), ());
                assert_eq!(wheel.advance(Tick(1), 9, |_, _| ()), Advance::Done);
                assert_eq!(wheel.cancel(other), Some(()));
                assert_eq!(wheel.next_wakeup(), wakeup, "{size} {stays:?} {goes:?}");
                assert_eq!(wheel.cancel(id), Some(()));
                assert_eq!(wheel.next_wakeup(), None);
            }
        }
    }

    #[test]
    fn a_turn_takes_no_list_of_the_next_slot() {
        let mut wheel = Wheel::new(64);
        // The last part of one slot, and the first one of the next.
        [127, 127, 128, 128].iter().for_each(|&tick| _ = wheel.schedule_at(Tick(tick), ()));
        for to in [64, 200] {
            assert_eq!(wheel.advance(Tick(to), 9, |_, _| ()), Advance::Done);
        }
        assert!(wheel.is_empty());
    }

    #[test]
    fn a_lone_timer_that_was_moved_to_the_next_slot_waits_for_its_turn() {
        for size in [10, 64] {
            let mut wheel = Wheel::new(size);
            let [_, moved] = [6, 5].map(|tick| wheel.schedule_at(Tick(tick), tick));
            assert!(wheel.reschedule(moved, Tick(6)));
            // The older one goes first.
            assert_eq!(wheel.pop_due(Tick(6)).map(|expired| expired.payload), Some(6));
        }
    }

    #[test]
    fn the_end_of_a_pass_leaves_all_later_turns() {
        for size in [64, 256, 4_096, 65_535] {
            let ticks = [0, 1 << 40, 1 << 57, u64::MAX - 1].map(Tick);
            let mut wheel = Wheel::new(size);
            ticks.iter().for_each(|&tick| _ = wheel.schedule_at(tick, ()));
            for tick in ticks {
                assert_eq!(wheel.pop_due(tick).map(|expired| expired.deadline), Some(tick));
                assert!(wheel.pop_due(tick).is_none());
                wheel.assert_consistent();
            }
        }
    }
}
