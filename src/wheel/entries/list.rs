//! The lists that entries hang on. They are circular, and a sentinel is the head.
//!
//! Timers and list heads are entries of the same block, so linking and unlinking
//! have no special cases. They only store to the entries before and after, and a
//! store that misses the cache does not stall.

use super::Entries;
use super::block::EntryIndex;

/// The bitmap index of a list that has no bit.
const NO_BITMAP_INDEX: u32 = u32::MAX;

impl<T> Entries<T> {
    /// Adds an empty list that has no bit, and returns its head.
    pub(crate) fn add_list(&mut self) -> EntryIndex {
        self.add_sentinels(1, |_| NO_BITMAP_INDEX)
    }

    /// Adds the heads of `count` empty lists, and returns the first. The n-th head
    /// has the bitmap index `bitmap_index(n)`.
    pub(crate) fn add_sentinels(
        &mut self,
        count: u32,
        bitmap_index: impl Fn(u32) -> u32,
    ) -> EntryIndex {
        let first = self.block.push_sentinel(bitmap_index(0));
        for n in 1..count {
            self.block.push_sentinel(bitmap_index(n));
        }
        first
    }

    /// Empties a list, and gives its head another bitmap index. Forgets the entries.
    pub(crate) fn reset_list(&mut self, list: EntryIndex, bitmap_index: u32) {
        self.get_mut(list).deadline = u64::from(bitmap_index);
        self.cut_before(list, list);
    }

    /// Returns the n-th of the list heads that [`Self::add_sentinels`] added.
    #[inline]
    pub(crate) fn nth(&self, first: EntryIndex, n: u32) -> EntryIndex {
        let entry = self.block.entry_at(u64::from(first.index() + n));
        entry.expect("as many list heads as were added")
    }

    #[inline]
    pub(crate) fn next(&self, entry: EntryIndex) -> EntryIndex {
        self.get(entry).next
    }

    #[inline]
    pub(crate) fn prev(&self, entry: EntryIndex) -> EntryIndex {
        self.get(entry).prev
    }

    /// Returns whether a list is empty.
    #[inline]
    pub(crate) fn is_empty_list(&self, list: EntryIndex) -> bool {
        self.next(list) == list
    }

    /// Returns the entry of a list that has exactly one.
    #[inline]
    pub(crate) fn sole(&self, list: EntryIndex) -> Option<EntryIndex> {
        let head = self.get(list);
        (head.next == head.prev && head.next != list).then_some(head.next)
    }

    /// Appends an entry to `list`. Returns the list's bitmap index.
    #[inline]
    pub(crate) fn append(&mut self, list: EntryIndex, entry: EntryIndex) -> u32 {
        let mut entries = self.block.entries_mut();
        let head = entries.get(list);
        let bitmap_index = head.deadline as u32;
        let last = head.prev;
        head.prev = entry;
        let stored = entries.get(entry);
        stored.prev = last;
        stored.next = list;
        entries.get(last).next = entry;
        bitmap_index
    }

    /// Returns the bitmap index of a list.
    #[inline]
    pub(crate) fn bitmap_index(&self, list: EntryIndex) -> u32 {
        self.get(list).deadline as u32
    }

    /// Takes an entry off its list. Returns the list if it is now empty.
    #[inline]
    pub(crate) fn unlink(&mut self, entry: EntryIndex) -> Option<EntryIndex> {
        let mut entries = self.block.entries_mut();
        let stored = entries.get(entry);
        let (prev, next) = (stored.prev, stored.next);
        // A timer that was set aside has no list, and so no list becomes empty.
        debug_assert!(prev != entry, "the entry is on a list");
        entries.get(prev).next = next;
        entries.get(next).prev = prev;
        // If both neighbours are the same entry, only the list's head is left.
        (prev == next).then_some(prev)
    }

    /// Links an entry that is on no list to itself, which marks it as being on none.
    pub(crate) fn set_aside(&mut self, entry: EntryIndex) {
        let stored = self.get_mut(entry);
        (stored.next, stored.prev) = (entry, entry);
    }

    /// Makes `first` the first entry of `list`, and forgets the entries before it.
    /// If `first` is the list itself, the list becomes empty.
    #[inline]
    pub(crate) fn cut_before(&mut self, list: EntryIndex, first: EntryIndex) {
        self.get_mut(list).next = first;
        self.get_mut(first).prev = list;
    }
}
