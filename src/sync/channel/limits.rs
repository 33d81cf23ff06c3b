//! When the limit of a wait has passed: in time, or in a model when it says so,
//! whether anybody is awake to see it or not.

use std::time::{Duration, Instant};

/// Those of one channel's waits.
#[derive(Default)]
pub(super) struct Limits {
    #[cfg(any(loom, shuttle))]
    have_passed: bool,
}

impl Limits {
    /// How long it is until a wait ends.
    #[cfg(not(any(loom, shuttle)))]
    pub(super) fn left(&self, end: Instant) -> Duration {
        end.saturating_duration_since(Instant::now())
    }

    #[cfg(any(loom, shuttle))]
    pub(super) fn left(&self, _end: Instant) -> Duration {
        match self.have_passed {
            true => Duration::ZERO,
            false => Duration::MAX,
        }
    }

    /// From now on.
    #[cfg(any(loom, shuttle))]
    pub(super) fn pass(&mut self) {
        self.have_passed = true;
    }
}
