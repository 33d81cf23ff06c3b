//! The return of a firing that was lent to a worker: its timer is set up again or ends.

use crate::id::TimerId;
use crate::shard::Shard;
use crate::shard::firing::{Outcome, Returned};
use crate::shard::record::State;
use crate::timeline::Time;
use crate::timer::CloseReason;
use crate::wheel::EntryIndex;

impl<T> Shard<T> {
    /// Takes back a lent firing at `now`.
    pub(crate) fn return_firing(
        &mut self,
        id: TimerId,
        payload: Option<T>,
        outcome: Outcome,
        now: Time,
    ) -> Returned<T> {
        let Some(at) = self.wheel.find_own(id) else {
            return Returned {
                payload,
                awaited: false,
            };
        };
        let Some(key) = self.record_of(at) else {
            return self.end_task(at, payload, outcome, now);
        };
        let taken = self.records[key].taken.take();
        self.note_return(taken, now);
        let due = self.wheel.deadline_of(at);
        let record = &mut self.records[key];
        let awaited = std::mem::take(&mut record.awaited);
        record.payload = payload;
        let ending = match record.state {
            State::Lent { ending, .. } => ending,
            State::Abandoned { tick } => {
                let payload = self.end_abandoned(at, key, tick);
                return Returned { payload, awaited };
            }
            // Its task has been told.
            State::Ended { .. } => {
                let payload = self.close_entry(at, key);
                return Returned { payload, awaited };
            }
            _ => unreachable!("only what was lent is given back"),
        };
        let (reason, tick) = match (record.is_last(), outcome, ending) {
            (true, Outcome::Panicked, _) => (CloseReason::Failed, due),
            (true, _, _) => (CloseReason::Completed, due),
            (false, _, Some(ending)) => ending,
            (false, Outcome::Kept, None) => (CloseReason::Cancelled, self.tick.tick_at(now)),
            (false, _, None) if record.payload.is_some() => {
                self.rearm(at, key, now);
                let payload = None;
                return Returned { payload, awaited };
            }
            // The only run of a task that was given to a timer that repeats.
            (false, Outcome::Panicked, None) => (CloseReason::Failed, due),
            (false, Outcome::Returned, None) => (CloseReason::Completed, due),
        };
        let payload = self.end_recorded(at, key, reason, tick);
        Returned { payload, awaited }
    }

    /// Records that a lent firing has come back at `now`.
    pub(super) fn note_return(&mut self, taken: Option<Time>, now: Time) {
        self.work.held -= 1;
        if let Some(taken) = taken {
            let nanos = now.since_nanos(taken);
            self.work.measure().durations.record_nanos(nanos);
        }
    }

    fn rearm(&mut self, at: EntryIndex, key: usize, now: Time) {
        let record = &mut self.records[key];
        let is_set = record.next().is_some();
        let deadline = record.rearm(now, self.tick);
        let deadline = self.tolerated(key, deadline);
        if !is_set && deadline <= self.tick.tick_at(now).max(self.wheel.now()) {
            self.wheel.set_deadline(at, deadline);
            self.make_ready(at);
        } else {
            // A deadline that the holder has set waits for the ticker even if it
            // has passed. A timer that is due again at once then holds up neither
            // others nor the clock.
            self.relink(at, deadline);
        }
    }

    /// Returns whether a worker has a firing of the timer, or, if `to_be_told`, will have
    /// the one that tells its task of the end. If so, the return of that firing will say
    /// that a caller is waiting.
    pub(crate) fn await_return(&mut self, id: TimerId, to_be_told: bool) -> bool {
        let at = self.wheel.find_own(id);
        let key = at.and_then(|at| self.record_if_lent(at));
        let Some(record) = key.map(|key| &mut self.records[key]) else {
            return false;
        };
        let is_held = match record.state {
            State::Lent { .. } | State::Abandoned { .. } => true,
            State::Ended { .. } => record.run_on_end && (to_be_told || record.payload.is_none()),
            _ => false,
        };
        record.awaited |= is_held;
        is_held
    }
}
