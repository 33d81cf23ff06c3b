//! The levels: the occupied slots, and the heads of their lists.
//!
//! A slot has several lists, its *lanes*. On a single list, a slot of a million
//! cold entries is a chain of cache misses, each waiting for the one before. On
//! eight lists it is eight chains, whose misses overlap, and a cascade takes a
//! third of the time (see docs/DESIGN.md, "Eight lanes per slot"). The low bits of
//! an entry's index select its lane.

mod below;
mod ways;
mod widen;

use alloc::boxed::Box;
use alloc::vec;

pub(super) use below::{Below, List};
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

/// A slot of level 0 whose turn comes next, and what the level's bitmaps say.
pub(crate) struct Turn {
    pub(crate) start: u64,
    pub(crate) slot: usize,
    /// A set bit for each non-empty lane of the slot.
    pub(crate) open: u32,
    /// A set bit for each other occupied slot of the level.
    pub(crate) others: u64,
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
            occupied: vec![0; words].into_boxed_slice(),
            unsorted: vec![0; geometry.levels() * size.div_ceil(WORD)].into_boxed_slice(),
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
        if self.geometry.capped_unit().is_some() && place.level + 1 == self.geometry.levels() {
            self.note_at_top(place.start, deadline);
        }
        place.into()
    }

    fn note_at_top(&mut self, start: u64, deadline: u64) {
        let far = &mut self.far;
        if deadline - start < self.geometry.unit(self.geometry.levels() - 1) {
            far.none_within_reach_after = far.none_within_reach_after.max(start);
        } else {
            far.earliest = far.earliest.min(deadline);
        }
    }

    /// Appends an entry to its lane's list in the slot.
    #[inline]
    pub(crate) fn append<T>(&mut self, entries: &mut Entries<T>, place: Place, entry: EntryIndex) {
        let list = self.list_for(entries, place, entry);
        self.append_to_list(entries, list, entry);
    }

    /// Appends an entry to a slot's list.
    #[inline]
    pub(crate) fn append_to_list<T>(
        &mut self,
        entries: &mut Entries<T>,
        list: EntryIndex,
        entry: EntryIndex,
    ) {
        let bitmap_index = entries.append(list, entry) as usize;
        // Every slot's list has a bit. A panic for one that has none would take instructions.
        debug_assert!(bitmap_index / WORD < self.occupied.len());
        if let Some(word) = self.occupied.get_mut(bitmap_index / WORD) {
            *word |= 1 << (bitmap_index % WORD);
        }
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
    pub(crate) fn list_for_new<T>(
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

    /// Appends an entry that may be older than the last one on the list. If it is
    /// older, marks the slot, which is then sorted when it fires.
    #[inline(always)]
    pub(crate) fn append_checked<T>(
        &mut self,
        entries: &mut Entries<T>,
        place: Place,
        entry: EntryIndex,
    ) {
        self.append(entries, place, entry);
        self.mark_if_out_of_order(entries, place.level, place.slot, entry);
    }

    /// Marks a slot if an entry that was just appended there is older than the one before.
    #[inline(always)]
    fn mark_if_out_of_order<T>(
        &mut self,
        entries: &Entries<T>,
        level: usize,
        slot: usize,
        entry: EntryIndex,
    ) {
        let before = entries.prev(entry);
        // If the list was empty, `before` is its head, older than any timer.
        let younger = entries.stamp(before) > entries.stamp(entry);
        // There is no branch here, because it could not be predicted.
        let word = self.unsorted_word(level, slot);
        self.unsorted[word] |= u64::from(younger) << (slot % WORD);
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

    /// Returns the slot whose turn comes next. It is in the first level that is not
    /// empty, because the slots of a level come before those of the next level.
    pub(crate) fn next_occupied(&self, now: u64) -> Option<Place> {
        self.next_occupied_from(0, now)
    }

    /// Returns the next slot as [`Levels::next_occupied`] does, if all levels before
    /// this one are empty.
    fn next_occupied_from(&self, level: usize, now: u64) -> Option<Place> {
        let level = (level..self.geometry.levels()).find(|&level| self.is_occupied(level))?;
        self.next_in_level(level, now)
    }

    /// Returns whether any slot of a level is occupied.
    #[inline]
    fn is_occupied(&self, level: usize) -> bool {
        if self.first_head(level).is_none() {
            return false;
        }
        match self.can_have_lanes() {
            true => self.slots_of(level) != 0,
            false => self.words_of(level).iter().any(|&word| word != 0),
        }
    }

    /// Returns the start of the slot whose turn comes next, or the end of time.
    #[inline]
    pub(crate) fn next_start(&self, now: u64) -> u64 {
        match self.is_innermost_plain {
            true => self.next_start_after(now, self.innermost_slots()),
            false => self.next_start_from(0, now),
        }
    }

    /// Returns a set bit for each occupied slot of level 0, except the one that has its
    /// turn now.
    #[inline]
    pub(crate) fn innermost_but(&self, now: u64) -> Option<u64> {
        let slot = now as usize & (self.geometry.size() - 1);
        let slots = || self.innermost_slots() & !(1 << slot);
        self.is_innermost_plain.then(slots)
    }

    /// Returns the next start as [`Levels::next_start`] does, if level 0 is plain and
    /// exactly these of its slots are occupied.
    #[inline]
    pub(crate) fn next_start_after(&self, now: u64, slots: u64) -> u64 {
        // All slots of the level that are occupied lie ahead.
        let ahead = slots >> (now as usize & (self.geometry.size() - 1));
        match ahead {
            0 => self.next_start_from(1, now),
            _ => now + u64::from(ahead.trailing_zeros()),
        }
    }

    #[inline(never)]
    fn next_start_from(&self, level: usize, now: u64) -> u64 {
        let next = self.next_occupied_from(level, now);
        next.map_or(u64::MAX, |next| next.start)
    }

    #[inline]
    fn innermost_slots(&self) -> u64 {
        self.slots_of(0)
    }

    /// Returns a set bit for each occupied slot of a level whose slots fit one word.
    #[inline]
    fn slots_of(&self, level: usize) -> u64 {
        let words = self.lane_words(level);
        match self.lanes() {
            1 => words[0],
            _ => words.iter().fold(0, |all, word| all | word),
        }
    }

    /// Returns the slot that starts at `start`, later than `now`, if it is in level 0.
    /// Reads the bitmaps once for the slot and for the one after it. If they were read
    /// again after a store to one of their words, a load of two words at once would wait
    /// for that store (see docs/DESIGN.md, "A turn reads the bitmaps once").
    #[inline(always)]
    pub(crate) fn innermost_turn(&self, now: u64, start: u64) -> Option<Turn> {
        let size = self.geometry.size() as u64;
        if !self.is_innermost_plain || (now ^ start) >= size {
            return None;
        }
        let slot = (start & (size - 1)) as usize;
        Some(Turn {
            start,
            slot,
            open: self.occupied_lanes(0, slot),
            others: self.innermost_slots() & !(1 << slot),
        })
    }

    /// Notes that the only non-empty lane of a slot of level 0 has become empty.
    #[inline]
    pub(crate) fn close_sole_lane(&mut self, turn: &Turn) {
        let word = self.word(0, turn.slot, turn.open.trailing_zeros() as usize);
        self.occupied[word] &= !(1 << (turn.slot % WORD));
    }

    /// Returns whether only the top level of a capped wheel is occupied, and `to`
    /// lies a whole rotation of that level ahead.
    #[inline]
    pub(crate) fn is_rotation_ahead(&self, now: u64, to: u64) -> bool {
        let unit = self.geometry.capped_unit();
        unit.is_some_and(|unit| self.is_rotation_of_ahead(unit, now, to))
    }

    /// Returns the same for a capped top level, whose slots cover `unit` ticks.
    fn is_rotation_of_ahead(&self, unit: u64, now: u64, to: u64) -> bool {
        let rotations = (to / unit).saturating_sub(now / unit) / self.geometry.size() as u64;
        let next = || self.next_occupied(now);
        rotations > 0 && next().is_some_and(|next| next.level + 1 == self.geometry.levels())
    }

    /// Returns the tick from which a capped wheel continues on its way from `now`
    /// to `to`, which lies at least a rotation ahead. That tick is later than `now`
    /// by the whole rotations, if any, in which no timer can be due.
    ///
    /// After whole rotations, a slot has the same timers and the same place among
    /// the slots, so no entry needs to be touched.
    #[cold]
    pub(crate) fn leap(&mut self, now: u64, to: u64) -> u64 {
        let next = self.next_occupied(now);
        if next.is_none_or(|next| next.start <= self.far.none_within_reach_after) {
            return now;
        }
        let unit = self.geometry.unit(self.geometry.levels() - 1);
        let rotation = unit * self.geometry.size() as u64;
        // A timer may be due in the last slot of the rotation after the free ones.
        let free = self.far.no_earlier_than().saturating_sub(now) / rotation;
        let rotations = free.saturating_sub(1).min((to - now) / rotation);
        self.far.pass(now, rotations, rotation);
        now + rotations * rotation
    }

    /// Returns the occupied slots of `level`, in the order of their turns.
    pub(crate) fn occupied_in_level(
        &self,
        level: usize,
        now: u64,
    ) -> impl Iterator<Item = Place> + '_ {
        let current = self.geometry.slot(level, now);
        let from = move |least: usize| {
            let slot = self.occupied_from(level, (current + least) % self.geometry.size())?;
            let ahead = self.geometry.distance(current, slot);
            // A slot that is nearer has been passed already.
            (ahead >= least).then(|| self.place_ahead(level, slot, ahead, now))
        };
        let last = self.geometry.size() - 1;
        let ahead = move |slot: usize| self.geometry.distance(current, slot);
        core::iter::successors(from(0), move |place| {
            let ahead = ahead(place.slot);
            (ahead < last).then(|| from(ahead + 1)).flatten()
        })
    }

    fn next_in_level(&self, level: usize, now: u64) -> Option<Place> {
        let current = self.geometry.slot(level, now);
        let slot = self.occupied_from(level, current)?;
        let ahead = self.geometry.distance(current, slot);
        Some(self.place_ahead(level, slot, ahead, now))
    }

    /// Returns the first occupied slot of `level` from slot `first` on, wrapping around.
    #[inline(always)]
    fn occupied_from(&self, level: usize, first: usize) -> Option<usize> {
        if self.can_have_lanes() {
            return next_bit(self.slots_of(level), first);
        }
        next_bit_in(self.words_of(level), first)
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

    fn place_ahead(&self, level: usize, slot: usize, ahead: usize, now: u64) -> Place {
        Place {
            level,
            slot,
            start: self.geometry.start_ahead(level, now, ahead),
        }
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

/// Bounds for the timers in a capped top level. A timer beyond the level's reach
/// waits in a slot whose turn comes before the timer's deadline.
struct Far {
    /// The tick at which the current rotation began.
    rotation_began: u64,
    /// The earliest deadlines of timers linked beyond reach in this rotation and in
    /// the one before. In a rotation, each slot has its turn and its entries are
    /// linked again, so no timer beyond reach is due before the earlier of the two.
    earliest: u64,
    earliest_before: u64,
    /// The start of the latest slot to which a timer within reach was linked.
    none_within_reach_after: u64,
}

impl Default for Far {
    fn default() -> Far {
        Far {
            rotation_began: 0,
            earliest: u64::MAX,
            earliest_before: u64::MAX,
            none_within_reach_after: 0,
        }
    }
}

impl Far {
    fn no_earlier_than(&self) -> u64 {
        self.earliest.min(self.earliest_before)
    }

    /// Notes that `rotations` rotations of `rotation` ticks each are skipped at
    /// `now`.
    fn pass(&mut self, now: u64, rotations: u64, rotation: u64) {
        if now.saturating_sub(self.rotation_began) >= rotation {
            self.earliest_before = core::mem::replace(&mut self.earliest, u64::MAX);
            self.rotation_began = now;
        }
        self.rotation_began += rotations * rotation;
    }
}

/// Returns the first set bit from `from` on, wrapping around.
fn next_bit(word: u64, from: usize) -> Option<usize> {
    (word != 0).then(|| (from + word.rotate_right(from as u32).trailing_zeros() as usize) % WORD)
}

/// Returns the first set bit of several words, as [`next_bit`] does for one.
fn next_bit_in(words: &[u64], from: usize) -> Option<usize> {
    let first = from / WORD;
    let ahead = words[first] & u64::MAX << (from % WORD);
    if ahead != 0 {
        return Some(first * WORD + ahead.trailing_zeros() as usize);
    }
    let find = |mut range: core::ops::Range<usize>| range.find(|&word| words[word] != 0);
    let word = find(first + 1..words.len()).or_else(|| find(0..first + 1))?;
    Some(word * WORD + words[word].trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::super::entries::Stamp;
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_search_for_the_next_bit_wraps_around() {
        assert_eq!(next_bit(0, 5), None);
        assert_eq!(next_bit(1 << 5, 5), Some(5));
        assert_eq!(next_bit(1 << 4, 5), Some(4));
        assert_eq!(next_bit(1 << 4 | 1 << 63, 5), Some(63));
        let words = [1 << 3, 0, 1 << 7];
        assert_eq!(next_bit_in(&words, 3), Some(3));
        assert_eq!(next_bit_in(&words, 4), Some(135));
        assert_eq!(next_bit_in(&words, 136), Some(3));
        assert_eq!(next_bit_in(&[0, 0], 70), None);
    }

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

    fn store(entries: &mut Entries<()>, deadline: u64) -> EntryIndex {
        entries.insert(deadline, Stamp::new(1, 0), ())
    }

    #[test]
    fn adjacent_entries_hang_in_different_lanes() {
        let (mut entries, _) = Entries::new();
        let lanes = (0..LANES).map(|_| store(&mut entries, 1).lane());
        assert_eq!(lanes.collect::<HashSet<_>>().len(), LANES);
    }

    /// Creates levels of four slots, with an entry in the slot of each deadline.
    fn levels_with(cap: usize, deadlines: &[u64]) -> Levels {
        let mut levels = Levels::new(Geometry::new(4).unwrap().max_levels(cap).unwrap());
        let (mut entries, _) = Entries::new();
        for &deadline in deadlines {
            let place = levels.place(0, deadline);
            let entry = store(&mut entries, deadline);
            levels.append(&mut entries, place, entry);
        }
        levels
    }

    #[test]
    fn a_rotation_is_ahead_if_only_a_capped_top_level_is_occupied() {
        let top = levels_with(2, &[99]);
        assert!(!top.is_rotation_ahead(0, 15));
        assert!(top.is_rotation_ahead(0, 16) && top.is_rotation_ahead(0, 32));
        assert!(!top.is_rotation_ahead(160, 175) && top.is_rotation_ahead(160, 176));
        assert!(!levels_with(2, &[3, 99]).is_rotation_ahead(0, 16));
        assert!(!levels_with(2, &[]).is_rotation_ahead(0, 16));
        assert!(!levels_with(32, &[u64::MAX]).is_rotation_ahead(0, u64::MAX));
    }
}
