//! Pauses, during which time stands still for a timer, and changes of its repetition.

use tickwheel::{MissedTicks, Refusal};

use super::{Oracle, State, Timer};

impl Oracle {
    pub fn pause(&mut self, timer: usize) -> Result<(), Refusal> {
        let start = self.start_of(self.timers[timer].tick);
        let found = &mut self.timers[timer];
        match found.state {
            State::Paused => return Ok(()),
            State::Lent { ending: None } => {}
            _ if !found.is_waiting() => return Err(found.obstacle()),
            _ => {}
        }
        found.paused.get_or_insert(self.now);
        if !found.recorded {
            (found.recorded, found.due) = (true, start);
        }
        if found.is_waiting() {
            self.unlist(timer);
            self.timers[timer].state = State::Paused;
        }
        Ok(())
    }

    pub fn resume(&mut self, timer: usize) -> Result<(), Refusal> {
        let now = self.now;
        let found = &mut self.timers[timer];
        if !found.is_live() {
            return Err(found.obstacle());
        }
        if let Some(since) = found.paused.take() {
            found.due = found.due.saturating_add(now - since);
        }
        let Timer {
            state, due, ask, ..
        } = *found;
        if state == State::Paused {
            let tick = self.within(ask.tolerance, due, self.tick_of(due));
            self.file(timer, tick, false);
        }
        Ok(())
    }

    pub(super) fn reschedule_paused(&mut self, timer: usize, due: u64) {
        let found = &mut self.timers[timer];
        (found.due, found.paused) = (due, Some(self.now));
    }

    /// What is left of a paused timer's delay, in nanoseconds.
    pub fn paused(&self, timer: usize) -> Option<u64> {
        let found = &self.timers[timer];
        let since = found.paused.filter(|_| found.is_live())?;
        let left = found.due.saturating_sub(since);
        Some(if found.state == State::Paused {
            left
        } else {
            0
        })
    }

    /// The period of a live timer, and how many firings are left of it.
    pub fn repetition(&self, timer: usize) -> Option<(u64, Option<u64>)> {
        let found = &self.timers[timer];
        let period = found.ask.period.filter(|_| found.is_live())?;
        Some((period, found.left))
    }

    pub fn set_period(&mut self, timer: usize, period: u64) -> Result<(), Refusal> {
        self.can_repeat(timer)?;
        let shortest = self.setup.tick / 100;
        let ask = &mut self.timers[timer].ask;
        match ask.missed.unwrap_or_default() {
            _ if period == 0 => return Err(Refusal::ZeroPeriod),
            MissedTicks::CatchUp if period < shortest => return Err(Refusal::PeriodTooShort),
            _ => ask.period = Some(period),
        }
        Ok(())
    }

    pub fn set_times(&mut self, timer: usize, times: u64) -> Result<(), Refusal> {
        self.can_repeat(timer)?;
        self.timers[timer].left = Some(times).filter(|&times| times > 0);
        Ok(())
    }

    fn can_repeat(&self, timer: usize) -> Result<(), Refusal> {
        let found = &self.timers[timer];
        match found.state {
            State::Lent { ending: Some(_) } => Err(found.obstacle()),
            _ if !found.is_live() => Err(found.obstacle()),
            _ if found.ask.period.is_none() => Err(Refusal::NotRepeating),
            _ => Ok(()),
        }
    }
}
