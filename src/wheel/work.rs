//! What a wheel can be in the middle of, between two steps.

use super::geometry::Place;

/// What the wheel is in the middle of at its current tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    Nothing,
    /// Re-filing an outer slot; what is left of it is still on its lists.
    Cascade(Cascade),
    /// Firing the current slot of level 0.
    Drain,
    /// Putting an unsorted slot in order, then firing it.
    Sort,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cascade {
    pub(super) place: Place,
    /// Whether it was paused: then younger timers may have been filed inward
    /// before the older ones that are still to come.
    pub(super) resumed: bool,
}
