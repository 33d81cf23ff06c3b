//! Timers before they expire: scheduling, creating and starting, moving, replacing.

use std::time::{Duration, Instant};

use crate::hub::names::Naming;
use crate::hub::{Core, Held};
use crate::id::TimerId;
use crate::shard::body::Tag;
use crate::shard::{Next, Shard};
use crate::sync::LockGuard;
use crate::tick::Tick;
use crate::timeline::{Time, When};
use crate::timer::{LiveTimer, PlainTimer, Refusal, Refused, Timer};

/// The time at which a timer is due.
pub(super) struct Due {
    /// The current tick, if the clock was read.
    now: Option<Tick>,
    /// The exact time.
    requested: Time,
    /// The tick that it is rounded up to.
    deadline: Tick,
}

impl Due {
    pub(super) fn next(self) -> Next {
        Next {
            requested: self.requested,
            deadline: self.deadline,
        }
    }
}

/// Whether a timer was postponed. `No` leaves every other change to the holder of the lock.
enum Postponed<'a, T> {
    Yes,
    No(LockGuard<'a, Shard<T>>),
    Gone,
}

impl<T> Core<T> {
    #[inline(always)]
    pub(crate) fn schedule(&self, timer: Timer<T>) -> Result<TimerId, Refused<Timer<T>>> {
        match timer.is_plain(self.plain_queues) {
            true => self.schedule_plain(timer.into_plain()),
            false => self.schedule_recorded(timer),
        }
    }

    #[inline(always)]
    fn schedule_plain(&self, plain: PlainTimer<T>) -> Result<TimerId, Refused<Timer<T>>> {
        let Some(due) = self.resolve(plain.requested) else {
            let reason = Refusal::InstantOnOtherClock;
            return Err(Refused::new(reason, plain.into_timer()));
        };
        // Made before the lock is taken: afterwards, the compiler does not know the timer's
        // settings any more, which may have been constants.
        let tag = Tag::one_shot(plain.queue, plain.task);
        let mut held = self.hold_own();
        if let Err(reason) = held.shard.admit() {
            drop(held);
            return Err(Refused::new(reason, plain.into_timer()));
        }
        let shard = &mut held.shard;
        let (id, earliest_new) = shard.schedule_plain(plain.payload, due.now, due.deadline, tag);
        self.release_quiet(held, earliest_new);
        Ok(id)
    }

    #[cold]
    fn schedule_recorded(&self, timer: Timer<T>) -> Result<TimerId, Refused<Timer<T>>> {
        let naming = self.begin_naming(&timer);
        let due = match self.validate(&timer) {
            Ok(due) => due,
            Err(reason) => return Err(Refused::new(reason, timer)),
        };
        let place = naming.as_ref().map(|naming| naming.place);
        let mut held = self.hold_own();
        let scheduled = held
            .shard
            .schedule_recorded(timer, due.requested, due.deadline, place);
        self.release(held);
        end_naming(naming, scheduled)
    }

    /// Creates a timer that is started later.
    pub(crate) fn create(&self, timer: Timer<T>) -> Result<TimerId, Refused<Timer<T>>> {
        if let Err(reason) = self.validate(&timer) {
            return Err(Refused::new(reason, timer));
        }
        let naming = self.begin_naming(&timer);
        let place = naming.as_ref().map(|naming| naming.place);
        let created = self.hold_own().shard.create(timer, place);
        end_naming(naming, created)
    }

