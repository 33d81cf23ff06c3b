//! The index of an entry, and the lane that follows from it.

/// Lanes of each slot where a level's slots fit one word of a bitmap (see
/// `wheel/levels.rs`); larger levels hold few entries per slot and make do with one.
pub(crate) const LANES: usize = 8;

/// The index of an entry that exists in the block it was obtained from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct EntryIndex(pub(super) u32);

impl EntryIndex {
    /// The entry that always exists: a sentinel, never vacant.
    pub(crate) const FIRST: EntryIndex = EntryIndex(0);

    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.0
    }

    /// The lane that the entry hangs in, where a slot has several.
    #[inline]
    pub(crate) fn lane(self) -> usize {
        self.0 as usize % LANES
    }
}
