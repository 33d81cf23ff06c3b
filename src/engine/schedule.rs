//! Timers before they expire: scheduling, creating and starting, moving, replacing.

use std::time::{Duration, Instant};

use crate::engine::{Core, Engine, Held, SharedCore};
use crate::id::TimerId;
use crate::shard::{Due, Shard};
use crate::sync::{Arc, LockGuard};
use crate::tick::Tick;
use crate::timeline::{Time, When};
use crate::timer::{PlainTimer, Refusal, Refused, Timer};
use crate::wheel::Tag;

/// Whether a timer was postponed. `No` leaves every other change to the holder of the lock.
enum Postponed<'a, T> {
    Yes,
    No(LockGuard<'a, Shard<T>>),
    Gone,
}

impl<T> Engine<T> {
    /// Schedules a timer, and returns its id. The id is a plain value: dropping it
    /// cancels nothing.
    ///
    /// Any thread may call this, even within a task. The timer never fires early:
    /// a delay counts from a reading of the clock, and the deadline is rounded up to a tick.
    ///
    /// # Errors
    /// Returns the timer unchanged, with a [`Refusal`](crate::Refusal).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let id = engine.schedule(Timer::after(Duration::from_secs(5), 17))?;
    /// assert!(engine.deadline(id).is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline(always)]
    pub fn schedule(&self, timer: Timer<T>) -> Result<TimerId, Refused<Timer<T>>> {
        if timer.is_plain(self.core.plain_queues) {
            self.core.schedule_plain(timer.into_plain())
        } else {
            self.core.schedule_recorded(timer)
        }
    }

    /// Creates a timer that is started later, or never. It can be cancelled by
    /// its id and by its name. It counts against [`Builder::max_timers`](crate::Builder::max_timers) from
    /// now on, and enters the ledger when it is started. Its payload can
    /// [contain its id](crate::guide#put-an-id-into-its-payload).
    ///
    /// # Errors
    /// Fails as [`schedule`](Engine::schedule) does.
    pub fn create(&self, timer: Timer<T>) -> Result<Unstarted<T>, Refused<Timer<T>>> {
        if let Err(reason) = self.core.validate(&timer) {
            return Err(Refused::new(reason, timer));
        }
        let hash = self.core.hash_of(&timer);
        let created = self.core.hold_for(hash).shard.create(timer, hash);
        match created {
            Ok(id) => Ok(Unstarted::new(self.shared(), id)),
            Err((reason, timer)) => Err(Refused::new(reason, timer)),
        }
    }

    /// Moves a live timer to another deadline: a [`Duration`] from now, a
    /// [`Time`], or an [`Instant`]. A repeating timer continues from there. An
    /// expired timer that no worker has taken waits again. Postponing only
    /// stores the deadline.
    ///
    /// Among the timers of its new tick, a rescheduled timer keeps the
    /// place of its first scheduling.
    ///
    /// # Reusable timers
    /// A timer at [`Time::MAX`] never fires: it is disarmed. It stays live, with its id
    /// and its payload, until it is cancelled or the engine is shut down. A connection
    /// therefore needs one timer, which it arms for each request and disarms after it.
    /// Disarming only stores to the timer, and so does arming it again for
    /// a deadline that is not before its last one. The ticker may wake twice per delay for
    /// a timer that is disarmed by then. A timer is [paused](crate::guide#pause-a-timer)
    /// in the same manner.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use tickwheel::{Engine, Time, Timer};
    ///
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// let request = engine.schedule(Timer::at(Time::MAX, "connection 7"))?;
    /// for _ in 0..3 {
    ///     engine.reschedule(request, Duration::from_secs(30))?; // arm
    ///     clock.advance(Duration::from_secs(20));
    ///     engine.reschedule(request, Time::MAX)?; // disarm
    /// }
    /// assert!(engine.queue(0).try_recv().is_err());
    /// engine.reschedule(request, Duration::from_secs(30))?;
    /// clock.advance(Duration::from_secs(30));
    /// assert_eq!(engine.queue(0).recv()?.into_payload(), "connection 7");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Refusal`] if the timer is not live, or a worker holds a firing
    /// of it; the holder can [re-arm](crate::Expired::rearm) the timer. Also if `when`
    /// is an instant and the engine does not follow the monotonic clock
    /// ([`Refusal::InstantOnOtherClock`]).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let keep_alive = engine.schedule(Timer::after(Duration::from_secs(30), "session"))?;
    /// engine.reschedule(keep_alive, Duration::from_secs(30))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "arm")]
    #[doc(alias = "disarm")]
    #[doc(alias = "pause")]
    #[doc(alias = "reset")]
    #[doc(alias = "resume")]
    #[inline(always)]
    pub fn reschedule(&self, id: TimerId, when: impl Into<When>) -> Result<(), Refusal> {
        let resolved = self.core.resolve(when.into());
        let (due, _) = resolved.ok_or(Refusal::InstantOnOtherClock)?;
        match self.core.postpone(id, due.deadline) {
            Postponed::Yes => Ok(()),
            Postponed::No(shard) => self.core.reschedule_any(shard, id, due),
            Postponed::Gone => Err(Refusal::Gone),
        }
    }

