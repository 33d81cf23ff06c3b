//! Cancelling all timers of a shard, a bounded number of cells at a time.

use crate::shard::record::TimerRecord;
use crate::shard::{CELLS_PER_HOLD, Shard};
use crate::sync::IS_MODEL;
use crate::tick::Tick;
use crate::timer::{Cancel, CancelledMany};
use crate::wheel::{Cursor, EntryIndex};

/// The maximum number of timers that one hold of the shard's lock cancels.
pub(crate) const CANCELS_PER_HOLD: usize = if IS_MODEL { 1 } else { 32 };

/// The number of cells that a cancelled timer counts as.
const CELLS_PER_CANCEL: usize = CELLS_PER_HOLD / CANCELS_PER_HOLD;

/// The progress of a walk that cancels the timers of a shard.
pub(crate) struct CancelWalk {
    cursor: Cursor,
    /// The sequence number of the youngest timer to be cancelled.
    youngest: u64,
}

impl<T> Shard<T> {
    /// Begins a walk that cancels the timers that exist now. It skips later ones;
    /// otherwise it might never end.
    pub(crate) fn begin_cancel_all(&mut self) -> CancelWalk {
        self.begin_walk();
        CancelWalk {
            cursor: Cursor::START,
            youngest: self.wheel.youngest(),
        }
    }

    /// Continues the walk, for a bounded number of cells. Returns whether it is complete.
    pub(crate) fn cancel_some(
        &mut self,
        walk: &mut CancelWalk,
        now: Tick,
        cancelled: &mut CancelledMany<T>,
    ) -> bool {
        let mut budget = CELLS_PER_HOLD;
        while let Some(at) = self.wheel.next_entry(&mut walk.cursor, &mut budget) {
            if self.wheel.sequence(at) > walk.youngest {
                continue;
            }
            let (id, ends) = (self.wheel.id(at), self.ends_if_cancelled(at));
            // A timer whose last firing is running is marked, so that it is not re-armed.
            let answer = self.cancel_at(at, || now);
            if ends {
                budget = budget.saturating_sub(CELLS_PER_CANCEL);
                cancelled.ids.push(id);
            } else {
                cancelled.running += usize::from(matches!(answer, Cancel::Running));
            }
            cancelled.payloads.extend(answer.into_payload());
        }
        let done = self.wheel.is_at_end(walk.cursor);
        if done {
            self.end_walk();
        }
        done
    }

    fn ends_if_cancelled(&self, at: EntryIndex) -> bool {
        let record = self.record_of(at).map(|key| &self.records[key]);
        let is_lent = self.tag(at).is_lent();
        record.map_or(!is_lent, TimerRecord::ends_if_cancelled)
    }
}
