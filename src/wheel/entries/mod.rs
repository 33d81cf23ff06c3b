//! The storage of timers: entries by index, and the lists that they hang on.
//!
//! All code in this folder is safe, except in `block`.

mod block;
mod compact;
mod list;
mod moved;
mod pass;
mod vacant;

pub use block::ReserveError;
pub(crate) use block::{EntryIndex, LANES, Sequence, Stamp};
pub(crate) use pass::{Gather, Stage, Vacancy};

use alloc::boxed::Box;

use block::{Block, Entry};
use moved::{MOVED, Moved};
use pass::Pass;
use vacant::Vacant;

pub(crate) struct Entries<T> {
    block: Block<T>,
    live: u32,
    vacant: Vacant,
    moved: Moved,
    /// The shrinking pass in progress, if any.
    pass: Option<Box<Pass>>,
}

impl<T> Entries<T> {
    /// Creates a storage whose entry 0 is a sentinel, the head of the first list.
    /// Returns the storage and that list.
    pub(crate) fn new() -> (Entries<T>, EntryIndex) {
        let mut entries = Entries {
            block: Block::new(),
            live: 0,
            vacant: Vacant::new(),
            moved: Moved::default(),
            pass: None,
        };
        let first = entries.add_list();
        (entries, first)
    }

    /// Returns the number of timers.
    #[inline]
    pub(crate) fn live(&self) -> usize {
        self.live as usize
    }

    /// Makes room for `timers` timers in all and `heads` more list heads.
    pub(crate) fn try_reserve(&mut self, timers: usize, heads: usize) -> Result<(), ReserveError> {
        let more = timers.saturating_sub(self.live());
        self.block.try_reserve(more, heads)
    }

    /// Stores a timer, which does not hang on any list yet.
    #[inline]
    pub(crate) fn insert(&mut self, deadline: u64, stamp: Stamp, payload: T) -> EntryIndex {
        let entry = match self.take_vacant() {
            Some(entry) => entry,
            None => self.add_vacant(),
        };
        self.fill(entry, deadline, stamp, payload);
        entry
    }

    /// Takes a vacant entry, which the caller fills.
    #[inline]
    pub(crate) fn take_vacant(&mut self) -> Option<EntryIndex> {
        self.vacant.take_last().or_else(|| self.pop_vacant())
    }

    /// Adds a vacant entry, which the caller fills, behind all other entries.
    #[inline]
    pub(crate) fn add_vacant(&mut self) -> EntryIndex {
        self.block.push_vacant()
    }