    /// Replaces a timer's payload and returns the old one.
    ///
    /// # Errors
    /// Returns `payload`, with the reason, if the timer is not live or a worker
    /// holds a firing of it.
    pub fn replace(&self, id: TimerId, payload: T) -> Result<T, Refused<T>> {
        let replaced = match self.core.cell_of(id) {
            Some(cell) => cell.lock().replace(id, payload),
            None => Err((Refusal::Gone, payload)),
        };
        replaced.map_err(|(reason, payload)| Refused::new(reason, payload))
    }
}

impl<T> Core<T> {
    #[inline(always)]
    fn schedule_plain(&self, plain: PlainTimer<T>) -> Result<TimerId, Refused<Timer<T>>> {
        let Some((due, now)) = self.resolve(plain.requested) else {
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
        let (id, earliest_new) = shard.schedule_plain(plain.payload, now, due.deadline, tag);
        self.release_quiet(held, earliest_new);
        Ok(id)
    }

    #[cold]
    fn schedule_recorded(&self, timer: Timer<T>) -> Result<TimerId, Refused<Timer<T>>> {
        let due = match self.validate(&timer) {
            Ok(due) => due,
            Err(reason) => return Err(Refused::new(reason, timer)),
        };
        let hash = self.hash_of(&timer);
        let mut held = self.hold_for(hash);
        let scheduled = held.shard.schedule_recorded(timer, due, hash);
        self.release(held);
        scheduled.map_err(|(reason, timer)| Refused::new(reason, timer))
    }

    fn hash_of(&self, timer: &Timer<T>) -> Option<u64> {
        timer.name.as_ref().map(|name| self.hash(name))
    }

    /// Checks a timer's settings and computes when it is due.
    fn validate(&self, timer: &Timer<T>) -> Result<Due, Refusal> {
        timer.validate(self.queues(), self.tick)?;
        let resolved = self.resolve(timer.requested);
        let (due, _) = resolved.ok_or(Refusal::InstantOnOtherClock)?;
        Ok(due)
    }

    fn start(&self, id: TimerId) -> Result<TimerId, Refused<Timer<T>>> {
        let cell = self.cell_of(id).expect("an unstarted timer knows its engine");
        let due = |when| self.resolve(when).expect("an engine keeps its clock").0;
        let mut held = self.hold(cell);
        let now = || self.tick_now();
        let started = held.shard.start(id, due, now);
        self.release(held);
        match started {
            Err(Some(timer)) => Err(Refused::new(Refusal::ShutDown, timer)),
            // Without a payload there is nothing to refuse: the timer was cancelled.
            Ok(()) | Err(None) => Ok(id),
        }
    }

    fn dismiss(&self, id: TimerId) -> Option<T> {
        let mut held = self.hold(self.cell_of(id)?);
        let dismissed = held.shard.dismiss(id);
        self.release(held);
        Some(dismissed?.payload)
    }

    /// Postpones a plain timer. Takes so little that it saves hardly any registers, because
    /// the rest of a reschedule is left to another call, under the same hold of the lock.
    #[inline(never)]
    fn postpone(&self, id: TimerId, deadline: Tick) -> Postponed<'_, T> {
        let Some(cell) = self.cell_of(id) else {
            return Postponed::Gone;
        };
        let Some(mut shard) = cell.shard.try_lock() else {
            return Postponed::No(cell.lock());
        };
        // A postponement does not link a timer or concern a waiter.
        if shard.postpone_plain(id, deadline) { Postponed::Yes } else { Postponed::No(shard) }
    }

