//! What a worker gets: a timer that has expired.

use core::fmt;
use core::time::Duration;
use std::thread::{self, ThreadId};

use crate::clock::Clock;
use crate::id::TimerId;
use crate::observe;
use crate::shard::{Claimed, Firing, Outcome};
use crate::shared::Doorbell;
use crate::shared::SharedCore;
use crate::sync::Arc;
use crate::tick::Tick;
use crate::time::Time;

/// An expired timer in a worker's hands.
///
/// A one-shot has ended with this; its payload is the worker's. A repeating
/// timer lends its payload: when the `Expired` is dropped the payload goes
/// back and the next firing is set up, so that firings of one timer never
/// overlap.
pub struct Expired<T> {
    firing: Firing,
    queue: usize,
    clock: Clock,
    /// Present until the payload is taken or given back.
    payload: Option<T>,
    owed: Option<Owed<T>>,
}

/// What is to be done when the worker lets go.
struct Owed<T> {
    core: Arc<SharedCore<T>>,
    payload: bool,
    permit: bool,
    /// The thread that took it, if a panic was unwinding that already: it is no
    /// failure of this firing.
    unwinding: Option<ThreadId>,
}

impl<T> Owed<T> {
    /// Whether the calling thread unwinds from a panic that began after the
    /// firing was taken.
    fn has_failed(&self) -> bool {
        thread::panicking() && self.unwinding != Some(thread::current().id())
    }
}

/// A permit that goes back to its queue even where dropping a payload panics.
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
        let owed = (payload || permit).then(|| Owed {
            core: Arc::clone(core),
            payload,
            permit,
            unwinding: thread::panicking().then(|| thread::current().id()),
        });
        Expired {
            firing: claimed.firing,
            queue,
            clock: core.clock.clone(),
            payload: Some(claimed.payload),
            owed,
        }
    }

    /// The timer.
    #[must_use]
    pub fn id(&self) -> TimerId {
        self.firing.id
    }

    /// When this firing was due: the beginning of its [`tick`](Expired::tick).
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.firing.deadline
    }

    /// The tick at which this firing was due. A firing that is caught up late
    /// has its own due tick, not the one of its delivery.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.firing.tick
    }

    /// Which due tick of the timer this is, counted from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.firing.number
    }

    /// The queue that it was taken from.
    #[must_use]
    pub fn queue(&self) -> usize {
        self.queue
    }

    pub(crate) fn firing(&self) -> &Firing {
        &self.firing
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How long after its deadline this firing is, at the moment of the call.
    /// Reads the clock. With a [tolerance](crate::Timer::tolerance), and for
    /// repeating timers, it counts from the exact time that was asked for.
    #[must_use]
    pub fn lateness(&self) -> Duration {
        self.clock.now() - self.firing.requested
    }

    /// The payload.
    #[must_use]
    pub fn payload(&self) -> &T {
        self.payload.as_ref().expect("taken only by value")
    }

    /// The payload, to be changed in place: a repeating timer's next firing
    /// carries the change.
    #[must_use]
    pub fn payload_mut(&mut self) -> &mut T {
        self.payload.as_mut().expect("taken only by value")
    }

    /// The payload for good. A repeating timer that would fire again ends with
    /// this, as if it had been cancelled.
    #[must_use]
    #[inline]
    pub fn into_payload(mut self) -> T {
        let payload = self.payload.take();
        self.let_go(None, Outcome::Kept);
        payload.expect("taken only by value")
    }

    /// Gives the payload back after a panic that was caught.
    pub(crate) fn fail(mut self) {
        let payload = self.payload.take();
        self.let_go(payload, Outcome::Panicked);
    }

    #[inline]
    fn let_go(&mut self, payload: Option<T>, outcome: Outcome) {
        let Some(owed) = self.owed.take() else { return };
        let doorbell = owed.core.doorbell(self.queue);
        let _permit = owed.permit.then(|| Permit(doorbell));
        if owed.payload {
            owed.core.return_firing(self.firing.id, payload, outcome);
        }
    }
}

impl<T> Drop for Expired<T> {
    #[inline]
    fn drop(&mut self) {
        let Some(owed) = &self.owed else { return };
        let outcome = match owed.has_failed() {
            true => Outcome::Panicked,
            false => Outcome::Returned,
        };
        if outcome == Outcome::Panicked {
            observe::lent_to_a_panic(self.firing.id);
        }
        let payload = self.payload.take();
        self.let_go(payload, outcome);
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
