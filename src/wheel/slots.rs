//! The slots of all levels: which list belongs to a deadline, and whose turn is next.
//!
//! The heads of the slots stand side by side in the storage, level after level. A bit says
//! of each whether its list has an entry. All occupied slots of a level lie behind the slot
//! that covers the present, in the same rotation, because a deadline of a later rotation
//! belongs to an outer level. So the first occupied slot of the first occupied level has
//! the next turn: it is the lowest bit of all.
//!
//! A wheel with a cap on its levels has one more slot behind them, which takes all timers
//! beyond their reach. It knows a lower bound of their deadlines.

use alloc::boxed::Box;
use alloc::vec;

use super::entries::{Entries, EntryIndex, NOTHING, REACHED};
use super::geometry::Geometry;

/// The heads of the wheel's own lists and those of its owner stand before the first slot, in
/// a multiple of this many places.
const PER_WORD: u32 = u64::BITS;

#[derive(Clone)]
pub(super) struct Slots {
    pub(super) geometry: Geometry,
    /// The slots of deadlines, by the highest bit in which a deadline differs from now.
    rows: [Row; 64],
    /// A bit for each list of the storage.
    words: Box<[u64]>,
    /// A bit for each `1 << word_bits` words that are not all zero.
    summary: u64,
    word_bits: u32,
    /// The head of the first slot of level 0. A level's heads stand `1 << level_bits` apart.
    first: u32,
    level_bits: u32,
    /// The number of levels whose lists have been added.
    pub(super) levels: usize,
    /// No timer beyond the reach of the levels is due before this tick.
    beyond: u64,
    /// The last tick of the rotation whose timers were last brought into the levels' reach.
    reached: u64,
}

/// Where the deadlines of a level lie.
#[derive(Clone, Copy)]
struct Row {
    /// The head of the level's first slot, or 0 if the level has no lists yet, or if slots
    /// are not found by bits.
    first: u32,
    level: u32,
    shift: u32,
    mask: u32,
}

/// The turn of a slot. It fits into two registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Turn {
    pub(super) list: EntryIndex,
    pub(super) level: u32,
    /// The first tick of the slot.
    pub(super) start: u64,
}

impl Turn {
    /// Something is to be done before time goes on.
    pub(super) const NOW: Turn = Turn {
        start: 0,
        ..Turn::NEVER
    };
    /// What [`Slots::next`] returns if no slot is occupied.
    pub(super) const NEVER: Turn = Turn {
        list: NOTHING,
        level: 0,
        start: u64::MAX,
    };
}

impl Slots {
    /// Creates the slots of a wheel that has this many other lists. Returns how many lists
    /// the storage has, with those.
    pub(super) fn new(geometry: Geometry, others: u32) -> (Slots, u32) {
        let first = others.next_multiple_of(PER_WORD);
        let level_bits = geometry.size().next_power_of_two().max(64).trailing_zeros();
        let heads = (geometry.levels() as u32) << level_bits;
        let lists = first + heads + u32::from(!geometry.is_complete());
        let words = lists.div_ceil(PER_WORD);
        let row = Row {
            first: 0,
            level: 0,
            shift: 0,
            mask: geometry.size() as u32 - 1,
        };
        let slots = Slots {
            geometry,
            rows: [row; 64],
            words: vec![0; words as usize].into_boxed_slice(),
            summary: 0,
            word_bits: words.div_ceil(64).next_power_of_two().trailing_zeros(),
            first,
            level_bits,
            levels: 0,
            beyond: u64::MAX,
            reached: 0,
        };
        (slots, lists)
    }

    /// Returns the head of a slot.
    pub(super) fn list(&self, level: usize, slot: usize) -> EntryIndex {
        EntryIndex::list(self.first + ((level as u32) << self.level_bits) + slot as u32)
    }

    /// Returns whether a slot's list has an entry. Of other lists, returns `false`.
    #[inline]
    pub(super) fn is_occupied(&self, list: EntryIndex) -> bool {
        let index = list.index();
        self.words[(index / PER_WORD) as usize] >> (index % PER_WORD) & 1 == 1
    }

    /// Returns the turn of the slot for a deadline later than `now`.
    #[inline(always)]
    pub(super) fn turn_for<T>(
        &mut self,
        entries: &mut Entries<T>,
        now: u64,
        deadline: u64,
    ) -> Turn {
        debug_assert!(now <= deadline);
        // The lowest bit changes no level, and shows the compiler that this is not zero.
        let highest_bit = ((now ^ deadline) | 1).ilog2();
        let row = self.rows[highest_bit as usize % 64];
        if row.first == 0 {
            return self.turn_by_division(entries, now, deadline);
        }
        let unit = deadline >> row.shift;
        Turn {
            list: EntryIndex::list(row.first + (unit as u32 & row.mask)),
            level: row.level,
            start: unit << row.shift,
        }
    }

