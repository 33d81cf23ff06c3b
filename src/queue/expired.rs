//! The firing that a worker holds, and its return to the engine.

use core::fmt;
use core::time::Duration;
use std::thread::{self, ThreadId};

use crate::clock::Clock;
use crate::hub::{Doorbell, SharedCore};
use crate::id::TimerId;
use crate::observe;
use crate::shard::{Claimed, Firing, Outcome};
use crate::sync::Arc;
use crate::tick::Tick;
use crate::time::Time;

/// An expired timer that a worker holds.
///
/// A one-shot ends when it is taken, and its payload then belongs to the worker.
/// A repeating timer lends its payload. Dropping the `Expired` returns the
/// payload and sets up the next firing; thus firings of one timer never overlap.
pub struct Expired<T> {
    firing: Firing,
    deadline: Time,
    queue: usize,
    clock: Clock,
    /// Present until the payload is taken out or returned.
    payload: Option<T>,
    obligation: Option<Obligation<T>>,
}

/// The payload and the permit that a worker may have to return after a firing.
struct Obligation<T> {
    core: Arc<SharedCore<T>>,
    payload: bool,
    permit: bool,
    /// The thread that took the firing, if a panic was already unwinding
    /// it. That panic does not count as a failure of this firing.
    unwinding: Option<ThreadId>,
}

impl<T> Obligation<T> {
    /// Returns whether the calling thread is unwinding from a panic that
    /// began after the firing was taken.
    fn has_failed(&self) -> bool {
        thread::panicking() && self.unwinding != Some(thread::current().id())
    }
}

/// A permit that is returned to its queue even if dropping a payload panics.
struct Permit<'a>(&'a Doorbell);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.return_permit();
    }
}

impl<T> Expired<T> {
    #[inline]
    pub(crate) fn new(claimed: Claimed<T>, queue: usize, core: &Arc<SharedCore<T>>) -> Expired<T> {
        let (payload, permit) = (claimed.lent, core.doorbell(queue).is_bounded());
        let obligation = (payload || permit).then(|| Obligation {
            core: Arc::clone(core),
            payload,
            permit,
            unwinding: thread::panicking().then(|| thread::current().id()),
        });
        Expired {
            deadline: core.tick.start_of(claimed.firing.tick),
            firing: claimed.firing,
            queue,
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

    /// Returns the time at which this firing was due: the beginning of its
    /// [`tick`](Expired::tick).
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.deadline
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

    /// Returns the number of the queue that the timer was taken from.
    #[must_use]
    pub fn queue(&self) -> usize {
        self.queue
    }

    pub(crate) fn firing(&self) -> &Firing {
        &self.firing
    }

    /// Returns the time that has passed since the deadline. Reads the
    /// clock. With a [tolerance](crate::Timer::tolerance), and for
    /// repeating timers, counts from the exact time that was requested.
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

    /// Returns the payload to the engine after a caught panic.
    pub(crate) fn fail(mut self) {
        let payload = self.payload.take();
        self.finish(payload, Outcome::Panicked);
    }

    #[inline]
    fn finish(&mut self, payload: Option<T>, outcome: Outcome) {
        let Some(obligation) = self.obligation.take() else {
            return;
        };
        let doorbell = obligation.core.doorbell(self.queue);
        let _permit = obligation.permit.then(|| Permit(doorbell));
        if obligation.payload {
            obligation
                .core
                .return_firing(self.firing.id, payload, outcome);
        }
    }
}

impl<T> Drop for Expired<T> {
    #[inline]
    fn drop(&mut self) {
        let Some(obligation) = &self.obligation else {
            return;
        };
        let outcome = match obligation.has_failed() {
            true => Outcome::Panicked,
            false => Outcome::Returned,
        };
        if outcome == Outcome::Panicked {
            observe::lent_to_a_panic(self.firing.id);
        }
        let payload = self.payload.take();
        self.finish(payload, outcome);
    }
}

impl<T> fmt::Debug for Expired<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expired")
            .field("id", &self.firing.id)
            .field("tick", &self.firing.tick)
            .field("number", &self.firing.number)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
