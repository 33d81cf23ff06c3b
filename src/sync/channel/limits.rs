//! When the limit of a wait has passed: by the clock, or in a model when the
//! model says so, even if nobody is awake to notice.

use std::time::{Duration, Instant};

/// The limits of one channel's waits.
#[derive(Default)]
pub(super) struct Limits {
    #[cfg(any(loom, shuttle))]
    have_passed: bool,
}

impl Limits {
    /// Returns the time that is left until `end`.
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

    /// Ends all waits that have a limit, from now on.
    #[cfg(any(loom, shuttle))]
    pub(super) fn pass(&mut self) {
        self.have_passed = true;
    }
}