    /// Reschedules any timer of a shard that is locked.
    #[inline(never)]
    fn reschedule_any(
        &self,
        shard: LockGuard<'_, Shard<T>>,
        id: TimerId,
        due: Due,
    ) -> Result<(), Refusal> {
        let cell = self.cell_of(id).ok_or(Refusal::Gone)?;
        let mut held = Held { cell, shard };
        let moved = held.shard.reschedule(id, due);
        self.release(held);
        moved
    }

    /// Computes when a timer is due. Reads the clock only for a delay, which counts from
    /// now; if so, also returns the current tick. Returns `None` for an instant that the
    /// clock does not measure.
    #[inline(always)]
    pub(super) fn resolve(&self, when: When) -> Option<(Due, Option<Tick>)> {
        match when {
            When::At(time) => Some((self.due_at(time), None)),
            When::AtInstant(instant) => Some((self.due_at_instant(instant)?, None)),
            When::After(delay) => {
                let now = self.clock.now();
                let (requested, begun) = (now + delay, self.tick.tick_at(now));
                let deadline = match delay {
                    // Due at once, in the current tick.
                    Duration::ZERO => begun,
                    _ => self.tick.tick_after(requested),
                };
                let due = Due { requested, deadline };
                Some((due, Some(begun)))
            }
        }
    }

    #[inline]
    fn due_at(&self, time: Time) -> Due {
        Due { requested: time, deadline: self.tick.tick_after(time) }
    }

    #[cold]
    fn due_at_instant(&self, instant: Instant) -> Option<Due> {
        Some(self.due_at(self.clock.time_of(instant)?))
    }
}

/// A timer that was created but has not been started, from
/// [`Engine::create`](crate::Engine::create).
///
/// It already has its id and its name, and can be cancelled by either. If it
/// was cancelled, it ends as soon as it is started. Dropping it dismisses it.
///
/// It is not live before it is started. Until then,
/// [`deadline`](crate::Engine::deadline) returns `None`, and
/// [`reschedule`](crate::Engine::reschedule) and other changes return
/// [`Refusal::Unstarted`](crate::Refusal::Unstarted). To start it with
/// another deadline or payload, dismiss it and create another.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Timer};
///
/// let engine = Engine::builder().start()?;
/// let timer = Timer::after(Duration::from_secs(1), "lease").named("leases");
/// let unstarted = engine.create(timer)?;
/// assert_eq!(engine.ledger().accepted, 0);
/// let id = unstarted.start()?;
/// assert_eq!(engine.cancel(id).into_payload(), Some("lease"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping an unstarted timer dismisses it"]
pub struct Unstarted<T> {
    core: Arc<SharedCore<T>>,
    id: TimerId,
    /// Whether the timer is neither started nor dismissed.
    owned: bool,
}

impl<T> Unstarted<T> {
    pub(crate) fn new(core: Arc<SharedCore<T>>, id: TimerId) -> Unstarted<T> {
        Unstarted { core, id, owned: true }
    }

    /// Returns the timer's id.
    #[must_use]
    pub fn id(&self) -> TimerId {
        self.id
    }

    /// Starts the timer; its delay counts from this call. A cancelled timer
    /// ends at once.
    ///
    /// # Errors
    /// Returns the timer if the engine was shut down meanwhile. If a cancel before the shutdown
    /// has returned the payload, there is no timer to return: the call then succeeds, but
    /// the timer isn't counted anywhere.
    pub fn start(mut self) -> Result<TimerId, Refused<Timer<T>>> {
        self.owned = false;
        self.core.start(self.id)
    }

    /// Gives the timer up. Returns its payload, or `None` if a cancel has returned that.
    pub fn dismiss(mut self) -> Option<T> {
        self.owned = false;
        self.core.dismiss(self.id)
    }
}

impl<T> Drop for Unstarted<T> {
    fn drop(&mut self) {
        if self.owned {
            drop(self.core.dismiss(self.id));
        }
    }
}

debug!(it: [T] Unstarted<T> => "Unstarted" { id: it.id });