    /// Returns whether adding an entry needs more memory.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.block.is_full()
    }

    /// Stores a timer in a vacant entry that was taken or added.
    #[inline]
    pub(crate) fn fill(&mut self, entry: EntryIndex, deadline: u64, stamp: Stamp, payload: T) {
        self.block.fill(entry, deadline, stamp, payload);
        self.live += 1;
    }

    /// Takes a vacant entry from the lists, and prefetches one that will be taken
    /// later.
    fn pop_vacant(&mut self) -> Option<EntryIndex> {
        let entry = self.vacant.top()?;
        let below = self.next(entry);
        self.vacant.pop(below);
        self.prefetch(below);
        Some(entry)
    }

    /// Stores a timer that was taken out, under the id that it had: with this index
    /// and this sequence number. It does not hang on any list yet.
    pub(crate) fn put_back(
        &mut self,
        index: u32,
        sequence: u64,
        deadline: u64,
        payload: T,
    ) -> EntryIndex {
        let entry = self.insert(deadline, Stamp::new(sequence, 0), payload);
        if entry.index() != index {
            self.get_mut(entry).mark(MOVED);
            self.moved.note(sequence, index, entry);
        }
        entry
    }

    /// Takes a timer out of its entry. The entry is on no list, and becomes vacant.
    ///
    /// # Panics
    /// If the entry holds no timer.
    #[inline]
    pub(crate) fn remove(&mut self, entry: EntryIndex) -> T {
        let payload = self.take_for_good(entry);
        self.note_vacated(entry);
        payload
    }

    /// Notes that an entry, which is on no list and holds no timer, may be used again.
    #[inline]
    pub(crate) fn note_vacated(&mut self, entry: EntryIndex) {
        if let Some(before) = self.vacant.replace_last(entry) {
            self.put_on_list(before);
        }
    }

    /// Vacates the entry of a list's head, which is needed no longer.
    pub(crate) fn remove_sentinel(&mut self, head: EntryIndex) {
        self.block.vacate_sentinel(head);
        if let Some(pass) = &mut self.pass {
            pass.return_to(head);
        }
        self.note_vacated(head);
    }

    /// Takes a timer out of its entry. The entry stays on its list, and is not used
    /// again.
    ///
    /// This is for an abandoned storage, whose lists are no longer walked. It does
    /// not touch the entries before and after this one on the list.
    ///
    /// # Panics
    /// If the entry holds no timer.
    #[inline]
    pub(crate) fn take_for_good(&mut self, entry: EntryIndex) -> T {
        let (stamp, payload) = self.block.vacate(entry);
        if stamp.tag() & MOVED != 0 {
            self.moved.forget(stamp.sequence());
        }
        self.live -= 1;
        payload
    }

    #[inline]
    fn put_on_list(&mut self, vacant: EntryIndex) {
        if self.pass.as_ref().is_none_or(|pass| pass.lists(vacant)) {
            self.get_mut(vacant).next = self.vacant.push(vacant);
        }
    }

    /// Returns the number of bytes of all entries and cells; see [`Block::bytes`].
    pub(crate) fn bytes(&self) -> usize {
        self.block.bytes()
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> u32 {
        self.block.capacity()
    }

    /// Returns the number of entries that have a cell.
    #[cfg(test)]
    pub(crate) fn cells(&self) -> usize {
        self.block.cells()
    }

    /// Asserts that every moved timer can be found, and that every vacant entry
    /// will be used again.
    #[cfg(test)]
    pub(crate) fn assert_consistent(&self) {
        let moved = |&entry: &EntryIndex| self.stamp(entry).tag() & MOVED != 0;
        let moved: Vec<EntryIndex> = self.timers().filter(moved).collect();
        assert_eq!(moved.len(), self.moved.len());
        for entry in moved {
            let sequence = self.stamp(entry).sequence();
            assert_eq!(self.find(self.index_of(entry), sequence), Some(entry));
        }
        assert_eq!(self.timers().count(), self.live());
        if let Some(Stage::Gather(gather)) = self.stage() {
            let mut timers = self.timers().map(EntryIndex::index);
            assert!(timers.all(|index| index < gather.high || index >= gather.top));
        }
        if self.pass.is_none() {
            let cells = (0..self.used()).filter_map(|index| self.entry_at(index));
            let vacant = cells.filter(|&entry| self.is_vacant(entry)).count();
            assert_eq!(vacant, self.vacant.len());
        }
    }

    /// Finds the timer with this sequence number and with this index in its id.
    #[inline]
    pub(crate) fn find(&self, index: u32, sequence: u64) -> Option<EntryIndex> {
        match self.find_unmoved(index.into(), sequence) {
            Some(entry) => Some(entry),
            None => self.find_moved(sequence),
        }
    }

    /// Returns the entry at `index`, if it holds the timer with this sequence
    /// number. There are no entries at an index of more than 32 bits.
    #[inline]
    pub(crate) fn find_unmoved(&self, index: u64, sequence: u64) -> Option<EntryIndex> {
        let entry = self.block.entry_at(index)?;
        let stamp = self.stamp(entry);
        (stamp.sequence() == sequence).then_some(entry)
    }

    #[cold]
    #[inline(never)]
    fn find_moved(&self, sequence: u64) -> Option<EntryIndex> {
        self.moved.find(sequence)
    }

    /// Returns the index in a timer's id.
    #[inline]
    pub(crate) fn index_of(&self, entry: EntryIndex) -> u32 {
        let stamp = self.stamp(entry);
        match stamp.tag() & MOVED {
            0 => entry.index(),
            _ => self.first_index_of(stamp),
        }
    }

    #[cold]
    #[inline(never)]
    fn first_index_of(&self, stamp: Stamp) -> u32 {
        let index = self.moved.first_index(stamp.sequence());
        index.expect("a moved timer is known")
    }

    /// Returns the entry at `index`, if there is one, vacant or not.
    #[inline]
    pub(crate) fn entry_at(&self, index: u32) -> Option<EntryIndex> {
        self.block.entry_at(index.into())
    }

    /// Returns whether an entry holds a timer.
    #[inline]
    pub(crate) fn is_timer(&self, entry: EntryIndex) -> bool {
        self.stamp(entry).is_timer()
    }

    /// Returns every entry that holds a timer.
    pub(crate) fn timers(&self) -> impl Iterator<Item = EntryIndex> + '_ {
        (0..self.block.used())
            .filter_map(|index| self.entry_at(index))
            .filter(|&entry| self.is_timer(entry))
    }

    #[inline]
    pub(crate) fn payload(&self, entry: EntryIndex) -> &T {
        self.block.payload(entry)
    }

    #[inline]
    pub(crate) fn payload_mut(&mut self, entry: EntryIndex) -> &mut T {
        self.block.payload_mut(entry)
    }

    #[inline]
    pub(crate) fn stamp(&self, entry: EntryIndex) -> Stamp {
        self.get(entry).stamp()
    }

    #[inline]
    pub(crate) fn deadline(&self, entry: EntryIndex) -> u64 {
        self.get(entry).deadline
    }

    #[inline]
    fn get(&self, entry: EntryIndex) -> &Entry {
        self.block.get(entry)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, entry: EntryIndex) -> &mut Entry {
        self.block.get_mut(entry)
    }

    /// Prefetches an entry that will be read soon.
    #[inline]
    pub(crate) fn prefetch(&self, entry: EntryIndex) {
        self.block.prefetch(entry);
    }
}

/// Drops every payload, even if dropping one of them panics.
impl<T> Drop for Entries<T> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            let mut rest = Rest {
                storage: self,
                next: 0,
            };
            rest.drop_all();
        }
    }
}

/// The payloads of a storage that have not been dropped yet.
struct Rest<'a, T> {
    storage: &'a mut Entries<T>,
    next: u32,
}

impl<T> Rest<'_, T> {
    fn drop_all(&mut self) {
        while let Some(entry) = self.storage.entry_at(self.next) {
            self.next += 1;
            if self.storage.is_timer(entry) {
                drop(self.storage.remove(entry));
            }
        }
    }
}

/// Drops the other payloads if dropping one of them panics, as a `Vec` does.
impl<T> Drop for Rest<'_, T> {
    fn drop(&mut self) {
        self.drop_all();
    }
}

#[cfg(test)]
mod tests;
