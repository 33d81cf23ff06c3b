//! The levels: the occupied slots, and the heads of their lists.
//!
//! A slot has several lists, its *lanes*. On a single list, a slot of a million
//! cold entries is a chain of cache misses, each waiting for the one before. On
//! eight lists it is eight chains, whose misses overlap, and a cascade takes a
//! third of the time (see docs/DESIGN.md, "Eight lanes per slot"). The low bits of
//! an entry's index select its lane.

use super::entries::list::End;
use super::entries::{Entries, EntryIndex, LANES};
use super::geometry::{Geometry, MAX_LEVELS, Place};

const WORD: usize = u64::BITS as usize;

pub(crate) struct Levels {
    pub(crate) geometry: Geometry,
    /// A slot has `LANES >> lane_shift` lanes: one, or all (see `wheel/lanes.rs`).
    lane_shift: u32,
    /// The number of words of `occupied` per level.
    stride: usize,
    /// A bit for each list, set if the list is not empty. Words are sorted by level,
    /// then by lane (or, with more than 64 slots, slot / 64). The bit is slot % 64.
    /// There is room for all lanes, even while there is one.
    occupied: Box<[u64]>,
    /// A bit for each slot, set if its lists may be out of order.
    unsorted: Box<[u64]>,
    /// The first list head of each level. Until a level is needed, its place holds
    /// the first of all entries, which does not belong to any level.
    heads: [EntryIndex; MAX_LEVELS],
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
            occupied: vec![0; words].into_boxed_slice(),
            unsorted: vec![0; geometry.levels() * size.div_ceil(WORD)].into_boxed_slice(),
            heads: [EntryIndex::FIRST; MAX_LEVELS],
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

    #[inline]
    pub(super) fn can_widen(&self) -> bool {
        self.lane_shift != 0 && self.can_have_lanes()
    }

    pub(super) fn can_narrow(&self) -> bool {
        self.lane_shift == 0
    }

