//! How far shrinking has come, between two steps of it; and what is different
//! meanwhile.
//!
//! Vacant entries are found by walking, and not by their lists, which begin
//! empty: an entry that is on a list could not be taken off it without a walk
//! along it. In each lane of the block (entries that are eight apart) the walk
//! stands at a *low* cell. Below it, vacant cells are on the lists or in use
//! again; from there on none is on a list, so that the end of the block can be
//! taken away. What is vacated there meanwhile is left for the walk to find.

use super::block::{EntryIndex, LANES};

pub(super) struct Pass {
    /// By lane, the first cell that has not been looked at for its vacancy.
    pub(super) low: [u32; LANES],
    pub(super) stage: Stage,
    /// How many more cells it may take to bring timers together: where others
    /// schedule faster than that, it ends before it is through.
    pub(super) left: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Bringing timers from the end of the block to vacant entries below.
    Gather(Gather),
    /// Putting on lists what is still vacant below this index.
    List { until: u32 },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gather {
    /// From here up to `top` there is no timer: only vacant entries, and levels'
    /// heads, which are brought down at the end.
    pub(crate) high: u32,
    /// What is behind this was added since the last step.
    pub(crate) top: u32,
}

/// What a search for a vacant entry came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Below {
    Found(EntryIndex),
    Nothing,
    /// The budget is used up.
    Paused,
}

impl Pass {
    /// Whether an entry that is vacated goes on a list.
    #[cold]
    pub(super) fn lists(&self, vacant: EntryIndex) -> bool {
        let index = vacant.index();
        let is_behind = matches!(self.stage, Stage::List { until } if index >= until);
        is_behind || self.is_below(vacant)
    }

    /// Whether the walk has come past a cell.
    pub(super) fn is_below(&self, entry: EntryIndex) -> bool {
        entry.index() < self.low[entry.lane()]
    }

    /// Leaves a cell that has been vacated to be found, even if the walk has come
    /// past it. Behind it there is no timer.
    pub(super) fn step_back(&mut self, entry: EntryIndex) {
        let low = &mut self.low[entry.lane()];
        *low = entry.index().min(*low);
    }

    /// The next cell of a lane, if it comes before `end`.
    pub(super) fn next_of(&mut self, lane: usize, end: u32) -> Option<u32> {
        let low = self.low[lane];
        if low >= end {
            return None;
        }
        self.low[lane] = low.saturating_add(LANES as u32);
        Some(low)
    }
}
