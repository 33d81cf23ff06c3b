//! The period and the count of a repeating timer, read and changed while it lives.

use core::time::Duration;

use crate::id::TimerId;
use crate::shard::record::{State, TimerRecord};
use crate::shard::{Phase, Shard};
use crate::timer::{Refusal, Repeat, Repetition};

impl<T> Shard<T> {
    pub(crate) fn repetition(&self, id: TimerId) -> Option<Repetition> {
        let at = self.wheel.find_own(id)?;
        let record = &self.records[self.record_of(at)?];
        record.state.is_live().then(|| record.repetition())?
    }

    /// Sets the period that counts from the next firing on.
    pub(crate) fn set_period(&mut self, id: TimerId, repeat: Repeat) -> Result<(), Refusal> {
        let tick = self.tick;
        let record = self.find_repeating(id)?;
        repeat.validate(record.missed, tick)?;
        record.period = Some(repeat.period);
        Ok(())
    }

    /// Sets the number of firings still to come; 0 means for ever.
    pub(crate) fn set_times(&mut self, id: TimerId, times: u64) -> Result<(), Refusal> {
        self.find_repeating(id)?.set_times(times);
        Ok(())
    }

    /// Finds a repeating timer that can fire again. A timer whose last firing is held
    /// can, if it was not cancelled and the shard not closed.
    fn find_repeating(&mut self, id: TimerId) -> Result<&mut TimerRecord<T>, Refusal> {
        let at = self.wheel.find_own(id).ok_or(Refusal::Gone)?;
        let key = self.record_of(at).ok_or(Refusal::NotRepeating)?;
        let record = &mut self.records[key];
        match record.state {
            State::Waiting | State::Paused | State::Lent { ending: None, .. } => {}
            state => return Err(state.obstacle()),
        }
        match (record.is_repeating(), self.phase) {
            (false, _) => Err(Refusal::NotRepeating),
            (true, Phase::Closed) => Err(Refusal::ShutDown),
            (true, _) => Ok(record),
        }
    }
}

impl<T> TimerRecord<T> {
    fn repetition(&self) -> Option<Repetition> {
        Some(Repetition {
            period: Duration::from_nanos(self.period?),
            left: self.left,
        })
    }

    fn set_times(&mut self, times: u64) {
        self.left = Some(times).filter(|&times| times > 0);
    }
}