    /// Gives every slot all its lanes, instead of one.
    pub(super) fn widen<T>(&mut self, entries: &mut Entries<T>) {
        let narrow = core::mem::replace(&mut self.heads, [EntryIndex::FIRST; MAX_LEVELS]);
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
    pub(super) fn narrow<T>(&mut self, entries: &mut Entries<T>) {
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

    /// Returns the number of list heads.
    pub(super) fn heads(&self) -> usize {
        self.geometry.levels() * self.heads_per_level() as usize - self.heads_to_come()
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
        self.heads[level] = first;
        first
    }

    fn bitmap_index_of(&self, level: usize, slot: usize, lane: usize) -> u32 {
        (self.word(level, slot, lane) * WORD + slot % WORD) as u32
    }

    /// Returns the first head of the level that `head` belongs to.
    pub(super) fn first_of_level_with(&self, head: EntryIndex) -> Option<EntryIndex> {
        let count = self.heads_per_level();
        let is_in = |first: &EntryIndex| *first <= head && head.index() - first.index() < count;
        let levels = self.heads[..self.geometry.levels()].iter();
        levels
            .copied()
            .find(|first| *first != EntryIndex::FIRST && is_in(first))
    }

    /// Returns the levels whose heads stand at `index` or behind it, in the order
    /// of their heads.
    pub(super) fn levels_from(&self, index: u32) -> Vec<usize> {
        let is_behind = |&level: &usize| {
            let first = self.heads[level];
            first != EntryIndex::FIRST && first.index() >= index
        };
        let levels = 0..self.geometry.levels();
        let mut levels: Vec<usize> = levels.filter(is_behind).collect();
        levels.sort_unstable_by_key(|&level| self.heads[level]);
        levels
    }

    pub(super) fn heads_per_level(&self) -> u32 {
        (self.geometry.size() * self.lanes()) as u32
    }

    /// Moves a level's heads to `to`. All entries between `to` and the heads are
    /// vacant. Returns the old and the new first head.
    pub(super) fn move_heads<T>(
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
        self.heads[level] = is;
        (was, is)
    }

    /// Forgets a level's heads, whose lists are empty.
    pub(super) fn forget_heads(&mut self, level: usize) {
        self.heads[level] = EntryIndex::FIRST;
    }

    /// Clears the marks of unsorted slots. All slots are empty.
    pub(super) fn clear_marks(&mut self) {
        self.unsorted.fill(0);
    }

    /// Returns the slot for a deadline that is later than `now`.
    #[inline]
    pub(crate) fn place(&mut self, now: u64, deadline: u64) -> Place {
        let by_bits = self.geometry.place_by_bits(now, deadline);
        by_bits.unwrap_or_else(|| self.place_by_division(now, deadline))
    }

    #[cold]
    fn place_by_division(&mut self, now: u64, deadline: u64) -> Place {
        let place = self.geometry.place_by_division(now, deadline);
        if self.geometry.capped_unit().is_some() && place.level + 1 == self.geometry.levels() {
            self.note_at_top(place.start, deadline);
        }
        place
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
        let bitmap_index = entries.append(list, entry);
        self.note_occupied(bitmap_index);
    }

    /// Links an entry that comes from either end of another slot's list: see
    /// [`Entries::insert_at_middle`].
    #[inline]
    pub(crate) fn insert_at_middle<T>(
        &mut self,
        entries: &mut Entries<T>,
        place: Place,
        entry: EntryIndex,
        from: End,
    ) {
        let list = self.list_for(entries, place, entry);
        entries.insert_at_middle(list, entry, from);
        self.note_occupied(entries.bitmap_index(list));
    }

    /// Returns the level below `level`, of which a slot has its turn at `now`. Returns
    /// `None` if a level has more than 64 slots, if the size is not a power of two, or
    /// if the level below has not been needed yet.
    pub(super) fn below(&self, level: usize, now: u64) -> Option<Below> {
        let (bits, level) = (self.geometry.bits()?, level - 1);
        let shift = level as u32 * bits;
        let begins_now = now.trailing_zeros() >= shift + bits;
        if !self.can_have_lanes() || !begins_now {
            return None;
        }
        let least = u64::from(level > 0);
        Some(Below {
            now,
            shift,
            least,
            slots: self.geometry.size() as u64 - least,
            first: self.first_head(level)?,
            first_word: level * self.stride,
            lane_shift: self.lane_shift,
        })
    }

    /// Appends an entry to `list`.
    #[inline]
    pub(super) fn append_to<T>(&mut self, entries: &mut Entries<T>, list: List, entry: EntryIndex) {
        entries.append(list.head, entry);
        self.occupied[list.word] |= 1 << list.slot;
    }

    /// Links an entry to `list`: see [`Entries::insert_at_middle`].
    #[inline]
    pub(super) fn insert_at_middle_of<T>(
        &mut self,
        entries: &mut Entries<T>,
        list: List,
        entry: EntryIndex,
        from: End,
    ) {
        entries.insert_at_middle(list.head, entry, from);
        self.occupied[list.word] |= 1 << list.slot;
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

    #[inline]
    fn note_occupied(&mut self, bitmap_index: u32) {
        let bitmap_index = bitmap_index as usize;
        self.occupied[bitmap_index / WORD] |= 1 << (bitmap_index % WORD);
    }

    /// Appends an entry that may be older than the last one on the list. If it is
    /// older, marks the slot, which is then sorted when it fires.
    #[inline]
    pub(crate) fn append_checked<T>(
        &mut self,
        entries: &mut Entries<T>,
        place: Place,
        entry: EntryIndex,
    ) {
        self.append(entries, place, entry);
        let before = entries.prev(entry);
        // If the list was empty, `before` is its head, older than any timer.
        let younger = entries.stamp(before) > entries.stamp(entry);
        // There is no branch here, because it could not be predicted.
        let word = self.unsorted_word(place.level, place.slot);
        self.unsorted[word] |= u64::from(younger) << (place.slot % WORD);
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
        (0..self.geometry.levels())
            .filter(|&level| self.first_head(level).is_some())
            .find_map(|level| self.next_in_level(level, now))
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
            let words = self.lane_words(level).iter();
            return next_bit(words.fold(0, |all, word| all | word), first);
        }
        let words = level * self.stride..(level + 1) * self.stride;
        next_bit_in(&self.occupied[words], first)
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
        level * self.geometry.size().div_ceil(WORD) + slot / WORD
    }
}

/// The level below a slot whose turn has come. Most of the slot's entries go there,
/// each to the same lane, so their new lists are found in fewer steps than by
/// [`Levels::place`].
pub(super) struct Below {
    /// The start of the slot whose turn has come.
    now: u64,
    /// The binary logarithm of the number of ticks per slot.
    shift: u32,
    /// The first slot to which entries go, and the number of slots from there on.
    /// Entries of slot 0 go to lower levels, if there are any.
    least: u64,
    slots: u64,
    /// The head of slot 0's first lane, and the word of that lane in `occupied`.
    first: EntryIndex,
    first_word: usize,
    lane_shift: u32,
}

/// One of the lists of a level below.
pub(super) struct List {
    head: EntryIndex,
    /// The word of `occupied`, and the bit in it.
    word: usize,
    slot: u64,
}

impl Below {
    /// Returns the slot for a deadline, if it belongs to this level.
    #[inline]
    pub(super) fn slot(&self, deadline: u64) -> Option<u64> {
        let slot = (deadline ^ self.now) >> self.shift;
        (slot.wrapping_sub(self.least) < self.slots).then_some(slot)
    }

    /// Returns the list of this slot and lane.
    #[inline]
    pub(super) fn list<T>(&self, entries: &Entries<T>, slot: u64, lane: usize) -> List {
        List {
            head: entries.nth(
                self.first,
                ((slot as usize * LANES + lane) >> self.lane_shift) as u32,
            ),
            word: self.first_word + lane,
            slot,
        }
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
