//! For `wheel/shrink.rs`: moving entries to the front of the block, so that the
//! block's end can be cut off.

use alloc::boxed::Box;

use super::Entries;
use super::block::{EntryIndex, LANES};
use super::moved::MOVED;
use super::pass::{Gather, Pass, Stage, Vacancy};
use super::vacant::Vacant;

impl<T> Entries<T> {
    /// Begins a pass, unless one has begun. Forgets all vacant entries, because the
    /// pass will find them again.
    pub(crate) fn begin_pass(&mut self) {
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

    pub(crate) fn stage(&self) -> Option<Stage> {
        self.pass.as_ref().map(|pass| pass.stage)
    }

    pub(crate) fn set_stage(&mut self, stage: Stage) {
        if let Some(pass) = &mut self.pass {
            pass.stage = stage;
        }
    }

    /// Counts touched entries. Returns whether the pass may touch more entries.
    pub(crate) fn spend(&mut self, entries: usize) -> bool {
        self.pass.as_mut().is_some_and(|pass| {
            pass.left = pass.left.saturating_sub(entries);
            pass.left > 0
        })
    }

    pub(crate) fn used(&self) -> u32 {
        self.block.used()
    }

    pub(crate) fn is_vacant(&self, entry: EntryIndex) -> bool {
        self.block.is_vacant(entry)
    }

    /// Returns whether the walk for vacant entries has passed an entry.
    pub(crate) fn is_below(&self, entry: EntryIndex) -> bool {
        self.pass.as_ref().is_none_or(|pass| pass.is_below(entry))
    }

    /// Removes a vacant entry if it is the last one, and otherwise frees its cell.
    pub(crate) fn pass_over(&mut self, entry: EntryIndex, gather: &mut Gather) {
        if entry.index() + 1 == self.used() {
            self.block.pop();
        } else {
            self.block.free_cell(entry);
            gather.high = entry.index();
            if let Some(pass) = &mut self.pass {
                pass.step_back(entry);
            }
        }
        gather.top = gather.top.min(self.used());
        gather.high = gather.high.min(self.used());
    }

    /// Removes every entry from `used` on. None of these entries is a timer.
    pub(crate) fn truncate(&mut self, used: u32) {
        self.block.truncate(used);
    }

    pub(crate) fn trim_some(&mut self) -> bool {
        self.block.trim_some()
    }

    /// Puts the most recently vacated entry on a list.
    pub(crate) fn settle_last(&mut self) {
        if let Some(last) = self.vacant.take_last() {
            self.put_on_list(last);
        }
    }

    /// Searches a lane for a vacant entry before `entry`.
    pub(crate) fn vacant_below(
        &mut self,
        entry: EntryIndex,
        lane: usize,
        budget: &mut usize,
    ) -> Vacancy {
        let Some(pass) = &mut self.pass else {
            return Vacancy::None;
        };
        while *budget > 0 {
            *budget -= 1;
            let Some(low) = pass.next_of(lane, entry.index()) else {
                return Vacancy::None;
            };
            if let Some(found) = self.block.vacant_at(low) {
                return Vacancy::Found(found);
            }
        }
        Vacancy::Paused
    }

    /// Puts vacant entries below `until` on their lists, and then ends the pass.
    pub(crate) fn list_vacant(&mut self, until: u32, budget: &mut usize) {
        for lane in 0..LANES {
            while let Some(pass) = &mut self.pass {
                if *budget == 0 {
                    return;
                }
                *budget -= 1;
                let Some(low) = pass.next_of(lane, until) else {
                    break;
                };
                if let Some(entry) = self.block.vacant_at(low) {
                    self.get_mut(entry).next = self.vacant.push(entry);
                }
            }
        }
        self.pass = None;
    }

    /// Moves a timer to a vacant entry, and keeps its place on its list. If the
    /// list belongs to a slot, the vacant entry is in the timer's lane.
    pub(crate) fn move_timer(&mut self, from: EntryIndex, to: EntryIndex) {
        let sequence = self.stamp(from).sequence();
        self.block.move_timer(from, to);
        self.block.get_mut(to).mark(MOVED);
        self.moved.note(sequence, from.index(), to);
        self.redirect_links(from, to);
    }

    /// Moves a list's head to a vacant entry.
    pub(crate) fn move_sentinel(&mut self, from: EntryIndex, to: EntryIndex) {
        self.block.move_sentinel(from, to);
        self.redirect_links(from, to);
    }

    /// Links the entries before and after `from` to `to`.
    fn redirect_links(&mut self, from: EntryIndex, to: EntryIndex) {
        let (next, prev) = (self.next(from), self.prev(from));
        if next == from {
            return self.set_aside(to);
        }
        let mut entries = self.block.entries_mut();
        let stored = entries.get(to);
        (stored.next, stored.prev) = (next, prev);
        entries.get(next).prev = to;
        entries.get(prev).next = to;
    }
}
