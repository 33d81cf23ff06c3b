//! A shard's timers before they are started.

use crate::id::TimerId;
use crate::shard::record::{State, TimerRecord};
use crate::shard::{Due, Phase, Shard};
use crate::tick::Tick;
use crate::timeline::{Time, When};
use crate::timer::CloseReason;
use crate::timer::{Refusal, Timer};

impl<T> Shard<T> {
    /// Creates a timer that is started later, or never.
    pub(crate) fn create(
        &mut self,
        timer: Timer<T>,
        name_hash: Option<u64>,
    ) -> Result<TimerId, (Refusal, Timer<T>)> {
        if let Err(reason) = self.admit_named(&timer, name_hash) {
            return Err((reason, timer));
        }
        self.not_live += 1;
        let record = TimerRecord {
            state: State::Unstarted { cancelled: false },
            ..TimerRecord::new(timer.map(Some), Time::MAX, name_hash)
        };
        let at = self.insert_recorded(record, Tick::MAX);
        Ok(self.wheel.id(at))
    }

    /// Returns the time at which an unstarted timer is to fire.
    pub(crate) fn requested_of(&self, id: TimerId) -> Option<When> {
        let key = self.record_of(self.wheel.find_own(id)?)?;
        Some(self.records[key].timer.requested)
    }

    /// Starts a timer that was created earlier. If the start is refused, returns the
    /// timer, or `None` if it was cancelled and has lost its payload. Calls `now` only
    /// for a cancelled timer.
    pub(crate) fn start(
        &mut self,
        id: TimerId,
        due: Due,
        now: impl FnOnce() -> Tick,
    ) -> Result<(), Option<Timer<T>>> {
        let at = self.wheel.find_own(id).ok_or(None)?;
        let key = self.record_of(at).ok_or(None)?;
        let State::Unstarted { cancelled } = self.records[key].state else {
            return Err(None);
        };
        if self.phase != Phase::Open {
            return Err(self.dismiss(id));
        }
        self.accept(self.records[key].timer.reported);
        let deadline = self.set_requested(key, due);
        self.enter(key, State::Waiting);
        if cancelled {
            self.end_recorded(at, key, CloseReason::Cancelled, now());
        } else {
            self.relink(at, deadline);
        }
        Ok(())
    }

    /// Discards a timer that was never started. Returns it, unless it was cancelled and
    /// has lost its payload.
    pub(crate) fn dismiss(&mut self, id: TimerId) -> Option<Timer<T>> {
        let at = self.wheel.find_own(id)?;
        let key = self.record_of(at)?;
        self.give_up_name(at, key);
        let timer = self.records[key].take_timer();
        self.forget(at, key);
        timer
    }
}
