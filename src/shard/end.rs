//! Ending and cancelling a timer. For shutting down, see `shutdown.rs`; for a firing that
//! comes back, `lent.rs`.

use crate::id::TimerId;
use crate::shard::Shard;
use crate::shard::record::State;
use crate::tick::Tick;
use crate::timer::{Cancel, CloseReason};
use crate::wheel::EntryIndex;

impl<T> Shard<T> {
    /// Finds a one-shot that is waiting for its deadline and has no record, for
    /// [`Shard::cancel_plain`]. Finds no other timer, and none during a drain, which may
    /// wait for it.
    #[inline(always)]
    pub(crate) fn find_plain(&self, id: TimerId) -> Option<EntryIndex> {
        let at = self.wheel.find_own(id)?;
        let is_plain = self.tag(at).is_plain() && !self.is_draining();
        is_plain.then_some(at)
    }

    /// Cancels a timer that [`Shard::find_plain`] found. A payload that may be missing
    /// would be copied once more.
    #[inline(always)]
    pub(crate) fn cancel_plain(&mut self, at: EntryIndex) -> T {
        // Counted first: the payload is then copied once less.
        self.ledger.ended(CloseReason::Cancelled);
        self.credit.put();
        let body = self.wheel.remove_linked(at);
        // SAFETY: the tag says that the body is a payload.
        unsafe { body.into_payload() }
    }

    /// Cancels a timer. Calls `now` only for a timer with a report, which may
    /// carry the tick.
    #[inline]
    pub(crate) fn cancel(&mut self, id: TimerId, now: impl FnOnce() -> Tick) -> Cancel<T> {
        let Some(at) = self.wheel.find_own(id) else {
            return Cancel::Gone;
        };
        self.cancel_at(at, now)
    }

    #[inline]
    pub(super) fn cancel_at(&mut self, at: EntryIndex, now: impl FnOnce() -> Tick) -> Cancel<T> {
        if let Some(key) = self.record_to_mark(at) {
            return self.cancel_recorded(at, key, now);
        }
        self.unlink(at);
        Cancel::Cancelled(self.end_plain(at, CloseReason::Cancelled))
    }

    #[inline]
    fn cancel_recorded(
        &mut self,
        at: EntryIndex,
        key: usize,
        now: impl FnOnce() -> Tick,
    ) -> Cancel<T> {
        let record = &mut self.records[key];
        let tick = if record.timer.reported { now() } else { Tick::MAX };
        match record.state {
            State::Waiting => {
                let payload = record.payload.take_if(|_| !record.run_on_end);
                self.unlink(at);
                self.end_recorded(at, key, CloseReason::Cancelled, tick);
                payload.map_or(Cancel::Notified, Cancel::Cancelled)
            }
            State::Unstarted { cancelled: false } => {
                record.state = State::Unstarted { cancelled: true };
                let payload = record.payload.take_if(|_| !record.run_on_end);
                self.give_up_name(at, key);
                payload.map_or(Cancel::Notified, Cancel::Cancelled)
            }
            State::Lent { ending: None, next } => {
                let ends = record.ends_if_cancelled();
                let ending = Some((CloseReason::Cancelled, tick));
                record.state = State::Lent { ending, next };
                if ends {
                    self.give_up_name(at, key);
                }
                Cancel::Running
            }
            State::Lent { .. } => Cancel::Running,
            State::Unstarted { .. } | State::Abandoned { .. } | State::Ended { .. } => Cancel::Gone,
        }
    }

    #[inline(always)]
    pub(crate) fn end_plain(&mut self, at: EntryIndex, reason: CloseReason) -> T {
        self.ledger.ended(reason);
        self.credit.put();
        self.take_payload(at)
    }

    /// Counts plain timers whose payloads were taken because their time had come.
    #[inline]
    pub(crate) fn count_completed(&mut self, timers: usize) {
        self.ledger.completed += timers as u64;
        self.credit.put_many(timers);
    }

    /// Takes the payload of a plain timer and frees its entry. The caller counts
    /// the timer.
    #[inline]
    pub(crate) fn take_payload(&mut self, at: EntryIndex) -> T {
        debug_assert!(self.tag(at).has_payload());
        // SAFETY: the tag says that the body is a payload.
        unsafe { self.wheel.remove(at).into_payload() }
    }

    /// Ends a timer that is not on any list. If its task must run because the timer was
    /// cancelled or shut down, it becomes ready once more. Returns the payload unless
    /// another thread gets it.
    pub(crate) fn end_recorded(
        &mut self,
        at: EntryIndex,
        key: usize,
        reason: CloseReason,
        tick: Tick,
    ) -> Option<T> {
        self.ledger.ended(reason);
        let record = &mut self.records[key];
        if let Some(next) = record.next() {
            self.wheel.set_deadline(at, next);
        }
        record.state = State::Ended { reason, tick };
        let is_told = matches!(reason, CloseReason::Cancelled | CloseReason::ShutDown);
        let runs_task = is_told && record.run_on_end && record.payload.is_some();
        self.not_live += 1;
        self.give_up_name(at, key);
        if runs_task {
            // The timer may have been disarmed, which an expired one is not.
            self.wheel.set_deadline(at, self.wheel.deadline_of(at));
            self.make_ready(at);
            self.signal().wake_driver = true;
            return None;
        }
        self.close_entry(at, key)
    }

    /// Frees the entry of an ended timer. A reported timer keeps its entry, and
    /// its payload if it still has one, until the report is read. A task is
    /// dropped in any case, because waiting for the workers includes waiting for
    /// the values that tasks hold.
    #[inline(always)]
    pub(crate) fn close_entry(&mut self, at: EntryIndex, key: usize) -> Option<T> {
        let record = &mut self.records[key];
        if record.timer.reported {
            record.run_on_end = false;
            let task = record.payload.take_if(|_| record.timer.task);
            self.report(at);
            return task;
        }
        let payload = record.payload.take();
        self.forget(at, key);
        payload
    }
}
