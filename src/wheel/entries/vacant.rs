//! Vacated entries, the last one first.
//!
//! They lead to each other themselves. As one list they would be a chain of
//! cache misses where many were vacated in random order, or by another thread:
//! which one is next is known only when the one before has arrived. So these
//! are several lists, used in turn: what will be needed next is known some
//! entries ahead, and can be asked for (see docs/DESIGN.md, "Vacated entries
//! hang on eight lists").

use super::block::EntryIndex;

const LISTS: usize = 8;

/// A stack. What is below an entry in its list is kept in the entry, by the
/// storage.
pub(super) struct Vacant {
    /// The last one that was vacated, or [`At::FIRST`]: where one is cancelled
    /// and the next scheduled, nothing else is touched.
    last: EntryIndex,
    /// How many are on the lists: it says whose turn it is.
    listed: u32,
    /// The first of each list, or [`At::FIRST`].
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

    /// Puts an entry here. The one that was put here last, if it still is here,
    /// is to go on a list.
    #[inline]
    pub(super) fn replace_last(&mut self, entry: EntryIndex) -> Option<EntryIndex> {
        let before = core::mem::replace(&mut self.last, entry);
        (before != EntryIndex::FIRST).then_some(before)
    }

    /// Takes the one that was put here last, unless it is gone.
    #[inline]
    pub(super) fn take_last(&mut self) -> Option<EntryIndex> {
        self.replace_last(EntryIndex::FIRST)
    }

    /// Puts an entry on a list, and returns what is below it.
    #[inline]
    pub(super) fn push(&mut self, entry: EntryIndex) -> EntryIndex {
        let list = self.listed as usize % LISTS;
        self.listed += 1;
        core::mem::replace(&mut self.lists[list], entry)
    }

    /// What is to be taken from the lists.
    #[inline]
    pub(super) fn top(&self) -> Option<EntryIndex> {
        let top = self.lists[self.listed.wrapping_sub(1) as usize % LISTS];
        (top != EntryIndex::FIRST).then_some(top)
    }

    /// Takes that one, below which is `below`.
    #[inline]
    pub(super) fn pop(&mut self, below: EntryIndex) {
        self.listed -= 1;
        self.lists[self.listed as usize % LISTS] = below;
    }

    /// How many are here.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.listed as usize + usize::from(self.last != EntryIndex::FIRST)
    }
}
