//! A timer while a worker holds a firing of it: re-arming it, whether it was cancelled, and the
//! return of the firing.
//!
//! A firing is recognised by its number, which no two firings of a timer share. A firing
//! whose task has returned is therefore not found, even if the next one has been taken.

use crate::id::TimerId;
use crate::shard::body::Body;
use crate::shard::record::{State, TimerRecord};
use crate::shard::{Due, Phase, Shard};
use crate::tick::Tick;
use crate::timeline::Time;
use crate::timer::{CloseReason, Refusal, Timer};
use crate::wheel::{EntryIndex, Tag};

/// The way in which a lent firing came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Returned,
    Panicked,
    /// The worker kept the payload, which ends the timer.
    Kept,
}

/// The work that the return of a firing leaves to be done outside the lock.
pub(crate) struct Returned<T> {
    /// The payload, if the timer has ended and no other thread gets it.
    pub(crate) payload: Option<T>,
    /// Whether a caller is waiting for this return.
    pub(crate) awaited: bool,
}

impl<T> Shard<T> {
    /// Sets the next firing of a timer from within the current one. Calls `now` only after a
    /// shutdown has begun.
    pub(crate) fn rearm_lent(
        &mut self,
        id: TimerId,
        number: u64,
        next: Due,
        now: impl FnOnce() -> Tick,
    ) -> Result<(), Refusal> {
        let at = self.wheel.find_own(id).ok_or(Refusal::Gone)?;
        let key = self.record_to_mark(at).ok_or(Refusal::Gone)?;
        if !self.has_firing(key, number) {
            return Err(Refusal::Gone);
        }
        let record = &mut self.records[key];
        let State::Lent { mut ending, next: before } = record.state else {
            return Err(record.state.obstacle());
        };
        let is_closed = self.phase == Phase::Closed;
        if is_closed && ending.is_none() && record.is_last() {
            // As the shutdown will mark it, which returns other timers.
            ending = Some((CloseReason::ShutDown, now()));
        }
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
        let deadline = next.within(record.timer.tolerance, self.tick, self.wheel.geometry());
        // A timer that was to fire again ends as it was marked, and not as completed.
        let is_set = refusal.is_ok().then_some(deadline).or(before);
        let due = is_set.unwrap_or_else(|| self.wheel.deadline_of(at));
        record.state = State::Lent { ending, next: Some(due) };
        refusal?;
        record.requested = next.requested;
        Ok(())
    }

    /// Takes back a lent firing at `now`, and sets the next one. Returns the payload with
    /// the reason if the timer cannot fire again.
    pub(crate) fn rearm_and_return(
        &mut self,
        id: TimerId,
        number: u64,
        payload: T,
        next: Due,
        now: Time,
    ) -> Result<(), (Refusal, T)> {
        let tick = self.tick;
        match self.rearm_lent(id, number, next, || tick.tick_at(now)) {
            Err(reason) => Err((reason, payload)),
            Ok(()) => {
                // Who waits for a return has cancelled the timer, which refuses this.
                self.return_firing(id, Some(payload), Outcome::Returned, now);
                Ok(())
            }
        }
    }

    /// Returns the number of a timer's firings still to come; `None` means for ever.
    pub(crate) fn remaining(&self, id: TimerId) -> Option<u64> {
        let key = self.wheel.find_own(id).and_then(|at| self.record_of(at));
        let record = key.map(|key| &self.records[key]).filter(|it| it.ends_if_cancelled());
        record.map_or(Some(0), |it| it.left.map(|left| left.max(1)))
    }

    /// Whether a timer was cancelled or shut down since a worker took this firing.
    pub(crate) fn is_cancelled(&self, id: TimerId, number: u64) -> bool {
        let Some(at) = self.wheel.find_own(id) else {
            return false;
        };
        let is_closed = self.phase == Phase::Closed;
        match self.record_of(at) {
            Some(key) if self.has_firing(key, number) => {
                is_closed || !matches!(self.records[key].state, State::Lent { ending: None, .. })
            }
            // A task without a record has one firing.
            _ => is_closed && self.tag(at).is_lent(),
        }
    }

