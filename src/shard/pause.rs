//! Pausing timers. For a paused timer, time stands still: `requested` and the
//! moment of the pause stay as they are, and the resumption moves `requested` by
//! the length of the pause. A repeating timer's phase and the firings that it has
//! missed thus survive the pause.

use core::time::Duration;

use crate::id::TimerId;
use crate::rounding::TickLength;
use crate::shard::Shard;
use crate::shard::body::Body;
use crate::shard::record::{State, TimerRecord};
use crate::tick::Tick;
use crate::timeline::Time;
use crate::timer::{Refusal, Timer};
use crate::wheel::EntryIndex;

impl<T> Shard<T> {
    /// Pauses a timer at `now`. If a worker has a firing of it, the next one is paused
    /// when that firing returns.
    pub(crate) fn pause(&mut self, id: TimerId, now: Time) -> Result<(), Refusal> {
        let at = self.wheel.find_own(id).ok_or(Refusal::Gone)?;
        let state = self.record_if_lent(at).map(|key| self.records[key].state);
        match state.unwrap_or(State::Waiting) {
            State::Waiting => {
                self.unlink(at);
                let key = self.recorded(at);
                self.lay_aside(at, key, now);
            }
            State::Lent { ending: None, .. } => self.pause_lent(at, now),
            State::Paused => {}
            state => return Err(state.obstacle()),
        }
        Ok(())
    }

    /// Puts a timer that is not on any list into the state of a paused one.
    pub(super) fn lay_aside(&mut self, at: EntryIndex, key: usize, now: Time) {
        self.wheel.set_aside_unsorted(at);
        self.enter(key, State::Paused);
        self.records[key].paused.get_or_insert(now);
    }

    fn pause_lent(&mut self, at: EntryIndex, now: Time) {
        if let Some(key) = self.record_of(at) {
            self.records[key].paused.get_or_insert(now);
        }
    }

    /// Resumes a timer at `now`. Does nothing if the timer is not paused.
    pub(crate) fn resume(&mut self, id: TimerId, now: Time) -> Result<(), Refusal> {
        let at = self.wheel.find_own(id).ok_or(Refusal::Gone)?;
        let Some(key) = self.record_of(at) else {
            return Ok(());
        };
        let state = self.records[key].state;
        if !state.is_live() {
            return Err(state.obstacle());
        }
        let is_set_aside = state == State::Paused;
        self.records[key].resume(now, self.tick);
        if is_set_aside {
            let deadline = self.tick.tick_after(self.records[key].requested);
            self.link_waiting(at, key, deadline);
        }
        Ok(())
    }

    /// Gives a paused timer another deadline. What is left of its delay counts
    /// from `now`.
    pub(super) fn reschedule_paused(
        &mut self,
        at: EntryIndex,
        key: usize,
        requested: Time,
        deadline: Tick,
        now: Time,
    ) {
        let record = &mut self.records[key];
        record.requested = requested;
        record.paused = Some(now);
        self.wheel.set_deadline(at, deadline);
    }

    /// Removes a waiting timer from its list. A paused one is on none.
    pub(super) fn unlink_waiting(&mut self, at: EntryIndex, key: usize) {
        if self.records[key].state == State::Waiting {
            self.unlink(at);
        }
    }

    /// Whether a live timer is paused, or will be when its firing returns.
    pub(super) fn is_paused(&self, at: EntryIndex) -> bool {
        let record = self.record_of(at).map(|key| &self.records[key]);
        record.is_some_and(|record| record.paused.is_some())
    }

    /// Returns what is left of the delay of a paused timer.
    pub(crate) fn paused(&self, id: TimerId) -> Option<Duration> {
        let record = &self.records[self.record_of(self.wheel.find_own(id)?)?];
        let since = record.paused.filter(|_| record.state.is_live())?;
        Some(match record.state {
            State::Paused => record.requested - since,
            // Nothing is left of the firing that a worker has.
            _ => Duration::ZERO,
        })
    }

    /// Returns the record of a timer that is not on any list. A plain timer gets one.
    fn recorded(&mut self, at: EntryIndex) -> usize {
        if let Some(key) = self.record_of(at) {
            return key;
        }
        let tag = self.tag(at);
        let body = std::mem::replace(self.wheel.payload_mut(at), Body::lent(None));
        // SAFETY: the tag says that the body is a payload.
        let payload = unsafe { body.into_payload() };
        let requested = self.tick.start_of(self.wheel.deadline_of(at));
        let mut timer = Timer::at(requested, payload).queue(tag.queue());
        timer.task = tag.is_task();
        let key = self
            .records
            .insert(TimerRecord::new(timer, requested, None));
        *self.wheel.payload_mut(at) = Body::record(key);
        self.wheel.set_tag(at, tag.with_record().0);
        key
    }
}

impl<T> TimerRecord<T> {
    /// Moves the deadline by the length of the pause, if there was one.
    fn resume(&mut self, now: Time, tick: TickLength) {
        let Some(since) = self.paused.take() else {
            return;
        };
        self.requested += now - since;
        if let State::Lent {
            next: Some(next), ..
        } = &mut self.state
        {
            *next = tick.tick_after(self.requested);
        }
    }
}