    /// Returns the turn as above, for any size, any cap, and a level without lists.
    #[cold]
    #[inline(never)]
    fn turn_by_division<T>(&mut self, entries: &mut Entries<T>, now: u64, deadline: u64) -> Turn {
        let level = self.geometry.level_of(now, deadline);
        if level >= self.levels {
            self.add_levels(entries, level);
        }
        if level == self.geometry.levels() {
            if deadline <= self.reached {
                // The clock stands before the rotation that is being cascaded.
                return Turn {
                    list: REACHED,
                    ..Turn::NEVER
                };
            }
            let earliest = match self.is_occupied(self.list(level, 0)) {
                true => self.beyond,
                false => u64::MAX,
            };
            self.beyond = earliest.min(deadline);
            return self.turn_of(self.list(level, 0).index(), now);
        }
        let slot = self.geometry.slot(level, deadline);
        self.turn_of(self.list(level, slot).index(), now)
    }

    /// Adds the lists of all levels up to `level`.
    fn add_levels<T>(&mut self, entries: &mut Entries<T>, level: usize) {
        for level in self.levels..=level {
            let slots = match level == self.geometry.levels() {
                true => 1,
                false => self.geometry.size(),
            };
            (0..slots).for_each(|slot| entries.add_list(self.list(level, slot)));
            let Some(bits) = self.geometry.bits().filter(|_| slots > 1) else {
                continue;
            };
            let first = self.list(level, 0).index();
            let shift = level as u32 * bits;
            for row in self
                .rows
                .iter_mut()
                .skip(shift as usize)
                .take(bits as usize)
            {
                (row.first, row.level, row.shift) = (first, level as u32, shift);
            }
        }
        self.levels = level + 1;
    }

    /// Returns the first tick of a slot, in the rotation that `origin` is in.
    #[inline]
    fn start_of(&self, level: usize, slot: usize, origin: u64) -> u64 {
        match level == self.geometry.levels() {
            false => self.geometry.start_of(level, slot, origin),
            true => self.beyond - self.beyond % self.geometry.unit(level),
        }
    }

    /// Notes that a list has an entry.
    #[inline]
    pub(super) fn occupy(&mut self, list: EntryIndex) {
        let word = list.index() / PER_WORD;
        self.words[word as usize] |= 1 << (list.index() % PER_WORD);
        self.summary |= 1 << (word >> self.word_bits);
    }

    /// Notes that a list has no entry. It need not be a slot's.
    #[inline]
    pub(super) fn vacate(&mut self, list: EntryIndex) {
        let word = (list.index() / PER_WORD) as usize;
        self.words[word] &= !(1 << (list.index() % PER_WORD));
        let group = word >> self.word_bits;
        let is_free = |from: usize| {
            self.words[from..]
                .iter()
                .take(1 << self.word_bits)
                .all(|&w| w == 0)
        };
        if self.words[word] == 0 && (self.word_bits == 0 || is_free(group << self.word_bits)) {
            self.summary &= !(1 << group);
        }
    }

    /// Returns the next turn. `origin` is the present.
    #[inline]
    pub(super) fn next(&self, origin: u64) -> Turn {
        if self.summary == 0 {
            return Turn::NEVER;
        }
        let mut word = (self.summary.trailing_zeros() << self.word_bits) as usize;
        while self.words[word] == 0 {
            word += 1;
        }
        let list = word as u32 * PER_WORD + self.words[word].trailing_zeros();
        self.turn_of(list, origin)
    }

    #[inline]
    fn turn_of(&self, list: u32, origin: u64) -> Turn {
        let level = (list - self.first) >> self.level_bits;
        Turn {
            list: EntryIndex::list(list),
            level,
            start: self.start_of(level as usize, self.slot_of(list), origin),
        }
    }

    #[inline]
    fn slot_of(&self, list: u32) -> usize {
        ((list - self.first) & ((1 << self.level_bits) - 1)) as usize
    }

    /// Returns the position of a turn's slot in its level.
    pub(super) fn index_of(&self, turn: Turn) -> usize {
        self.slot_of(turn.list.index())
    }

    /// Returns the last tick of a turn's slot.
    #[inline]
    pub(super) fn last_of(&self, turn: Turn) -> u64 {
        let unit = self.geometry.unit(turn.level as usize);
        turn.start.saturating_add(unit - 1)
    }

    /// Returns whether a turn is that of the slot for the timers beyond all levels.
    #[inline]
    pub(super) fn is_beyond(&self, turn: Turn) -> bool {
        turn.level as usize == self.geometry.levels()
    }

    /// Notes that the slot behind all levels has its turn: its timers are going to be linked
    /// again.
    pub(super) fn reach(&mut self, turn: Turn) {
        self.reached = self.last_of(turn);
        self.beyond = u64::MAX;
    }

    /// Returns all turns, in their order.
    pub(super) fn all(&self, origin: u64) -> impl Iterator<Item = Turn> + '_ {
        let words = self.words.iter().enumerate();
        let words = words.skip((self.first / PER_WORD) as usize);
        words.flat_map(move |(word, &bits)| {
            let left = move |bits: &u64| Some(bits & (bits - 1)).filter(|&bits| bits != 0);
            let rests = core::iter::successors(Some(bits).filter(|&bits| bits != 0), left);
            rests.map(move |bits| {
                let list = word as u32 * PER_WORD + bits.trailing_zeros();
                self.turn_of(list, origin)
            })
        })
    }
}
