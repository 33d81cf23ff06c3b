//! A live timer, as a walk finds it.

use crate::id::TimerId;
use crate::tick::Tick;

/// A live timer, as it was when the walk reached it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LiveTimer {
    /// The timer.
    pub id: TimerId,
    /// The tick at which the timer is due next, or was due if it is running or waiting to
    /// be taken.
    pub tick: Tick,
    /// Whether the timer is paused. Then `tick` is the one that the pause made void.
    pub paused: bool,
    /// The timer's queue.
    pub queue: usize,
}
