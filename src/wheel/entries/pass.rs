//! The state of a shrinking pass between two steps.
//!
//! A pass finds vacant entries by walking over the block. It begins with empty lists
//! of vacant entries, because an entry in the middle of such a list could not be
//! taken off without a walk along the list. In each lane of the block (entries that
//! are eight apart) the walk stands at a *low* entry. Below the low entry, entries
//! that were vacant are on the lists or in use again. From the low entry on, no
//! vacant entry is on a list, so the end of the block can be removed. Entries that
//! are vacated there during the pass are left for the walk.

use super::block::{EntryIndex, LANES};

pub(super) struct Pass {
    /// For each lane, the first entry that the walk has not passed.
    pub(super) low: [u32; LANES],
    pub(super) stage: Stage,
    /// The number of entries that the pass may still touch to move timers. The pass
    /// ends early if other threads schedule faster than it moves timers.
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
    /// From here up to `top` there are no timers, only vacant entries and the list
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
    /// Returns whether a vacated entry goes on a list.
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

    /// Moves the walk back to a vacated entry, if the walk has passed the entry.
    /// There are no timers behind that entry.
    pub(super) fn step_back(&mut self, entry: EntryIndex) {
        let low = &mut self.low[entry.lane()];
        *low = entry.index().min(*low);
    }

    /// Gathers a vacated list head again, if the pass has left it where it stands. A
    /// timer may be stored in its entry before the pass ends.
    pub(super) fn return_to(&mut self, head: EntryIndex) {
        if let Stage::Gather(gather) = &mut self.stage {
            if head.index() < gather.top {
                gather.high = gather.high.max(head.index() + 1);
            }
        }
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
