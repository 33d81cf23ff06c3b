//! A firing on its way to a worker and back: values.

use crate::id::TimerId;
use crate::tick::Tick;
use crate::time::Time;
use crate::timer::CloseReason;

/// An expired timer that a worker has taken.
pub(crate) struct Claimed<T> {
    pub(crate) id: TimerId,
    pub(crate) tick: Tick,
    /// When it was asked for, which its tick is rounded up from.
    pub(crate) asked: Time,
    pub(crate) number: u64,
    pub(crate) payload: T,
    /// The timer lives on: the payload wants to be given back.
    pub(crate) lent: bool,
    /// Completed, unless the timer's task is told of another ending.
    pub(crate) outcome: CloseReason,
}

/// How a firing that was lent came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Returned,
    Panicked,
    /// The worker kept the payload, which ends the timer.
    Kept,
}

/// What giving back leaves to do outside the lock.
pub(crate) struct GivenBack<T> {
    /// The payload, if the timer has ended and nobody else gets it.
    pub(crate) payload: Option<T>,
    /// Somebody waits for this.
    pub(crate) awaited: bool,
}
