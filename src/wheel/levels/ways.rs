//! The ways of timers to their lists, in one look-up instead of two.

use crate::wheel::entries::EntryIndex;

/// The way of a timer to its list, by the highest bit in which its deadline differs
/// from now. Three arrays, because an index into an array of all three would have to be
/// multiplied first.
pub(super) struct Ways {
    /// The first list head of the deadline's level, or the first of all entries if the level
    /// is not needed yet or slots are not found by bits.
    firsts: [EntryIndex; 64],
    /// The shift from a deadline to its slot.
    shifts: [u8; 64],
    /// The bits of a deadline that say where its slot starts.
    starts: [u64; 64],
}

impl Ways {
    pub(super) const NONE: Ways = Ways {
        firsts: [EntryIndex::FIRST; 64],
        shifts: [0; 64],
        starts: [0; 64],
    };

    pub(super) fn set(&mut self, bit: usize, first: EntryIndex, shift: u8) {
        self.firsts[bit] = first;
        self.shifts[bit] = shift;
        self.starts[bit] = u64::MAX << shift;
    }

    /// Returns the first list head of a deadline's level, or `None` if the deadline has no
    /// way.
    #[inline]
    pub(super) fn first_head(&self, bit: usize) -> Option<EntryIndex> {
        let first = self.firsts[bit];
        (first != EntryIndex::FIRST).then_some(first)
    }

    /// Returns the number of a deadline's slot among all that its level ever passes.
    #[inline]
    pub(super) fn unit(&self, bit: usize, deadline: u64) -> u64 {
        deadline >> self.shifts[bit]
    }

    /// Returns the start of a deadline's slot.
    #[inline]
    pub(super) fn start(&self, bit: usize, deadline: u64) -> u64 {
        deadline & self.starts[bit]
    }
}
