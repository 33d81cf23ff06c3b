//! The levels: the occupied slots, and the heads of their lists.
//!
//! A slot has several lists, its *lanes*. On a single list, a slot of a million
//! cold entries is a chain of cache misses, each waiting for the one before. On
//! eight lists it is eight chains, whose misses overlap, and a cascade takes a
//! third of the time. The low bits of
//! an entry's index select its lane.

mod below;
mod far;
mod search;
mod ways;
mod widen;

use alloc::boxed::Box;
use alloc::vec;

pub(super) use below::{Below, List};
use far::Far;
pub(crate) use search::Turn;
use ways::Ways;

use super::entries::{Entries, EntryIndex, LANES};
use super::geometry::{Geometry, MAX_LEVELS, Place, TwoWords, highest_difference};

const WORD: usize = u64::BITS as usize;

pub(crate) struct Levels {
    pub(crate) geometry: Geometry,
    /// A slot has `LANES >> lane_shift` lanes: one, or all (see `wheel/lanes.rs`).
    lane_shift: u32,
    /// The number of words of `occupied` per level, and of `unsorted`.
    stride: usize,
    marks: usize,
    /// The shift from the number of a word of `occupied` to that of the word of `unsorted`
    /// for the same slots.
    mark_shift: u32,
    /// A bit for each list, set if the list is not empty. Words are sorted by level,
    /// then by lane (or, with more than 64 slots, slot / 64). The bit is slot % 64.
    /// There is room for all lanes, even while there is one.
    occupied: Box<[u64]>,
    /// A bit for each slot, set if its lists may be out of order.
    unsorted: Box<[u64]>,
    /// The first list head of each level. Until a level is needed, its place holds
    /// the first of all entries, which does not belong to any level.
    heads: [EntryIndex; MAX_LEVELS],
    ways: Ways,
    /// Whether the slots of level 0 fit one word, and the level ends where a slot of
    /// level 1 does.
    is_innermost_plain: bool,
    far: Far,
}

impl Levels {
    pub(crate) fn new(geometry: Geometry) -> Levels {
        let size = geometry.size();
        let lanes = if size <= WORD { LANES } else { 1 };
        let stride = lanes.max(size.div_ceil(WORD));
        let words = geometry.levels() * stride;
        Levels {
            lane_shift: LANES.trailing_zeros(),
            stride,
            marks: size.div_ceil(WORD),
            mark_shift: lanes.trailing_zeros(),
            occupied: vec![0; words].into_boxed_slice(),
            unsorted: vec![0; words / lanes].into_boxed_slice(),
            heads: [EntryIndex::FIRST; MAX_LEVELS],
            ways: Ways::NONE,
            is_innermost_plain: size <= WORD && geometry.is_plain(),
            far: Far::default(),
            geometry,
        }
    }

    #[inline]
    pub(crate) fn lanes(&self) -> usize {
        LANES >> self.lane_shift
    }

    /// Returns whether a slot can have several lanes: its level's slots fit one word.
    #[inline]
    fn can_have_lanes(&self) -> bool {
        self.geometry.size() <= WORD
    }

    /// Returns the number of list heads that the levels not yet needed would have.
    pub(crate) fn heads_to_come(&self) -> usize {
        let levels = &self.heads[..self.geometry.levels()];
        let missing = levels
            .iter()
            .filter(|&&first| first == EntryIndex::FIRST)
            .count();
        missing * self.geometry.size() * self.lanes()
    }

    /// Returns the head of one of a slot's lists, if its level has been needed.
    #[inline]
    pub(crate) fn head<T>(
        &self,
        entries: &Entries<T>,
        level: usize,
        slot: usize,
        lane: usize,
    ) -> Option<EntryIndex> {
        let first = self.first_head(level)?;
        Some(entries.nth(first, self.nth_head(slot, lane)))
    }

    #[inline]
    fn first_head(&self, level: usize) -> Option<EntryIndex> {
        let first = self.heads[level & (MAX_LEVELS - 1)];
        (first != EntryIndex::FIRST).then_some(first)
    }

    /// Returns the position of a list's head among the heads of its level. A slot
    /// with one lane has the same head for every `lane`.
    #[inline]
    fn nth_head(&self, slot: usize, lane: usize) -> u32 {
        ((slot * LANES + lane) >> self.lane_shift) as u32
    }

    /// Adds the list heads of a level that is needed for the first time. Each head
    /// has the index of its bit in `occupied`.
    #[cold]
    fn add_level<T>(&mut self, entries: &mut Entries<T>, level: usize) -> EntryIndex {
        let lanes = self.lanes();
        let count = self.heads_per_level();
        let first = entries.add_sentinels(count, |n| {
            self.bitmap_index_of(level, n as usize / lanes, n as usize % lanes)
        });
        self.set_heads(level, first);
        first
    }

