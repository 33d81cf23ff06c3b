//! Prefetching for the cascade of a long list.
//!
//! Each entry of a list tells where the next one is. If the entries are not in the cache, a
//! walk waits for one after another. So a large wheel remembers some entries of each long list:
//! every 32nd one that is appended is a *landmark*. Before a cascade goes on, it reads ahead from
//! 16 landmarks at once, so that the processor fetches 16 entries at a time.
//!
//! A landmark is only a hint. Its entry may have been cancelled and taken by another timer; then
//! something else is fetched, and nothing else happens.

use alloc::collections::{BTreeMap, VecDeque};

use super::entries::{Entries, EntryIndex, Stamp};

/// The number of entries from one landmark to the next, which one reader reads. Unit tests
/// have short lists.
const STRIDE: u64 = if cfg!(test) { 3 } else { 32 };

/// The number of landmarks from which entries are read at once: about as many cache misses as
/// a core has under way at a time.
const READERS: usize = 16;

/// Up to this number of entries, those of a wheel of small payloads are in the cache.
const CACHED: u32 = if cfg!(test) { 20 } else { 16_384 };

/// The number of landmarks that are dropped at a time because the walk has passed them.
const DROPPED: usize = 1_024;

#[derive(Clone)]
pub(super) struct Landmarks {
    /// Landmarks in the order of their lists. Each has the lower half of its timer's sequence
    /// number.
    of_list: BTreeMap<EntryIndex, VecDeque<(EntryIndex, u32)>>,
    /// The number of all landmarks.
    count: usize,
    /// The first list of level 1. The lists before it aren't cascaded.
    first: EntryIndex,
    /// The number of entries, heads included, from which on landmarks are kept.
    large: u32,
    /// The number of entries that a cascade may pass before it reads ahead again.
    read: u64,
}

impl Landmarks {
    /// Creates no landmarks, for lists from `first` on in a wheel of `lists` lists.
    pub(super) fn new(first: EntryIndex, lists: u32) -> Landmarks {
        Landmarks {
            of_list: BTreeMap::new(),
            count: 0,
            first,
            large: lists + CACHED,
            read: 0,
        }
    }

    /// Notes that a timer was appended to a list. Counts in the place of the head's deadline.
    #[inline(always)]
    pub(super) fn appended<T>(
        &mut self,
        entries: &mut Entries<T>,
        list: EntryIndex,
        entry: EntryIndex,
        stamp: Stamp,
    ) {
        if entries.used() <= self.large {
            return;
        }
        let head = entries.get_mut(list);
        head.deadline += 1;
        if head.deadline % STRIDE == 0 {
            self.add(entries, list, entry, stamp);
        }
    }

    #[cold]
    #[inline(never)]
    fn add<T>(&mut self, entries: &Entries<T>, list: EntryIndex, entry: EntryIndex, stamp: Stamp) {
        if list < self.first {
            return;
        }
        // Timers that were cancelled leave landmarks behind.
        if self.count as u64 * STRIDE / 2 > u64::from(entries.used()) {
            self.clear();
        }
        self.count += 1;
        let landmarks = self.of_list.entry(list).or_default();
        landmarks.push_back((entry, stamp.sequence() as u32));
    }

    /// Begins a cascade.
    pub(super) fn begin(&mut self) {
        self.read = match self.of_list.is_empty() {
            true => u64::MAX,
            false => 0,
        };
    }

    /// Notes that a cascade is going to pass an entry. If this was not read yet, reads ahead.
    #[inline(always)]
    pub(super) fn pass<T>(&mut self, entries: &Entries<T>, list: EntryIndex, entry: EntryIndex) {
        if self.read == 0 {
            self.read = self.read_ahead(entries, list, entry);
        }
        self.read -= 1;
    }

    #[cold]
    #[inline(never)]
    fn read_ahead<T>(&mut self, entries: &Entries<T>, list: EntryIndex, entry: EntryIndex) -> u64 {
        let Some(landmarks) = self.of_list.get_mut(&list) else {
            return u64::MAX;
        };
        let sequence = entries.get(entry).stamp().sequence() as u32;
        let is_passed = |&(_, of): &(_, u32)| of.wrapping_sub(sequence) as i32 <= 0;
        for _ in 0..DROPPED {
            if !landmarks.front().is_some_and(is_passed) {
                break;
            }
            landmarks.pop_front();
            self.count -= 1;
        }
        let mut readers = [entry; READERS];
        let count = landmarks.len().min(READERS - 1);
        self.count -= count;
        for (reader, (landmark, _)) in readers[1..].iter_mut().zip(landmarks.drain(..count)) {
            // The entry may have been cut off.
            *reader = entries.entry_at(landmark.index().into()).unwrap_or(entry);
        }
        for _ in 0..STRIDE {
            for reader in &mut readers[..=count] {
                // An entry on no list may lead to one that was cut off.
                let next = entries.next(*reader).index();
                *reader = entries.entry_at(next.into()).unwrap_or(entry);
                entries.prefetch(*reader);
            }
        }
        STRIDE * (count as u64 + 1)
    }

    /// Ends the cascade of a list.
    pub(super) fn end(&mut self, list: EntryIndex) {
        if !self.of_list.is_empty() {
            let landmarks = self.of_list.remove(&list);
            self.count -= landmarks.map_or(0, |landmarks| landmarks.len());
        }
    }

    /// Forgets all landmarks.
    pub(super) fn clear(&mut self) {
        self.of_list.clear();
        (self.count, self.read) = (0, u64::MAX);
    }
}
