//! The timers of one shard that a drain waits for: one-shots that are due by its limit.
//!
//! A drain walks through the shard, and stops at each of them until that one has left. No timer
//! is accepted meanwhile, so behind the walk there is none, unless one was moved: the drain
//! then walks once more.

use crate::shard::record::State;
use crate::shard::{CELLS_PER_HOLD, CELLS_PER_TIMER, Phase, Shard};
use crate::tick::Tick;
use crate::wheel::{Cursor, EntryIndex};

impl<T> Shard<T> {
    /// Refuses new timers. The drain waits for one-shots that are due by `last`.
    pub(crate) fn begin_drain(&mut self, last: Tick) {
        if self.phase == Phase::Open {
            self.phase = Phase::Draining;
        }
        self.drained_until = self.drained_until.max(last);
    }

    /// Passes a bounded number of cells without a timer that is due by `last`. Returns whether
    /// the walk is over for now: at its end or, if `stopped`, before such a timer, whose leave
    /// will be signalled.
    pub(crate) fn pass_drained(
        &mut self,
        cursor: &mut Cursor,
        last: Tick,
        stopped: &mut bool,
    ) -> bool {
        let mut budget = CELLS_PER_HOLD;
        loop {
            let before = *cursor;
            let Some(at) = self.wheel.next_entry(cursor, &mut budget) else {
                return self.wheel.is_at_end(*cursor);
            };
            budget = budget.saturating_sub(CELLS_PER_TIMER);
            if self.is_draining() && self.is_awaited(at, last) {
                if !self.awaited.contains(&at) {
                    self.awaited.push(at);
                }
                (*cursor, *stopped) = (before, true);
                return true;
            }
        }
    }

    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.phase == Phase::Draining
    }

    /// Notes that a timer is about to end, to be taken, or to be moved.
    #[inline]
    pub(crate) fn note_leave(&mut self, at: EntryIndex) {
        if self.is_draining() {
            self.signal_leave(at);
        }
    }

    #[cold]
    fn signal_leave(&mut self, at: EntryIndex) {
        let before = self.awaited.len();
        self.awaited.retain(|&awaited| awaited != at);
        let was_awaited = self.awaited.len() < before;
        self.signals.drained |= was_awaited;
        self.signalled |= was_awaited;
    }

    /// Notes that a caller has moved a timer, perhaps to where walks have been.
    #[inline]
    pub(crate) fn note_move(&mut self, at: EntryIndex) {
        if self.is_draining() {
            self.moved += u64::from(self.is_awaited(at, self.drained_until));
        }
    }

    /// Whether a drain that waits for timers due by `last` waits for this one.
    pub(super) fn is_awaited(&self, at: EntryIndex, last: Tick) -> bool {
        let waits = self.record_of(at).is_none_or(|key| {
            let record = &self.records[key];
            // A one-shot that was re-armed fires like a repeating timer, without a wait.
            let is_first = !record.is_repeating() && record.firings == 0;
            is_first && record.state == State::Waiting
        });
        waits && !self.tag(at).is_lent() && self.wheel.deadline_of(at) <= last
    }
}
