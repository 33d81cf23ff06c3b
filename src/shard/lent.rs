//! A timer while a worker holds a firing of it: re-arming it, and whether it was
//! cancelled.
//!
//! A firing is recognised by its number, which no two firings of a timer share. A firing
//! whose task has returned is therefore not found, even if the next one has been taken.

use crate::id::TimerId;
use crate::shard::firing::Outcome;
use crate::shard::record::State;
use crate::shard::{Phase, Shard};
use crate::tick::Tick;
use crate::timeline::Time;
use crate::timer::Refusal;

/// The next firing of a timer, as the holder of the current firing sets it.
#[derive(Clone, Copy)]
pub(crate) struct Next {
    pub(crate) requested: Time,
    /// The tick that `requested` is rounded up to.
    pub(crate) deadline: Tick,
}

impl<T> Shard<T> {
    /// Sets the next firing of a timer from within the current one.
    pub(crate) fn rearm_lent(
        &mut self,
        id: TimerId,
        number: u64,
        next: Next,
    ) -> Result<(), Refusal> {
        let at = self.wheel.find_own(id).ok_or(Refusal::Gone)?;
        let key = self.record_if_lent(at).ok_or(Refusal::Gone)?;
        if !self.has_firing(key, number) {
            return Err(Refusal::Gone);
        }
        let record = &mut self.records[key];
        let State::Lent { ending, .. } = record.state else {
            return Err(record.state.obstacle());
        };
        let is_closed = self.phase == Phase::Closed;
        if ending.is_some() || is_closed {
            // The refusal tells the task of the end, so it does not run for that as well.
            record.run_on_end = false;
        }
        let refusal = match ending {
            Some((reason, _)) => Err(Refusal::by(reason)),
            None if is_closed => return Err(Refusal::ShutDown),
            None => Ok(()),
        };
        if record.is_used_up() {
            return refusal.and(Err(Refusal::UsedUp));
        }
        // A timer that was to fire again ends as it was marked, and not as completed.
        record.state = State::Lent {
            ending,
            next: Some(next.deadline),
        };
        refusal?;
        record.requested = next.requested;
        Ok(())
    }

    /// Takes back a lent firing at `now`, and sets the next one. Returns whether
    /// a caller is waiting for the return, or the payload with the reason if the
    /// timer cannot fire again.
    pub(crate) fn rearm_and_return(
        &mut self,
        id: TimerId,
        number: u64,
        payload: T,
        next: Next,
        now: Time,
    ) -> Result<bool, (Refusal, T)> {
        match self.rearm_lent(id, number, next) {
            Err(reason) => Err((reason, payload)),
            Ok(()) => {
                let returned = self.return_firing(id, Some(payload), Outcome::Returned, now);
                Ok(returned.awaited)
            }
        }
    }

    /// Returns the number of a timer's firings still to come; `None` means for ever.
    pub(crate) fn remaining(&self, id: TimerId) -> Option<u64> {
        let key = self.wheel.find_own(id).and_then(|at| self.record_of(at));
        match key.map(|key| &self.records[key]) {
            Some(record) if record.is_repeating() && record.state.is_live() => record.left,
            _ => Some(0),
        }
    }

    /// Whether a timer was cancelled or shut down since a worker took this firing.
    pub(crate) fn is_cancelled(&self, id: TimerId, number: u64) -> bool {
        let Some(key) = self.find_lent(id, number) else {
            return self.is_lent_task(id) && self.phase == Phase::Closed;
        };
        let is_going_on = matches!(self.records[key].state, State::Lent { ending: None, .. });
        !is_going_on || self.phase == Phase::Closed
    }

    /// Finds the record of a timer of which a worker holds this firing.
    fn find_lent(&self, id: TimerId, number: u64) -> Option<usize> {
        let key = self.record_of(self.wheel.find_own(id)?)?;
        self.has_firing(key, number).then_some(key)
    }

    /// Whether a worker holds this firing of a timer.
    fn has_firing(&self, key: usize, number: u64) -> bool {
        let record = &self.records[key];
        let is_lent = matches!(record.state, State::Lent { .. } | State::Abandoned { .. });
        is_lent && record.number == number
    }
}