    /// Whether a worker holds this firing of a timer.
    fn has_firing(&self, key: usize, number: u64) -> bool {
        let record = &self.records[key];
        let is_lent = matches!(record.state, State::Lent { .. } | State::Abandoned { .. });
        is_lent && record.number == number
    }
}

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
            return Returned { payload, awaited: false };
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
                let reason = CloseReason::ShutDown;
                self.enter(key, State::Ended { reason, tick });
                let payload = self.close_entry(at, key);
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
            (false, Outcome::Kept, None) => {
                let is_closed = self.phase == Phase::Closed;
                let reason = if is_closed { CloseReason::ShutDown } else { CloseReason::Cancelled };
                (reason, self.tick.tick_at(now))
            }
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
        self.lent -= 1;
        if let Some(taken) = taken {
            let nanos = now.since_nanos(taken);
            self.measured.get_or_insert_default().durations.record_nanos(nanos);
        }
    }

    fn rearm(&mut self, at: EntryIndex, key: usize, now: Time) {
        let record = &mut self.records[key];
        let is_set = record.next().is_some();
        let (tolerance, tick, geometry) =
            (record.timer.tolerance, self.tick, self.wheel.geometry());
        let deadline = record.rearm(now, tick.tick_at(now), |requested| {
            let due = Due { requested, deadline: tick.tick_after(requested) };
            due.within(tolerance, tick, geometry)
        });
        // What comes due between two calls of a caller's loop waits for the next call.
        let now = if self.is_driven { Tick(0) } else { self.tick.tick_at(now) };
        let is_due = deadline <= now.max(self.wheel.now());
        if is_due && !is_set {
            self.wheel.set_deadline(at, deadline);
            self.make_ready(at);
            if self.is_driven {
                self.signal().wake_driver = true;
            }
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
        let key = at.and_then(|at| self.record_to_mark(at));
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

// One-shot tasks without a record.
//
// While a worker runs such a task, its entry stays, without a payload and on no list,
// and its tag says that it is lent. A call that has to note anything for the worker's
// return gives the entry a record; from then on it is a recorded timer like any other.

impl<T> Shard<T> {
    /// Ends a lent task that has no record, at `now`.
    fn end_task(
        &mut self,
        at: EntryIndex,
        payload: Option<T>,
        outcome: Outcome,
        now: Time,
    ) -> Returned<T> {
        let taken = self.taken(at);
        self.note_return(taken, now);
        self.ledger.ended(match outcome {
            Outcome::Panicked => CloseReason::Failed,
            Outcome::Returned | Outcome::Kept => CloseReason::Completed,
        });
        self.credit.put();
        // The body has no payload.
        self.wheel.remove(at);
        Returned { payload, awaited: false }
    }

    /// Returns the record of a timer. A task that was lent without a record gets one.
    pub(super) fn record_to_mark(&mut self, at: EntryIndex) -> Option<usize> {
        if self.tag(at).is_lent() { Some(self.record_lent(at)) } else { self.record_of(at) }
    }

    /// Returns when a worker took a lent task that has no record, if takes are measured.
    fn taken(&self, at: EntryIndex) -> Option<Time> {
        assert!(self.tag(at).is_lent(), "only what was lent comes back");
        // SAFETY: the tag says that the body is the time of the take.
        unsafe { self.wheel.entries.payload(at).as_taken() }
    }

    #[cold]
    fn record_lent(&mut self, at: EntryIndex) -> usize {
        // The firing, which its worker has, says for when it was requested.
        let timer = Timer::at(Time::START, None).into_task(|none| none);
        let mut record = TimerRecord::new(timer, Time::START, None);
        record.deliver();
        record.taken = self.taken(at);
        record.state = State::LENT;
        let key = self.records.insert(record);
        *self.wheel.entries.payload_mut(at) = Body::record(key);
        self.wheel.set_tag(at, Tag::recorded());
        key
    }
}