    /// If a new timer has a name, locks the name's bucket until the timer has been
    /// entered there. Otherwise, the timer could end before.
    fn begin_naming(&self, timer: &Timer<T>) -> Option<Naming<'_>> {
        timer.name.as_ref().map(|name| self.names.begin(name))
    }

    /// Checks a timer's settings and computes when it is due.
    fn validate(&self, timer: &Timer<T>) -> Result<Due, Refusal> {
        timer.validate(self.queues(), self.tick)?;
        let due = self.resolve(timer.requested);
        due.ok_or(Refusal::InstantOnOtherClock)
    }

    pub(crate) fn start(&self, id: TimerId) -> Result<TimerId, Refused<Timer<T>>> {
        let cell = self
            .cell_of(id)
            .expect("an unstarted timer knows its engine");
        let first = cell.lock().requested_of(id).unwrap_or(When::At(Time::MAX));
        let due = self.resolve(first).expect("an engine keeps its clock");
        let mut held = self.hold(cell);
        let now = || self.tick_now();
        let started = held.shard.start(id, due.requested, due.deadline, now);
        self.release(held);
        match started {
            Err(Some(timer)) => Err(Refused::new(Refusal::ShutDown, timer)),
            // Without a payload there is nothing to refuse: the timer was cancelled.
            Ok(()) | Err(None) => Ok(id),
        }
    }

    pub(crate) fn dismiss(&self, id: TimerId) -> Option<T> {
        let mut held = self.hold(self.cell_of(id)?);
        let dismissed = held.shard.dismiss(id);
        self.release(held);
        Some(dismissed?.payload)
    }

    /// Resolves the time where the call is, because the compiler knows its kind there.
    #[inline(always)]
    pub(crate) fn reschedule(&self, id: TimerId, when: When) -> Result<(), Refusal> {
        let due = self.resolve(when).ok_or(Refusal::InstantOnOtherClock)?;
        match self.postpone(id, due.deadline) {
            Postponed::Yes => Ok(()),
            Postponed::No(shard) => self.reschedule_any(shard, id, due.requested, due.deadline),
            Postponed::Gone => Err(Refusal::Gone),
        }
    }

    /// Postpones a plain timer. Takes so little that it saves hardly any registers, because
    /// the rest of a reschedule is left to another call, under the same hold of the lock.
    #[inline(never)]
    fn postpone(&self, id: TimerId, deadline: Tick) -> Postponed<'_, T> {
        let Some(cell) = self.cell_of(id) else {
            return Postponed::Gone;
        };
        let Some(mut shard) = cell.try_lock() else {
            return Postponed::No(cell.lock());
        };
        // A postponement does not link a timer or concern a waiter.
        match shard.postpone_plain(id, deadline) {
            true => Postponed::Yes,
            false => Postponed::No(shard),
        }
    }

    /// Reschedules any timer of a shard that is locked.
    #[inline(never)]
    fn reschedule_any(
        &self,
        shard: LockGuard<'_, Shard<T>>,
        id: TimerId,
        requested: Time,
        deadline: Tick,
    ) -> Result<(), Refusal> {
        let cell = self.cell_of(id).ok_or(Refusal::Gone)?;
        let mut held = Held { cell, shard };
        let moved = held.shard.reschedule(id, requested, deadline);
        self.release(held);
        moved
    }

    pub(crate) fn replace(&self, id: TimerId, payload: T) -> Result<T, Refused<T>> {
        let replaced = match self.cell_of(id) {
            Some(cell) => cell.lock().replace(id, payload),
            None => Err((Refusal::Gone, payload)),
        };
        replaced.map_err(|(reason, payload)| Refused::new(reason, payload))
    }

    pub(crate) fn has_name(&self, id: TimerId, name: &str) -> bool {
        let cell = self.cell_of(id);
        cell.is_some_and(|cell| cell.lock().has_name(id, name))
    }

    pub(crate) fn find(&self, id: TimerId) -> Option<LiveTimer> {
        self.cell_of(id)?.lock().find_one(id)
    }

    pub(crate) fn deadline(&self, id: TimerId) -> Option<Tick> {
        self.cell_of(id)?.lock().deadline(id)
    }

    /// Computes when a timer is due. Reads the clock only for a delay, which counts from
    /// now. Returns `None` for an instant that the clock does not measure.
    #[inline(always)]
    pub(super) fn resolve(&self, when: When) -> Option<Due> {
        match when {
            When::At(time) => Some(self.due_at(time)),
            When::AtInstant(instant) => self.due_at_instant(instant),
            When::After(delay) => {
                let now = self.clock.now();
                let (requested, begun) = (now + delay, self.tick.tick_at(now));
                Some(Due {
                    now: Some(begun),
                    requested,
                    deadline: match delay {
                        // Due at once, in the current tick.
                        Duration::ZERO => begun,
                        _ => self.tick.tick_after(requested),
                    },
                })
            }
        }
    }

    #[inline]
    fn due_at(&self, time: Time) -> Due {
        Due {
            now: None,
            requested: time,
            deadline: self.tick.tick_after(time),
        }
    }

    #[cold]
    fn due_at_instant(&self, instant: Instant) -> Option<Due> {
        Some(self.due_at(self.clock.time_of(instant)?))
    }
}

/// Enters a timer under its name, unless it was refused.
#[inline(always)]
fn end_naming<T>(
    naming: Option<Naming<'_>>,
    made: Result<TimerId, (Refusal, Timer<T>)>,
) -> Result<TimerId, Refused<Timer<T>>> {
    let id = made.map_err(|(reason, timer)| Refused::new(reason, timer))?;
    if let Some(naming) = naming {
        naming.end(id);
    }
    Ok(id)
}
