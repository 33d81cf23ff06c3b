//! A live timer, as a walk finds it.

use crate::id::TimerId;
use crate::tick::Tick;

/// A live timer, as it was when the walk reached it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LiveTimer {
    /// The timer.
    pub id: TimerId,
    /// When it is due next (or was, if it waits to be taken or runs).
    pub tick: Tick,
    /// The queue that it fires into.
    pub queue: usize,
}
