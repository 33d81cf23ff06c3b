//! Unfinished work between two steps of a wheel: a slot that is being cascaded,
//! sorted or fired.

use super::entries::{EntryIndex, LANES};
use super::geometry::Place;

/// The unfinished work at the wheel's current tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    Nothing,
    /// Re-filing an outer slot. The remaining entries are still on its lists.
    Cascade(Cascade),
    /// Firing the current slot of level 0.
    Fire,
    /// Putting an unsorted slot in order, then firing it.
    Sort,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cascade {
    pub(super) place: Place,
    /// Whether the cascade was paused. If it was, younger timers may have been
    /// linked inward before older ones that are yet to be re-filed.
    pub(super) resumed: bool,
}

/// The front entry of each lane of the slot that is being fired. The oldest front
/// is found without reading an entry.
///
/// A key is an entry's sequence number, with the lane in its low bits. It names the
/// entry that was the lane's front when the key was noted. Since then, entries may
/// have been cancelled or rescheduled, but none has been added. Therefore a lane's
/// front is at least as young as its key.
///
/// The key of the entry behind a front is noted, too. The lane of the next front is then
/// known before that front has been read.
///
/// Keys are compared, and kept up to date, only while several lanes may have a front.
pub(super) struct Fronts {
    keys: [u64; LANES],
    /// The lesser key of each two neighbouring lanes, so that four keys are compared for
    /// each timer instead of eight.
    pairs: [u64; LANES / 2],
    /// The keys of the entries behind the fronts. Those of other lanes mean nothing.
    following: [u64; LANES],
    /// A set bit for each lane that may have a front.
    open: u32,
    /// The head of the slot's first lane.
    first: EntryIndex,
}

const LANE_BITS: u32 = LANES.trailing_zeros();
const NO_FRONT: u64 = u64::MAX;

impl Fronts {
    /// Returns the fronts of no slot. `first` may be any list.
    pub(super) fn none(first: EntryIndex) -> Fronts {
        Fronts {
            keys: [NO_FRONT; LANES],
            pairs: [NO_FRONT; LANES / 2],
            following: [NO_FRONT; LANES],
            open: 0,
            first,
        }
    }

    /// Forgets all fronts, and begins with those of a slot whose first head is `first`.
    /// `open` has a bit for each lane that may have a front. If there are several, the
    /// caller notes each front.
    #[inline]
    pub(super) fn begin(&mut self, first: EntryIndex, open: u32) {
        (self.first, self.open) = (first, open);
        if self.sole_lane().is_none() {
            self.keys = [NO_FRONT; LANES];
            self.pairs = [NO_FRONT; LANES / 2];
        }
    }

    /// Forgets all fronts.
    pub(super) fn forget(&mut self) {
        self.open = 0;
    }

    /// Returns whether all lanes are known to be empty.
    #[inline]
    pub(super) fn are_none(&self) -> bool {
        self.open == 0
    }

    /// Returns the only lane that may have a front, if there is just one.
    #[inline]
    pub(super) fn sole_lane(&self) -> Option<usize> {
        let lane = self.open.trailing_zeros() as usize % LANES;
        (self.open & self.open.wrapping_sub(1) == 0).then_some(lane)
    }

    /// Returns the position of the slot's first head among the heads of the level
    /// whose first head is `first`.
    pub(super) fn nth_of(&self, first: EntryIndex) -> Option<u32> {
        self.first.index().checked_sub(first.index())
    }

    /// Notes that the slot's first head has moved to `first`.
    pub(super) fn follow(&mut self, first: EntryIndex) {
        self.first = first;
    }

    /// Returns the head of the slot's first lane.
    #[inline]
    pub(super) fn first(&self) -> EntryIndex {
        self.first
    }

    /// Notes the sequence numbers of a lane's front and of the entry behind it.
    #[inline]
    pub(super) fn note(&mut self, lane: usize, front: u64, behind: u64) {
        self.set_key(lane, key(lane, front));
        self.following[lane] = key(lane, behind);
    }

    /// Notes that a lane's front was taken, and the sequence number of the entry behind
    /// the new front.
    #[inline]
    pub(super) fn pass(&mut self, lane: usize, behind: u64) {
        self.set_key(lane, self.following[lane]);
        self.following[lane] = key(lane, behind);
    }

    /// Notes that a lane is empty.
    #[inline]
    pub(super) fn close(&mut self, lane: usize) {
        self.set_key(lane, NO_FRONT);
        self.open &= !(1 << lane);
    }

    #[inline]
    fn set_key(&mut self, lane: usize, key: u64) {
        self.keys[lane] = key;
        self.pairs[lane / 2] = key.min(self.keys[lane ^ 1]);
    }

    /// Returns the lane with the oldest front, and the front's sequence number. Several
    /// lanes may have a front.
    #[inline(always)]
    pub(super) fn oldest(&self) -> (usize, u64) {
        // Not in a row, because then each comparison would wait for the one before.
        let [a, b, c, d] = self.pairs;
        let key = a.min(b).min(c.min(d));
        (key as usize % LANES, key >> LANE_BITS)
    }
}

fn key(lane: usize, sequence: u64) -> u64 {
    sequence << LANE_BITS | lane as u64
}

/// An entry of an unsorted slot. The smallest one fires first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct HeapEntry {
    pub(super) sequence: u64,
    /// The entry's index when it was put into the heap.
    pub(super) index: u32,
}

/// The tag bit of an entry that is waiting in `Wheel::heap`. The next bits are
/// `MOVED` and `REUSED`; all other bits belong to the owner of the wheel.
pub(super) const SORTING: u16 = 1;
