//! The state of a pass of shrinking between two steps.
//!
//! A pass finds vacant entries by walking over the block, and begins with empty
//! lists of vacant entries: an entry in the middle of such a list could not be
//! taken off it without a walk along the list. In each lane of the block (entries
//! that are eight apart) the walk stands at a *low* entry. Below it, vacant entries
//! are on the lists or in use again. From there on no vacant entry is on a list, so
//! that the end of the block can be taken away; entries that are vacated there
//! meanwhile are left for the walk.

use super::block::{EntryIndex, LANES};

pub(super) struct Pass {
    /// For each lane, the first entry that the walk has not passed.
    pub(super) low: [u32; LANES],
    pub(super) stage: Stage,
    /// How many more entries the pass may touch to move timers. It ends early if
    /// other threads schedule faster than it moves.
    pub(super) left: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Moving timers from the end of the block to vacant entries below.
    Gather(Gather),
    /// Putting the remaining vacant entries below this index on their lists.
    List { until: u32 },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gather {
    /// From here up to `top` there is no timer, only vacant entries and the list
    /// heads of levels, which are moved down at the end.
    pub(crate) high: u32,
    /// Entries from here on were added since the last step.
    pub(crate) top: u32,
}

/// The result of a search for a vacant entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Vacancy {
    Found(EntryIndex),
    None,
    /// The budget is used up.
    Paused,
}

impl Pass {
    /// Returns whether an entry that is vacated goes on a list.
    #[cold]
    pub(super) fn lists(&self, vacant: EntryIndex) -> bool {
        let index = vacant.index();
        let is_behind = matches!(self.stage, Stage::List { until } if index >= until);
        is_behind || self.is_below(vacant)
    }

    /// Returns whether the walk has passed an entry.
    pub(super) fn is_below(&self, entry: EntryIndex) -> bool {
        entry.index() < self.low[entry.lane()]
    }

    /// Moves the walk back to a vacated entry, if it has passed it. There is no
    /// timer behind that.
    pub(super) fn step_back(&mut self, entry: EntryIndex) {
        let low = &mut self.low[entry.lane()];
        *low = entry.index().min(*low);
    }

    /// Returns the next entry of a lane, if it comes before `end`.
    pub(super) fn next_of(&mut self, lane: usize, end: u32) -> Option<u32> {
        let low = self.low[lane];
        if low >= end {
            return None;
        }
        self.low[lane] = low.saturating_add(LANES as u32);
        Some(low)
    }
}
