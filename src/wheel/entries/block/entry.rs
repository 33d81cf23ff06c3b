//! A single entry, which is a timer, the head of a list, or vacant.

use super::index::EntryIndex;
use super::stamp::Stamp;

/// One cell of a block. The payload follows it.
#[repr(C)]
pub(crate) struct Entry {
    /// A timer's deadline. In a sentinel, its bitmap index: the bit that says whether
    /// its list holds anything (see `wheel/levels.rs`).
    pub(crate) deadline: u64,
    /// Only the block changes a stamp from one kind to another.
    pub(super) stamp: Stamp,
    pub(crate) next: EntryIndex,
    pub(crate) prev: EntryIndex,
}

impl Entry {
    #[inline]
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Replaces a timer's tag.
    #[inline]
    pub(crate) fn set_tag(&mut self, tag: u16) {
        debug_assert!(self.stamp.is_timer());
        self.stamp = self.stamp.tagged(tag);
    }

    /// Sets bits of a timer's tag.
    #[inline]
    pub(crate) fn mark(&mut self, bits: u16) {
        self.stamp = self.stamp.with(bits);
    }

    /// Clears bits of a timer's tag.
    #[inline]
    pub(crate) fn unmark(&mut self, bits: u16) {
        self.stamp = self.stamp.without(bits);
    }
}
