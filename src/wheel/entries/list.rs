//! The lists that entries hang on: circular, with a sentinel for a head.
//!
//! Timers and list heads are entries of the same block, so linking and unlinking
//! have no special cases: they only store to neighbours, and a store that misses
//! the cache does not stall.

use super::Entries;
use super::block::EntryIndex;

/// The bitmap index of a list that no bit stands for.
const NO_BITMAP_INDEX: u32 = u32::MAX;

/// From which end of its list an entry comes to be linked again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Front,
    Back,
}

impl<T> Entries<T> {
    /// Adds an empty list that no bit stands for, and returns its head.
    pub(crate) fn add_list(&mut self) -> EntryIndex {
        self.add_sentinels(1, |_| NO_BITMAP_INDEX)
    }

    /// Adds `count` list heads, each an empty list of its own, and returns
    /// the first. `bitmap_index(n)` is that of the n-th.
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

    /// The n-th sentinel of a block that [`Self::add_sentinels`] returned.
    #[inline]
    pub(crate) fn nth(&self, first: EntryIndex, n: u32) -> EntryIndex {
        let entry = self.block.entry_at(first.index() + n);
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

    /// Hangs an entry behind the last one of `list`.
    #[inline]
    pub(crate) fn append(&mut self, list: EntryIndex, entry: EntryIndex) {
        let mut entries = self.block.entries_mut();
        let head = entries.get(list);
        let last = head.prev;
        head.prev = entry;
        let stored = entries.get(entry);
        stored.prev = last;
        stored.next = list;
        entries.get(last).next = entry;
    }

    /// Hangs an entry on a list that is filled from both ends of another one:
    /// what comes from the front stands, in the order of the calls, before all
    /// that comes from the back, which stands the other way round. The list
    /// was empty when that began.
    #[inline]
    pub(crate) fn insert_at_middle(&mut self, list: EntryIndex, entry: EntryIndex, from: End) {
        let head = self.get(list);
        let middle = match head.next == list {
            true => list,
            false => self.nth(EntryIndex::FIRST, (head.deadline >> u32::BITS) as u32),
        };
        let new_middle = match from {
            End::Front => entry,
            End::Back => middle,
        };
        let mut entries = self.block.entries_mut();
        let head = entries.get(list);
        head.deadline =
            u64::from(head.deadline as u32) | u64::from(new_middle.index()) << u32::BITS;
        let before = entries.get(middle);
        let next = before.next;
        before.next = entry;
        let stored = entries.get(entry);
        stored.prev = middle;
        stored.next = next;
        entries.get(next).prev = entry;
    }

    /// The bitmap index of a sentinel.
    #[inline]
    pub(crate) fn bitmap_index(&self, list: EntryIndex) -> u32 {
        self.get(list).deadline as u32
    }

    /// Takes an entry off its list. Returns the list if that is empty now.
    #[inline]
    pub(crate) fn unlink(&mut self, entry: EntryIndex) -> Option<EntryIndex> {
        let mut entries = self.block.entries_mut();
        let stored = entries.get(entry);
        let (prev, next) = (stored.prev, stored.next);
        entries.get(prev).next = next;
        entries.get(next).prev = prev;
        // Only on a circle of two are both neighbours the same: the sentinel.
        (prev == next).then_some(prev)
    }

    /// Has an entry that hangs on no list, and will not for a while, lead to
    /// itself: so it is seen that it has no neighbours.
    pub(crate) fn set_aside(&mut self, entry: EntryIndex) {
        let stored = self.get_mut(entry);
        (stored.next, stored.prev) = (entry, entry);
    }

    /// Lets `list` begin at `first`, forgetting what hung before it; with the
    /// list itself as `first` it becomes empty.
    #[inline]
    pub(crate) fn cut_before(&mut self, list: EntryIndex, first: EntryIndex) {
        self.get_mut(list).next = first;
        self.get_mut(first).prev = list;
    }
}
