//! The entries of the timers that are not where their ids say.
//!
//! An id has the index of the entry in which its timer was first stored. A timer
//! that shrinking moves to another entry, or that is re-armed in another one, keeps
//! its id, and is found here. A bit in its stamp says that it was moved.

use std::collections::BTreeMap;

use super::block::EntryIndex;

/// The tag bit of a moved timer.
pub(super) const MOVED: u16 = 1 << 1;

/// The moved timers, by sequence number. The map is sorted, because a hash
/// map grows all at once, which takes too long under a lock.
#[derive(Default)]
pub(super) struct Moved(BTreeMap<u64, Way>);

struct Way {
    /// The index in the timer's id.
    from: u32,
    to: EntryIndex,
}

impl Moved {
    /// Notes that a timer was moved from the entry at `from` to another one. The entry
    /// at `from` may exist no longer.
    pub(super) fn note(&mut self, sequence: u64, from: u32, to: EntryIndex) {
        let first = Way { from, to };
        let way = self.0.entry(sequence).or_insert(first);
        way.to = to;
    }

    /// Forgets a timer that has ended.
    #[cold]
    #[inline(never)]
    pub(super) fn forget(&mut self, sequence: u64) {
        self.0.remove(&sequence);
    }

    /// Returns the timer's entry.
    pub(super) fn find(&self, sequence: u64) -> Option<EntryIndex> {
        self.0.get(&sequence).map(|way| way.to)
    }

    /// Returns the index in a moved timer's id.
    pub(super) fn first_index(&self, sequence: u64) -> Option<u32> {
        self.0.get(&sequence).map(|way| way.from)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
