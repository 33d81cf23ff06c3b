//! The firing that a worker holds, and its return to the engine.

use core::time::Duration;
use std::thread::{self, ThreadId};

use crate::clock::Clock;
use crate::engine::SharedCore;
use crate::id::TimerId;
use crate::observe;
use crate::shard::{Claimed, Delivery, Outcome};
use crate::sync::Arc;
use crate::tick::Tick;
use crate::timeline::{Time, When};
use crate::timer::{Refusal, Refused};

/// An expired timer that a worker holds.
///
/// A one-shot ends when it is taken, and its payload then belongs to the worker.
/// A repeating timer lends its payload. Dropping the `Expired` returns the
/// payload and sets up the next firing; thus firings of one timer never overlap.
/// A [`rearmable`](crate::Timer::rearmable) one-shot lends its payload too. It ends when
/// the `Expired` is dropped, unless [`rearm`](Expired::rearm) sets its next deadline.
pub struct Expired<T> {
    firing: Delivery,
    clock: Clock,
    /// Present until the payload is taken out or returned.
    payload: Option<T>,
    obligation: Option<Obligation<T>>,
}

// Up to this size, a copy needs no call.
#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Expired<u64>>() <= 128);

/// To whom a worker returns a lent payload.
struct Obligation<T> {
    core: Arc<SharedCore<T>>,
    /// The thread that took the firing, if a panic was already unwinding
    /// it. That panic does not count as a failure of this firing.
    unwinding: Option<ThreadId>,
}

impl<T> Obligation<T> {
    fn to(core: &Arc<SharedCore<T>>) -> Obligation<T> {
        Obligation {
            core: Arc::clone(core),
            unwinding: thread::panicking().then(|| thread::current().id()),
        }
    }

    /// Returns whether the calling thread is unwinding from a panic that began after the firing was
    /// taken. If it was taken during another panic of the same thread, that is not known.
    fn has_failed(&self) -> bool {
        thread::panicking() && self.unwinding != Some(thread::current().id())
    }
}

impl<T> Expired<T> {
    #[inline(always)]
    pub(crate) fn new(claimed: Claimed<T>, core: &Arc<SharedCore<T>>) -> Expired<T> {
        let obligation = claimed.firing.lent.then(|| Obligation::to(core));
        Expired {
            firing: claimed.firing,
            clock: core.clock.clone(),
            payload: Some(claimed.payload),
            obligation,
        }
    }

    /// Returns the timer's id.
    #[must_use]
    pub fn id(&self) -> TimerId {
        self.firing.id
    }

    /// Returns the timer's name, if it has one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// engine.schedule(Timer::after(Duration::from_secs(1), 7).named("lease"))?;
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(engine.queue(0).recv()?.name(), Some("lease"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.firing.name.as_deref().map(|name| &**name)
    }

    /// Returns the time at which this firing was due: the beginning of its
    /// [`tick`](Expired::tick).
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.firing.deadline
    }

