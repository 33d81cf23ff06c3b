//! Pauses, during which time stands still for a timer.

use tickwheel::NotChanged;

use super::{Oracle, State, Timer};

impl Oracle {
    pub fn pause(&mut self, timer: usize) -> Result<(), NotChanged> {
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

    pub fn resume(&mut self, timer: usize) -> Result<(), NotChanged> {
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
}
