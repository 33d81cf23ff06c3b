//! Draining a shard and shutting it down: waiting for the one-shots that are due soon, and
//! ending every live timer, a bounded number of cells at a time, until the last report is
//! available.
//!
//! A drain walks through the shard, and stops at each timer that it waits for until that one
//! has left. No timer is accepted meanwhile, so behind the walk there is none, unless one was
//! moved: the drain then walks once more.

use crate::shard::record::State;
use crate::shard::{CELLS_PER_HOLD, CELLS_PER_TIMER, Phase, Shard};
use crate::tick::Tick;
use crate::timer::{CloseReason, Closed};
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
            if self.is_draining() && self.delays_drain(at, last) {
                if !self.stopped_at.contains(&at) {
                    self.stopped_at.push(at);
                }
                (*cursor, *stopped) = (before, true);
                return true;
            }
        }
    }

    #[cold]
    pub(super) fn signal_leave(&mut self, at: EntryIndex) {
        let before = self.stopped_at.len();
        self.stopped_at.retain(|&other| other != at);
        if self.stopped_at.len() < before {
            self.signal().drained = true;
        }
    }

    /// Whether a drain that waits for timers due by `last` waits for this one.
    pub(super) fn delays_drain(&self, at: EntryIndex, last: Tick) -> bool {
        let waits = self.record_of(at).is_none_or(|key| {
            let record = &self.records[key];
            // A one-shot that was re-armed fires like a repeating timer, without a wait.
            let is_first = !record.is_repeating() && record.firings == 0;
            is_first && record.state == State::Waiting
        });
        waits && !self.tag(at).is_lent() && self.wheel.deadline_of(at) <= last
    }

    /// Closes the shard. Returns the number of live timers.
    pub(crate) fn close(&mut self) -> usize {
        if self.phase != Phase::Closed {
            self.phase = Phase::Closed;
            self.signal_if_all_reported();
        }
        self.live()
    }

    /// Continues the walk that ends every live timer of a closed shard, for a bounded
    /// number of cells. Returns whether the walk is complete.
    ///
    /// Leaves timers that will not fire again to end by themselves: those whose last
    /// firing is running, and those that were cancelled during a firing.
    pub(crate) fn close_some(
        &mut self,
        cursor: &mut Cursor,
        now: Tick,
        closed: &mut Vec<Closed<T>>,
    ) -> bool {
        debug_assert!(self.phase == Phase::Closed);
        let is_complete = self.walk_some(cursor, |shard, at| {
            closed.extend(shard.close_one(at, now));
            CELLS_PER_TIMER
        });
        is_complete || self.live() == 0
    }

    pub(crate) fn close_one(&mut self, at: EntryIndex, now: Tick) -> Option<Closed<T>> {
        let key = self.record_to_mark(at);
        let mut closed = self.closed(at, CloseReason::ShutDown, now);
        closed.payload = match key {
            Some(key) => self.close_recorded(at, key, now)?,
            None => Some(self.close_plain(at)),
        };
        Some(closed)
    }

    /// Ends a plain timer. Does not unlink one that is waiting for its deadline, because
    /// the entries beside it would cost cache misses and a closed shard's wheel never
    /// advances.
    fn close_plain(&mut self, at: EntryIndex) -> T {
        let reason = CloseReason::ShutDown;
        if self.tag(at).is_ready() {
            self.unlink(at);
            return self.end_plain(at, reason);
        }
        self.ledger.ended(reason);
        self.credit.put();
        // SAFETY: the tag says that the body is a payload.
        unsafe { self.wheel.entries.take(at).into_payload() }
    }

    /// Ends a timer with a record. Returns `None` if it ends by itself, and otherwise what the
    /// shutdown returns of its payload.
    fn close_recorded(&mut self, at: EntryIndex, key: usize, now: Tick) -> Option<Option<T>> {
        let reason = CloseReason::ShutDown;
        let record = &mut self.records[key];
        let is_last = record.is_last();
        match &mut record.state {
            State::Waiting => {
                let payload = record.payload.take_if(|_| !record.run_on_end);
                self.unlink(at);
                self.end_recorded(at, key, reason, now);
                return Some(payload);
            }
            State::Lent { ending: Some(_), .. } => return None,
            // Its task runs once more when the firing is done.
            State::Lent { ending, .. } if !is_last && record.run_on_end => {
                *ending = Some((reason, now));
                self.give_up_name(at, key);
            }
            State::Lent { next, .. } if !is_last => {
                if let Some(next) = *next {
                    self.wheel.set_deadline(at, next);
                }
                self.enter(key, State::Abandoned { tick: now });
                self.give_up_name(at, key);
                self.ledger.ended(reason);
            }
            // The last firing: only the mark counts, if its holder re-arms the timer.
            State::Lent { ending, .. } => {
                *ending = Some((reason, now));
                return None;
            }
            _ => return None,
        }
        Some(None)
    }
}