    /// Returns the tick at which this firing was due. For a firing that is caught
    /// up late, this is not the tick of its delivery.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.firing.tick
    }

    /// Returns the number of this due tick in the timer's series, counted from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.firing.number
    }

    /// Returns the number of firings that follow this one, or `None` if the timer
    /// fires for ever. Returns zero once the timer was cancelled or shut down. For a timer
    /// that lends its payload, takes the shard's lock.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.lender().map_or(Some(0), |core| core.remaining(self.firing.id))
    }

    /// Returns the number of the queue that the timer was taken from.
    #[must_use]
    pub fn queue(&self) -> usize {
        self.firing.queue as usize
    }

    /// Returns the time that has passed since the deadline. Reads the clock. With a
    /// [tolerance](crate::Timer::tolerance), and for repeating timers, counts from the
    /// exact time that was requested.
    #[must_use]
    pub fn lateness(&self) -> Duration {
        self.clock.now() - self.firing.requested
    }

    /// Returns the payload.
    #[must_use]
    pub fn payload(&self) -> &T {
        self.payload.as_ref().expect("taken only by value")
    }

    /// Returns the payload, to be changed in place. The next firing of a
    /// repeating timer carries the changes.
    #[must_use]
    pub fn payload_mut(&mut self) -> &mut T {
        self.payload.as_mut().expect("taken only by value")
    }

    /// Takes the payload out for good. A repeating timer that would fire again ends
    /// as if it had been cancelled.
    #[must_use]
    #[inline]
    pub fn into_payload(mut self) -> T {
        let payload = self.payload.take();
        self.finish(None, Outcome::Kept);
        payload.expect("taken only by value")
    }

    /// Returns the payload to the engine, and sets the next deadline of the timer: a
    /// [`Duration`] from now, a [`Time`], or an `Instant`. The timer keeps its id, name,
    /// queue and settings, and the next firing has the next [`number`](Expired::number).
    ///
    /// A one-shot must be [`rearmable`](crate::Timer::rearmable). A repeating timer
    /// continues from its new deadline, as after
    /// [`Engine::reschedule`](crate::Engine::reschedule). A deadline that has passed is
    /// due at once, behind all expired timers.
    ///
    /// # Errors
    /// Returns this firing, with the reason:
    /// [`Refusal::Cancelled`] or [`Refusal::ShutDown`] if that happened since the
    /// firing was taken, [`Refusal::UsedUp`] if the timer has fired as often as
    /// [`times`](crate::Timer::times) says, [`Refusal::NotRearmable`] for a one-shot
    /// that is not rearmable, and [`Refusal::InstantOnOtherClock`] if the engine's
    /// clock does not measure `when`. A timer that was cancelled or shut down then ends
    /// for that reason, and not as completed, unless it is used up.
    ///
    /// # Cost
    /// Takes the lock of the timer's shard once, as dropping the firing does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Cancel, Engine, Refusal, Timer};
    ///
    /// // A lease that is renewed at a third of its duration, under one id.
    /// let second = Duration::from_secs(1);
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// let renewal = Timer::after(10 * second, "lease 7").rearmable().named("leases");
    /// let id = engine.schedule(renewal)?;
    /// clock.advance(10 * second);
    /// let due = engine.queue(0).recv()?;
    /// due.rearm(5 * second)?;
    /// clock.advance(5 * second);
    /// let due = engine.queue(0).recv()?;
    /// assert_eq!((due.id(), due.number()), (id, 2));
    ///
    /// // A cancel reaches the timer while a worker holds it.
    /// assert_eq!(engine.cancel_by_name("leases", None), [(id, Cancel::Running)]);
    /// assert!(due.is_cancelled());
    /// let refused = due.rearm(5 * second).unwrap_err();
    /// assert_eq!(refused.reason(), Refusal::Cancelled);
    /// assert_eq!(refused.into_inner().into_payload(), "lease 7");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rearm(mut self, when: impl Into<When>) -> Result<(), Refused<Expired<T>>> {
        match self.try_rearm(when.into()) {
            Ok(()) => Ok(()),
            Err(reason) => Err(Refused::new(reason, self)),
        }
    }

    fn try_rearm(&mut self, when: When) -> Result<(), Refusal> {
        let (id, number) = (self.firing.id, self.firing.number);
        let payload = self.payload.take().expect("taken only by value");
        let rearmed = match self.lender() {
            Some(core) => core.rearm_and_return(id, number, payload, when),
            None => Err((Refusal::NotRearmable, payload)),
        };
        if let Err((reason, payload)) = rearmed {
            self.payload = Some(payload);
            return Err(reason);
        }
        self.obligation = None;
        Ok(())
    }

    /// Returns whether the timer was cancelled or shut down since this firing was taken,
    /// so that it will not fire again. A long task can stop early then.
    ///
    /// Always returns `false` for a one-shot that is not
    /// [`rearmable`](crate::Timer::rearmable): it ended when it was taken, and no
    /// cancel reaches it.
    ///
    /// # Cost
    /// Takes the lock of the timer's shard.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let (id, number) = (self.firing.id, self.firing.number);
        self.lender().is_some_and(|core| core.is_cancelled(id, number))
    }

    /// Returns the engine that has lent the payload.
    fn lender(&self) -> Option<&SharedCore<T>> {
        self.obligation.as_ref().map(|lent| &*lent.core)
    }

    #[inline]
    fn finish(&mut self, payload: Option<T>, outcome: Outcome) {
        if let Some(Obligation { core, .. }) = self.obligation.take() {
            core.return_firing(self.firing.id, payload, outcome);
        }
    }
}

impl<T> Drop for Expired<T> {
    #[inline]
    fn drop(&mut self) {
        let Some(obligation) = &self.obligation else {
            return;
        };
        let outcome = if obligation.has_failed() {
            observe::lent_to_a_panic(obligation.core.subject(), self.firing.id, self.name());
            Outcome::Panicked
        } else {
            Outcome::Returned
        };
        let payload = self.payload.take();
        self.finish(payload, outcome);
    }
}

debug!(it: [T] Expired<T> => "Expired" {
    id: it.id(), tick: it.tick(), number: it.number(), queue: it.queue()
});
