//! Storing records by key, in pages that never move.
//!
//! A vector that doubles copies all records, or has the system move their pages, while
//! the caller holds the shard's lock. Here the caller allocates one page of bounded size,
//! and copies at most the first page and the list of pages.

use std::ops::{Index, IndexMut};

use crate::shard::record::TimerRecord;

/// The size that a page has, unless a single record is larger.
const PAGE_BYTES: usize = 32 << 10;

/// The end of the list of vacant slots.
const NONE: usize = usize::MAX;

/// The records of a shard.
pub(crate) type TimerRecords<T> = Records<TimerRecord<T>>;

pub(crate) struct Records<R> {
    /// All pages but the last are full, and all but the first have their final capacity.
    pages: Vec<Vec<Slot<R>>>,
    len: usize,
    /// The slot that was vacated last.
    vacant: usize,
}

enum Slot<R> {
    /// Contains the slot that was vacated before this one.
    Vacant(usize),
    Full(R),
}

/// The slot of a record that is being made.
pub(crate) struct VacantEntry<'a, R> {
    key: usize,
    slot: &'a mut Slot<R>,
}

impl<R> VacantEntry<'_, R> {
    /// Stores the record. Returns its key.
    #[inline(always)]
    pub(crate) fn insert(self, record: R) -> usize {
        // Forgotten, because there is nothing to drop in a vacant slot.
        std::mem::forget(std::mem::replace(self.slot, Slot::Full(record)));
        self.key
    }
}

impl<R> Records<R> {
    /// A page has two to the power of this many slots.
    const SHIFT: u32 = ((PAGE_BYTES / size_of::<Slot<R>>()) | 1).ilog2();
    const PER_PAGE: usize = 1 << Self::SHIFT;

    pub(crate) fn new() -> Records<R> {
        Records {
            pages: Vec::new(),
            len: 0,
            vacant: NONE,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of bytes of all pages.
    pub(crate) fn bytes(&self) -> usize {
        let first = self.pages.first().map_or(0, Vec::capacity);
        let others = self.pages.len().saturating_sub(1) * Self::PER_PAGE;
        (first + others) * size_of::<Slot<R>>()
    }

    /// Returns the slot for the next record. All that can fail is done here, so a record
    /// that is made afterwards is made in its slot. Otherwise, the compiler would make it
    /// elsewhere, to drop it after a failure, and copy it.
    #[inline(always)]
    pub(crate) fn vacant_entry(&mut self) -> VacantEntry<'_, R> {
        if self.vacant == NONE {
            self.add_slot();
        }
        let key = self.vacant;
        let slot = &mut self.pages[key >> Self::SHIFT][key % Self::PER_PAGE];
        let Slot::Vacant(before) = *slot else {
            unreachable!("only vacant slots are on the list");
        };
        self.vacant = before;
        self.len += 1;
        VacantEntry { key, slot }
    }

    /// Adds a vacant slot behind all others.
    #[cold]
    #[inline(never)]
    fn add_slot(&mut self) {
        if self
            .pages
            .last()
            .is_none_or(|page| page.len() == Self::PER_PAGE)
        {
            self.add_page();
        }
        let full = (self.pages.len() - 1) * Self::PER_PAGE;
        let page = self.pages.last_mut().expect("a page was added");
        self.vacant = full + page.len();
        page.push(Slot::Vacant(NONE));
    }

    /// Adds a page. The first one grows as needed, because most shards have few records.
    fn add_page(&mut self) {
        self.pages.push(match self.pages.is_empty() {
            true => Vec::new(),
            false => Vec::with_capacity(Self::PER_PAGE),
        });
    }

    /// Drops a record where it is, with all that was not taken out of it.
    ///
    /// # Panics
    /// If there is no record with this key.
    #[inline(always)]
    pub(crate) fn remove(&mut self, key: usize) {
        let before = self.vacant;
        let slot = self.slot_mut(key);
        if matches!(slot, Slot::Vacant(_)) {
            no_record();
        }
        *slot = Slot::Vacant(before);
        self.vacant = key;
        self.len -= 1;
    }

    #[inline]
    fn slot_mut(&mut self, key: usize) -> &mut Slot<R> {
        &mut self.pages[key >> Self::SHIFT][key % Self::PER_PAGE]
    }
}

impl<R> Index<usize> for Records<R> {
    type Output = R;

    #[inline]
    fn index(&self, key: usize) -> &R {
        match &self.pages[key >> Self::SHIFT][key % Self::PER_PAGE] {
            Slot::Full(record) => record,
            Slot::Vacant(_) => no_record(),
        }
    }
}

impl<R> IndexMut<usize> for Records<R> {
    #[inline]
    fn index_mut(&mut self, key: usize) -> &mut R {
        match self.slot_mut(key) {
            Slot::Full(record) => record,
            Slot::Vacant(_) => no_record(),
        }
    }
}

#[cold]
#[inline(never)]
fn no_record() -> ! {
    panic!("a timer's entry contains the key of its record")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Thousands = Records<[u8; 1_000]>;
    const MANY: usize = 10_000;

    fn addresses(records: &Thousands, keys: usize) -> Vec<*const u8> {
        (0..keys).map(|key| records[key].as_ptr()).collect()
    }

    #[test]
    fn growing_moves_at_most_the_records_of_one_page() {
        let mut records = Thousands::new();
        for key in 0..MANY {
            assert_eq!(records.vacant_entry().insert([0; 1_000]), key);
        }
        let before = addresses(&records, MANY);
        for key in MANY..2 * MANY {
            assert_eq!(records.vacant_entry().insert([0; 1_000]), key);
        }
        assert_eq!(addresses(&records, MANY), before);
        assert_eq!(Thousands::PER_PAGE, 32);
    }

    #[test]
    fn a_vacated_slot_is_used_again_before_a_new_one() {
        let mut records = Records::new();
        (0..MANY).for_each(|n| assert_eq!(records.vacant_entry().insert(n), n));
        let bytes = records.bytes();
        for key in [7, MANY - 1, 0] {
            records.remove(key);
        }
        assert_eq!(records.len(), MANY - 3);
        for key in [0, MANY - 1, 7] {
            assert_eq!(records.vacant_entry().insert(key), key);
        }
        assert_eq!(records.bytes(), bytes);
        assert!((0..MANY).all(|key| records[key] == key));
    }

    #[test]
    fn one_record_takes_little_memory_and_none_takes_nothing() {
        let mut records = Thousands::new();
        assert_eq!(records.bytes(), 0);
        let key = records.vacant_entry().insert([0; 1_000]);
        assert!(records.bytes() <= 4 * 1_008);
        records[key][0] = 1;
        records.remove(key);
        assert!(records.is_empty());
    }

    #[test]
    fn a_record_larger_than_a_page_has_a_page_of_its_own() {
        let mut records = Records::new();
        for n in 0..3_u8 {
            let key = records.vacant_entry().insert([n; 2 * PAGE_BYTES]);
            assert_eq!(records[key][0], n);
        }
        assert_eq!(records.pages.len(), 3);
    }

    #[test]
    #[should_panic(expected = "key of its record")]
    fn a_record_is_removed_once() {
        let mut records = Records::new();
        records.vacant_entry().insert(0);
        records.remove(0);
        records.remove(0);
    }
}
