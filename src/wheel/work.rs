//! What a wheel can be in the middle of, between two steps.

use core::cmp::Ordering;

use super::entries::{EntryIndex, LANES};
use super::geometry::Place;

/// What the wheel is in the middle of at its current tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    Nothing,
    /// Re-filing an outer slot; what is left of it is still on its lists.
    Cascade(Cascade),
    /// Firing the current slot of level 0.
    Fire,
    /// Putting an unsorted slot in order, then firing it.
    Sort,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cascade {
    pub(super) place: Place,
    /// Whether it was paused: then younger timers may have been filed inward
    /// before the older ones that are still to come.
    pub(super) resumed: bool,
}

/// The front entry of each lane of the slot that is being fired, so that the
/// oldest of them is found without a look at any entry.
///
/// A key is an entry's sequence number, and below it the lane. It says what was
/// at the front when that was noted: meanwhile entries may have been cancelled
/// or moved, and nothing was added, so a lane's front is at least as young as
/// its key.
#[derive(Clone, Copy)]
pub(super) struct Fronts {
    keys: [u64; LANES],
    /// The head of the slot's first lane.
    first: EntryIndex,
}

const LANE_BITS: u32 = LANES.trailing_zeros();
const NO_FRONT: u64 = u64::MAX;

impl Fronts {
    /// Of no slot; `first` is any list.
    pub(super) fn none(first: EntryIndex) -> Fronts {
        Fronts {
            keys: [NO_FRONT; LANES],
            first,
        }
    }

    /// Which of a level's heads this begins at, of which `first` is the first.
    pub(super) fn nth_of(&self, first: EntryIndex) -> Option<u32> {
        self.first.index().checked_sub(first.index())
    }

    /// Lets this begin at that head, to which the one that it began at was
    /// brought.
    pub(super) fn follow(&mut self, first: EntryIndex) {
        self.first = first;
    }

    /// The head of the slot's first lane.
    #[inline]
    pub(super) fn first(&self) -> EntryIndex {
        self.first
    }

    #[inline]
    pub(super) fn note(&mut self, lane: usize, sequence: u64) {
        self.keys[lane] = sequence << LANE_BITS | lane as u64;
    }

    /// Notes that a lane is empty.
    #[inline]
    pub(super) fn close(&mut self, lane: usize) {
        self.keys[lane] = NO_FRONT;
    }

    /// The lane with the oldest front, and that one's sequence number.
    #[inline]
    pub(super) fn oldest(&self) -> Option<(usize, u64)> {
        let key = self.keys.iter().copied().fold(NO_FRONT, u64::min);
        let lane = key as usize & (LANES - 1);
        (key != NO_FRONT).then_some((lane, key >> LANE_BITS))
    }
}

/// An entry of an unsorted slot. The greatest is the one to fire first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HeapEntry {
    pub(super) sequence: u64,
    /// Where the entry was when it was noted.
    pub(super) index: u32,
}

impl Ord for HeapEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.sequence.cmp(&self.sequence)
    }
}

impl PartialOrd for HeapEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The tag bit of an entry that waits in `Wheel::heap`. The next one is
/// `MOVED`; the others belong to the owner of the wheel.
pub(super) const SORTING: u16 = 1;
