//! Vacated entries, the most recent one first.
//!
//! The entries are linked to each other. A single list would be a chain of cache
//! misses if many entries were vacated in random order or by another thread, because
//! each entry is known only once the one before has been loaded. With several lists,
//! used in turn, an entry is known some time before it is needed, and is prefetched.

use super::block::EntryIndex;

const LISTS: usize = 8;

/// A stack. The caller links each entry to the one below it in its list.
pub(super) struct Vacant {
    /// The most recently vacated entry, or [`EntryIndex::FIRST`]. Alternating
    /// cancels and schedules do not touch any other entry.
    last: EntryIndex,
    /// The number of entries on the lists. It determines which list comes next.
    listed: u32,
    /// The first entry of each list, or [`EntryIndex::FIRST`].
    lists: [EntryIndex; LISTS],
}

impl Vacant {
    pub(super) fn new() -> Vacant {
        Vacant {
            last: EntryIndex::FIRST,
            listed: 0,
            lists: [EntryIndex::FIRST; LISTS],
        }
    }

    /// Notes the most recently vacated entry. Returns the entry vacated before it,
    /// if that one is still vacant, for the caller to put on a list.
    #[inline]
    pub(super) fn replace_last(&mut self, entry: EntryIndex) -> Option<EntryIndex> {
        let before = core::mem::replace(&mut self.last, entry);
        (before != EntryIndex::FIRST).then_some(before)
    }

    /// Takes the most recently vacated entry, if it is still vacant.
    #[inline]
    pub(super) fn take_last(&mut self) -> Option<EntryIndex> {
        self.replace_last(EntryIndex::FIRST)
    }

    /// Puts an entry on a list, and returns the entry below it.
    #[inline]
    pub(super) fn push(&mut self, entry: EntryIndex) -> EntryIndex {
        let list = self.listed as usize % LISTS;
        self.listed += 1;
        core::mem::replace(&mut self.lists[list], entry)
    }

    /// Returns the next entry to take from the lists.
    #[inline]
    pub(super) fn top(&self) -> Option<EntryIndex> {
        let top = self.lists[self.listed.wrapping_sub(1) as usize % LISTS];
        (top != EntryIndex::FIRST).then_some(top)
    }

    /// Takes the entry that `top` returned, which stands above `below`.
    #[inline]
    pub(super) fn pop(&mut self, below: EntryIndex) {
        self.listed -= 1;
        self.lists[self.listed as usize % LISTS] = below;
    }

    /// Returns the number of vacant entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.listed as usize + usize::from(self.last != EntryIndex::FIRST)
    }
}
