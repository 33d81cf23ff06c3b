//! The index of an entry, which also determines its lane.

/// The number of lanes of a slot if its level's slots fit one word of a bitmap (see
/// `wheel/levels.rs`). Larger levels have one, because their slots hold few entries.
pub(crate) const LANES: usize = 8;

/// The index of an entry that exists in the block it was obtained from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct EntryIndex(pub(super) u32);

impl EntryIndex {
    /// The entry that always exists. It is a sentinel, and never vacant.
    pub(crate) const FIRST: EntryIndex = EntryIndex(0);

    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.0
    }

    /// Returns the lane in which the entry hangs if a slot has several lanes.
    #[inline]
    pub(crate) fn lane(self) -> usize {
        self.0 as usize % LANES
    }
}
