//! Bringing entries together, so that the end of the block can be cut off: what
//! `shrink.rs` asks of the entries.

use super::Entries;
use super::block::{EntryIndex, LANES};
use super::moved::MOVED;
use super::pass::{Below, Gather, Pass, Stage};
use super::vacant::Vacant;

impl<T> Entries<T> {
    /// Begins to shrink, unless that has begun. All that is vacant is forgotten,
    /// to be found again.
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

    /// Counts cells that were touched. Returns whether there may be more.
    pub(crate) fn spend(&mut self, cells: usize) -> bool {
        self.pass.as_mut().is_some_and(|pass| {
            pass.left = pass.left.saturating_sub(cells);
            pass.left > 0
        })
    }

    pub(crate) fn used(&self) -> u32 {
        self.block.used()
    }

    pub(crate) fn is_vacant(&self, entry: EntryIndex) -> bool {
        self.block.is_vacant(entry)
    }

    /// Whether the walk for vacant entries has come past a cell.
    pub(crate) fn is_below(&self, entry: EntryIndex) -> bool {
        self.pass.as_ref().is_none_or(|pass| pass.is_below(entry))
    }

    /// Takes a vacant entry away, or what memory it has if something stands
    /// behind it.
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

    /// Takes away every entry from `used` on; there is no timer.
    pub(crate) fn truncate(&mut self, used: u32) {
        self.block.truncate(used);
    }

    pub(crate) fn trim_some(&mut self) -> bool {
        self.block.trim_some()
    }

    /// Puts the entry that was vacated last where the others are.
    pub(crate) fn settle_last(&mut self) {
        if let Some(last) = self.vacant.take_last() {
            self.put_on_list(last);
        }
    }

    /// Looks for a vacant entry of a lane that comes before `at`.
    pub(crate) fn vacant_below(
        &mut self,
        entry: EntryIndex,
        lane: usize,
        budget: &mut usize,
    ) -> Below {
        let Some(pass) = &mut self.pass else {
            return Below::Nothing;
        };
        while *budget > 0 {
            *budget -= 1;
            let Some(low) = pass.next_of(lane, entry.index()) else {
                return Below::Nothing;
            };
            if let Some(found) = self
                .block
                .entry_at(low)
                .filter(|&low| self.block.is_vacant(low))
            {
                return Below::Found(found);
            }
        }
        Below::Paused
    }

    /// Puts vacant entries on their lists, up to `until`, and ends the pass.
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
                if let Some(entry) = self
                    .block
                    .entry_at(low)
                    .filter(|&low| self.block.is_vacant(low))
                {
                    self.get_mut(entry).next = self.vacant.push(entry);
                }
            }
        }
        self.pass = None;
    }

    /// Brings a timer to a vacant entry of its lane, or of any if it hangs on no
    /// slot's list; it stands where it stood on its list.
    pub(crate) fn move_timer(&mut self, from: EntryIndex, to: EntryIndex) {
        let sequence = self.stamp(from).sequence();
        self.block.move_timer(from, to);
        self.block.get_mut(to).mark(MOVED);
        self.moved.note(sequence, from, to);
        self.redirect_links(from, to);
    }

    /// Brings a list's head to a vacant entry. Its middle is forgotten.
    pub(crate) fn move_sentinel(&mut self, from: EntryIndex, to: EntryIndex) {
        self.block.move_sentinel(from, to);
        let bitmap_index = self.bitmap_index(to);
        self.get_mut(to).deadline = u64::from(bitmap_index);
        self.redirect_links(from, to);
    }

    /// Has the neighbours of the entry that was at `from` lead to `to`.
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
