//! The values that describe a firing on its way to a worker and back.

// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc;

use crate::id::TimerId;
use crate::tick::Tick;
use crate::timeline::Time;
use crate::timer::CloseReason;

/// One firing of a timer. It is built when a worker takes the timer.
#[derive(Clone)]
pub(crate) struct Firing {
    pub(crate) id: TimerId,
    /// The tick at which the timer was due.
    pub(crate) tick: Tick,
    /// The beginning of the tick.
    pub(crate) deadline: Time,
    /// The exact time that the tick was rounded up from.
    pub(crate) requested: Time,
    /// The number of this due tick of the timer, counted from 1.
    pub(crate) number: u64,
    /// The queue. It is small enough to fit beside the outcome.
    pub(crate) queue: u32,
    /// `Completed`, unless a task runs because its timer ended otherwise.
    pub(crate) outcome: CloseReason,
    /// Whether the firing must be returned, with the payload unless that was consumed.
    pub(crate) lent: bool,
    /// In one word, because a firing of a plain timer is moved with room for it.
    pub(crate) name: Option<Box<Arc<str>>>,
}

/// A firing that a worker has taken.
pub(crate) struct Claimed<T> {
    pub(crate) firing: Firing,
    pub(crate) payload: T,
}

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