    /// Notes the first list head of a level.
    fn set_heads(&mut self, level: usize, first: EntryIndex) {
        self.heads[level] = first;
        for bit in 0..64 {
            if let Some(shift) = self.geometry.shift_if_in(level, bit) {
                self.ways.set(bit, first, shift);
            }
        }
    }

    fn bitmap_index_of(&self, level: usize, slot: usize, lane: usize) -> u32 {
        (self.word(level, slot, lane) * WORD + slot % WORD) as u32
    }

    /// Clears the marks of unsorted slots. All slots are empty.
    pub(super) fn clear_marks(&mut self) {
        self.unsorted.fill(0);
    }

    /// Returns the slot for a deadline that is later than `now`.
    #[inline]
    pub(crate) fn place(&mut self, now: u64, deadline: u64) -> Place {
        let by_bits = self.geometry.place_by_bits(now, deadline);
        by_bits.unwrap_or_else(|| self.place_by_division(now, deadline).into())
    }

    /// Returns two words, which come back in registers. A `Place` would come back in
    /// memory, and the places that are not computed here would go through memory too.
    #[cold]
    fn place_by_division(&mut self, now: u64, deadline: u64) -> TwoWords {
        let place = self.geometry.place_by_division(now, deadline);
        let is_at_top = place.level + 1 == self.geometry.levels();
        if let Some(unit) = self.geometry.capped_unit().filter(|_| is_at_top) {
            self.far.note(place.start, unit, deadline);
        }
        place.into()
    }

    /// Appends an entry to its lane's list in the slot.
    #[inline]
    pub(crate) fn append<T>(&mut self, entries: &mut Entries<T>, place: Place, entry: EntryIndex) {
        let list = self.list_for(entries, place, entry);
        self.append_to_list(entries, list, entry);
    }

    /// Appends an entry to a slot's list. Returns the list's bitmap index.
    #[inline]
    pub(crate) fn append_to_list<T>(
        &mut self,
        entries: &mut Entries<T>,
        list: EntryIndex,
        entry: EntryIndex,
    ) -> usize {
        let bitmap_index = entries.append(list, entry) as usize;
        // Every slot's list has a bit. A panic for one that has none would take instructions.
        debug_assert!(bitmap_index / WORD < self.occupied.len());
        if let Some(word) = self.occupied.get_mut(bitmap_index / WORD) {
            *word |= 1 << (bitmap_index % WORD);
        }
        bitmap_index
    }

    /// Appends an entry that may be older than the last one on the list. If it is
    /// older, marks the slot, which is then sorted when it fires.
    #[inline(always)]
    pub(crate) fn append_to_list_checked<T>(
        &mut self,
        entries: &mut Entries<T>,
        list: EntryIndex,
        entry: EntryIndex,
    ) {
        let bitmap_index = self.append_to_list(entries, list, entry);
        let (word, bit) = (bitmap_index / WORD, bitmap_index % WORD);
        self.mark_if_out_of_order(entries, word, bit, entry);
    }

    #[inline]
    fn list_for<T>(
        &mut self,
        entries: &mut Entries<T>,
        place: Place,
        entry: EntryIndex,
    ) -> EntryIndex {
        let first = match self.first_head(place.level) {
            Some(first) => first,
            None => self.add_level(entries, place.level),
        };
        entries.nth(first, self.nth_head(place.slot, entry.lane()))
    }

    /// Returns the list for an entry with a deadline that is later than `now`, and the start
    /// of its slot. This is [`Levels::place`] and [`Levels::list_for`] in one look-up.
    #[inline]
    pub(crate) fn list_for_later<T>(
        &mut self,
        entries: &mut Entries<T>,
        now: u64,
        deadline: u64,
        entry: EntryIndex,
    ) -> (EntryIndex, u64) {
        let bit = highest_difference(now, deadline);
        let Some(first) = self.ways.first_head(bit) else {
            return self.list_for_first(entries, now, deadline, entry);
        };
        let slot = self.geometry.slot_of_unit(self.ways.unit(bit, deadline));
        let list = entries.nth(first, self.nth_head(slot, entry.lane()));
        (list, self.ways.start(bit, deadline))
    }

    /// Does the same in two look-ups, if the deadline has no way.
    #[cold]
    #[inline(never)]
    fn list_for_first<T>(
        &mut self,
        entries: &mut Entries<T>,
        now: u64,
        deadline: u64,
        entry: EntryIndex,
    ) -> (EntryIndex, u64) {
        let place = self.place(now, deadline);
        (self.list_for(entries, place, entry), place.start)
    }

