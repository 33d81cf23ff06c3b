//! Cancelling all timers of a shard, a bounded number of cells at a time.

use crate::id::TimerId;
use crate::shard::{CELLS_PER_HOLD, Shard};
use crate::sync::IS_MODEL;
use crate::tick::Tick;
use crate::timer::Cancel;
use crate::wheel::Cursor;

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
        answers: &mut Vec<(TimerId, Cancel<T>)>,
    ) -> bool {
        let mut budget = CELLS_PER_HOLD;
        while let Some(at) = self.wheel.next_entry(&mut walk.cursor, &mut budget) {
            if self.wheel.sequence(at) > walk.youngest {
                continue;
            }
            let id = self.wheel.id(at);
            let answer = self.cancel_at(at, || now);
            if !matches!(answer, Cancel::Gone) {
                budget = budget.saturating_sub(CELLS_PER_CANCEL);
                answers.push((id, answer));
            }
        }
        self.wheel.is_at_end(walk.cursor)
    }
}
