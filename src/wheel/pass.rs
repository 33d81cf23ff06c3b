//! How far shrinking has come, between two steps of it; and what is different
//! meanwhile.
//!
//! Vacant entries are found by walking, and not by their lists, which begin
//! empty: an entry that is on a list could not be taken off it without a walk
//! along it. In each lane of the block (entries that are eight apart) the walk
//! stands at a *low* cell. Below it, vacant cells are on the lists or in use
//! again; from there on none is on a list, so that the end of the block can be
//! taken away. What is vacated there meanwhile is left for the walk to find.

use super::block::At;
use super::levels::{LANES, lane_of};
use super::storage::Storage;
use super::vacant::Vacant;

pub(super) struct Pass {
    /// By lane, the first cell that has not been looked at for its vacancy.
    low: [u32; LANES],
    pub(super) stage: Stage,
    /// How many more cells it may take to bring timers together: where others
    /// schedule faster than that, it ends before it is through.
    pub(super) left: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Bringing timers from the end of the block to vacant entries below.
    Gather(Gather),
    /// Putting on lists what is still vacant below this index.
    List { until: u32 },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Gather {
    /// From here up to `top` there is no timer: only vacant entries, and levels'
    /// heads, which are brought down at the end.
    pub(super) high: u32,
    /// What is behind this was added since the last step.
    pub(super) top: u32,
}

/// What a search for a vacant entry came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Below {
    Found(At),
    Nothing,
    /// The budget is used up.
    Paused,
}

impl Pass {
    /// Whether an entry that is vacated goes on a list.
    #[cold]
    pub(super) fn lists(&self, vacant: At) -> bool {
        let index = vacant.index();
        let is_behind = matches!(self.stage, Stage::List { until } if index >= until);
        is_behind || self.is_below(vacant)
    }

    /// Whether the walk has come past a cell.
    pub(super) fn is_below(&self, at: At) -> bool {
        at.index() < self.low[lane_of(at)]
    }

    /// Leaves a cell that has been vacated to be found, even if the walk has come
    /// past it. Behind it there is no timer.
    fn step_back(&mut self, at: At) {
        let low = &mut self.low[lane_of(at)];
        *low = at.index().min(*low);
    }

    /// The next cell of a lane, if it comes before `end`.
    fn next_of(&mut self, lane: usize, end: u32) -> Option<u32> {
        let low = self.low[lane];
        if low >= end {
            return None;
        }
        self.low[lane] = low.saturating_add(LANES as u32);
        Some(low)
    }
}

impl<T> Storage<T> {
    /// Begins to shrink, unless that has begun. All that is vacant is forgotten,
    /// to be found again.
    pub(super) fn begin_pass(&mut self) {
        if self.pass.is_some() {
            return;
        }
        let used = self.used();
        self.vacant = Vacant::new();
        self.pass = Some(Box::new(Pass {
            low: core::array::from_fn(|lane| lane as u32),
            stage: Stage::Gather(Gather {
                high: used,
                top: used,
            }),
            left: 4 * used as usize + 4_096,
        }));
    }

    pub(super) fn stage(&self) -> Option<Stage> {
        self.pass.as_ref().map(|pass| pass.stage)
    }

    pub(super) fn set_stage(&mut self, stage: Stage) {
        if let Some(pass) = &mut self.pass {
            pass.stage = stage;
        }
    }

    /// Counts cells that were touched. Returns whether there may be more.
    pub(super) fn spend(&mut self, cells: usize) -> bool {
        self.pass.as_mut().is_some_and(|pass| {
            pass.left = pass.left.saturating_sub(cells);
            pass.left > 0
        })
    }

    pub(super) fn used(&self) -> u32 {
        self.block.used()
    }

    pub(super) fn is_vacant(&self, at: At) -> bool {
        self.block.is_vacant(at)
    }

    /// Whether the walk for vacant entries has come past a cell.
    pub(super) fn is_below(&self, at: At) -> bool {
        self.pass.as_ref().is_none_or(|pass| pass.is_below(at))
    }

    /// Takes a vacant entry away, or what memory it has if something stands
    /// behind it.
    pub(super) fn pass_over(&mut self, at: At, gather: &mut Gather) {
        if at.index() + 1 == self.used() {
            self.block.pop();
        } else {
            self.block.free_cell(at);
            gather.high = at.index();
            if let Some(pass) = &mut self.pass {
                pass.step_back(at);
            }
        }
        gather.top = gather.top.min(self.used());
        gather.high = gather.high.min(self.used());
    }

    /// Takes away every entry from `used` on; there is no timer.
    pub(super) fn truncate(&mut self, used: u32) {
        self.block.truncate(used);
    }

    pub(super) fn trim_some(&mut self) -> bool {
        self.block.trim_some()
    }

    /// Puts the entry that was vacated last where the others are.
    pub(super) fn settle_last(&mut self) {
        if let Some(last) = self.vacant.take_last() {
            self.put_on_list(last);
        }
    }

    /// Looks for a vacant entry of a lane that comes before `at`.
    pub(super) fn vacant_below(&mut self, at: At, lane: usize, budget: &mut usize) -> Below {
        let Some(pass) = &mut self.pass else {
            return Below::Nothing;
        };
        while *budget > 0 {
            *budget -= 1;
            let Some(low) = pass.next_of(lane, at.index()) else {
                return Below::Nothing;
            };
            if let Some(found) = self.block.at(low).filter(|&low| self.block.is_vacant(low)) {
                return Below::Found(found);
            }
        }
        Below::Paused
    }

    /// Puts vacant entries on their lists, up to `until`, and ends the pass.
    pub(super) fn list_vacant(&mut self, until: u32, budget: &mut usize) {
        for lane in 0..LANES {
            while let Some(pass) = &mut self.pass {
                if *budget == 0 {
                    return;
                }
                *budget -= 1;
                let Some(low) = pass.next_of(lane, until) else {
                    break;
                };
                if let Some(at) = self.block.at(low).filter(|&low| self.block.is_vacant(low)) {
                    self.entry_mut(at).next = self.vacant.push(at);
                }
            }
        }
        self.pass = None;
    }

    /// Brings a timer to a vacant entry of its lane, or of any if it hangs on no
    /// slot's list; it stands where it stood on its list.
    pub(super) fn move_timer(&mut self, from: At, to: At) {
        let sequence = self.entry(from).stamp().sequence();
        self.block.move_timer(from, to);
        self.block.entry_mut(to).mark(super::moved::MOVED);
        self.moved.note(sequence, from, to);
        self.relink(from, to);
    }

    /// Brings a list's head to a vacant entry. Its middle is forgotten.
    pub(super) fn move_sentinel(&mut self, from: At, to: At) {
        self.block.move_sentinel(from, to);
        let coordinate = self.coordinate(to);
        self.entry_mut(to).deadline = u64::from(coordinate);
        self.relink(from, to);
    }

    /// Has the neighbours of the entry that was at `from` lead to `to`.
    fn relink(&mut self, from: At, to: At) {
        let (next, prev) = (self.next(from), self.prev(from));
        if next == from {
            return self.set_aside(to);
        }
        let mut entries = self.block.entries();
        let entry = entries.get(to);
        (entry.next, entry.prev) = (next, prev);
        entries.get(next).prev = to;
        entries.get(prev).next = to;
    }
}