    /// Appends an entry to its lane's list in the slot, where it may be older than the last
    /// one.
    #[inline(always)]
    pub(crate) fn append_checked<T>(
        &mut self,
        entries: &mut Entries<T>,
        place: Place,
        entry: EntryIndex,
    ) {
        let list = self.list_for(entries, place, entry);
        self.append_to_list_checked(entries, list, entry);
    }

    /// Marks a slot if an entry that was just appended there is older than the one before.
    /// The slot has this bit of this word of `occupied`.
    #[inline(always)]
    fn mark_if_out_of_order<T>(
        &mut self,
        entries: &Entries<T>,
        word: usize,
        bit: usize,
        entry: EntryIndex,
    ) {
        let before = entries.prev(entry);
        // If the list was empty, `before` is its head, older than any timer.
        let younger = entries.stamp(before) > entries.stamp(entry);
        // There is no branch here, because it could not be predicted.
        self.unsorted[word >> self.mark_shift] |= u64::from(younger) << bit;
    }

    /// Notes that the list with this bitmap index has become empty.
    #[inline]
    pub(crate) fn list_is_empty(&mut self, bitmap_index: u32) {
        let bitmap_index = bitmap_index as usize;
        // A list outside all slots has a bitmap index beyond every word.
        if let Some(word) = self.occupied.get_mut(bitmap_index / WORD) {
            *word &= !(1 << (bitmap_index % WORD));
        }
    }

    /// Notes that all lanes of a slot are empty, except those that are set in `open`.
    #[inline]
    pub(crate) fn close_lanes(&mut self, level: usize, slot: usize, open: u32) {
        for lane in 0..self.lanes() {
            let closed = u64::from(!open >> lane & 1);
            let word = self.word(level, slot, lane);
            self.occupied[word] &= !(closed << (slot % WORD));
        }
    }

    /// Returns whether all levels before this one are empty.
    pub(crate) fn is_empty_before(&self, level: usize) -> bool {
        self.occupied[..level * self.stride]
            .iter()
            .all(|&word| word == 0)
    }

    /// Returns a set bit for each non-empty lane of this slot.
    #[inline(always)]
    pub(crate) fn occupied_lanes(&self, level: usize, slot: usize) -> u32 {
        let bit = slot % WORD;
        if self.lanes() == 1 {
            return (self.occupied[self.word(level, slot, 0)] >> bit & 1) as u32;
        }
        let words = self.lane_words(level).iter().enumerate();
        words.fold(0, |lanes, (lane, word)| {
            lanes | ((word >> bit & 1) as u32) << lane
        })
    }

    pub(crate) fn is_unsorted(&self, level: usize, slot: usize) -> bool {
        self.unsorted[self.unsorted_word(level, slot)] >> (slot % WORD) & 1 == 1
    }

    pub(crate) fn set_unsorted(&mut self, level: usize, slot: usize, unsorted: bool) {
        let word = &mut self.unsorted[self.unsorted_word(level, slot)];
        *word = *word & !(1 << (slot % WORD)) | u64::from(unsorted) << (slot % WORD);
    }

    fn words_of(&self, level: usize) -> &[u64] {
        &self.occupied[level * self.stride..(level + 1) * self.stride]
    }

    /// Returns a level's words, one for each lane. Their number is fixed, so that
    /// loops over them are unrolled.
    #[inline]
    fn lane_words(&self, level: usize) -> &[u64; LANES] {
        let words = self.occupied[level * LANES..].first_chunk();
        words.expect("as many words as lanes")
    }

    #[inline]
    fn word(&self, level: usize, slot: usize, lane: usize) -> usize {
        // There are several lanes, or several words of slots, but never both.
        level * self.stride + slot / WORD + lane
    }

    #[inline]
    fn unsorted_word(&self, level: usize, slot: usize) -> usize {
        level * self.marks + slot / WORD
    }
}

#[cfg(test)]
mod tests {
    use super::super::entries::Stamp;
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_slot_has_a_mark_of_its_own() {
        for size in [2, 64, 100, 256] {
            let mut levels = Levels::new(Geometry::new(size).unwrap());
            for level in 0..levels.geometry.levels() {
                for slot in 0..size {
                    assert!(!levels.is_unsorted(level, slot), "size {size}");
                    levels.set_unsorted(level, slot, true);
                    assert!(levels.is_unsorted(level, slot), "size {size}");
                }
            }
        }
    }

    #[test]
    fn adjacent_entries_hang_in_different_lanes() {
        let (mut entries, _) = Entries::new();
        let entry = |_| entries.insert(1, Stamp::new(1, 0), ());
        let lanes = (0..LANES).map(entry).map(EntryIndex::lane);
        assert_eq!(lanes.collect::<HashSet<_>>().len(), LANES);
    }
}
