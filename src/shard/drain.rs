//! Counting the timers that a drain still waits for in one shard.

use crate::shard::record::State;
use crate::shard::{Awaited, CELLS_PER_TIMER, DrainKey, Phase, Shard};
use crate::tick::Tick;
use crate::wheel::{Cursor, EntryIndex};

impl<T> Shard<T> {
    /// Refuses new timers. The drain waits for one-shots that are due by `last`.
    pub(crate) fn begin_drain(&mut self, last: Tick) -> DrainKey {
        if self.phase == Phase::Open {
            self.phase = Phase::Draining;
        }
        self.drains.push(Awaited {
            last,
            left: 0,
            counted: Cursor::START,
        });
        DrainKey(self.drains.len() - 1)
    }

    /// Counts the timers in a bounded number of further cells. Returns whether the count
    /// is complete, or no longer needed because the shard was closed.
    pub(crate) fn count_some(&mut self, drain: DrainKey) -> bool {
        if !self.is_draining() {
            return true;
        }
        let Awaited {
            last,
            mut counted,
            mut left,
        } = self.drains[drain.0];
        let is_complete = self.walk_some(&mut counted, |shard, at| {
            left += usize::from(shard.is_awaited(at, last));
            CELLS_PER_TIMER
        });
        if is_complete {
            // List heads can still follow, but timers cannot.
            counted = Cursor::END;
        }
        self.drains[drain.0] = Awaited {
            last,
            left,
            counted,
        };
        is_complete
    }

    /// Whether no timer is left that a drain waits for.
    pub(crate) fn is_drained(&self, drain: DrainKey) -> bool {
        !self.is_draining() || self.drains[drain.0].is_nothing_left()
    }

    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.phase == Phase::Draining
    }

    /// Notes that a timer is about to end, to be taken, or to be moved.
    #[inline]
    pub(crate) fn count_out(&mut self, at: EntryIndex) {
        if self.is_draining() {
            self.count_out_of_drains(at);
        }
    }

    #[cold]
    fn count_out_of_drains(&mut self, at: EntryIndex) {
        for drain in 0..self.drains.len() {
            let mut awaited = self.drains[drain];
            if awaited.counted.is_past(at) && self.is_awaited(at, awaited.last) {
                awaited.left -= 1;
                self.drains[drain] = awaited;
                let drained = awaited.is_nothing_left();
                self.signals.drained |= drained;
                self.signalled |= drained;
            }
        }
    }

    /// Notes that a timer has been moved.
    #[inline]
    pub(crate) fn count_in(&mut self, at: EntryIndex) {
        if self.is_draining() {
            self.count_into_drains(at);
        }
    }

    #[cold]
    fn count_into_drains(&mut self, at: EntryIndex) {
        for drain in 0..self.drains.len() {
            let awaited = self.drains[drain];
            let joins = awaited.counted.is_past(at) && self.is_awaited(at, awaited.last);
            self.drains[drain].left += usize::from(joins);
        }
    }

    /// Whether a drain that waits for timers due by `last` waits for this one.
    pub(crate) fn is_awaited(&self, at: EntryIndex, last: Tick) -> bool {
        let waits = self.record_of(at).is_none_or(|key| {
            let record = &self.records[key];
            // A one-shot that was re-armed fires like a repeating timer, without a wait.
            let is_first = !record.is_repeating() && record.firings == 0;
            is_first && record.state == State::Waiting
        });
        waits && !self.tag(at).is_lent() && self.wheel.deadline_of(at) <= last
    }
}
