//! Where those timers are that no longer live where their ids say.
//!
//! An id carries the index of the entry that its timer was first stored in.
//! Shrinking brings timers to other entries; they keep their ids, and a bit in
//! their stamps says that they have to be looked up here.

use std::collections::BTreeMap;

use super::block::EntryIndex;

/// The tag bit of a timer that was moved.
pub(super) const MOVED: u16 = 1 << 1;

/// By sequence number. A sorted map, because one that is hashed grows all at
/// once, which under a lock takes too long.
#[derive(Default)]
pub(super) struct Moved(BTreeMap<u64, Way>);

struct Way {
    /// The index in the timer's id.
    from: u32,
    to: EntryIndex,
}

impl Moved {
    /// Notes that a timer was moved from one entry to another.
    pub(super) fn note(&mut self, sequence: u64, from: EntryIndex, to: EntryIndex) {
        let first = Way {
            from: from.index(),
            to,
        };
        let way = self.0.entry(sequence).or_insert(first);
        way.to = to;
    }

    /// Forgets a timer that has ended.
    #[cold]
    #[inline(never)]
    pub(super) fn forget(&mut self, sequence: u64) {
        self.0.remove(&sequence);
    }

    /// Where the timer is now.
    pub(super) fn find(&self, sequence: u64) -> Option<EntryIndex> {
        self.0.get(&sequence).map(|way| way.to)
    }

    /// The index that a moved timer's id carries.
    pub(super) fn first_index(&self, sequence: u64) -> Option<u32> {
        self.0.get(&sequence).map(|way| way.from)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
