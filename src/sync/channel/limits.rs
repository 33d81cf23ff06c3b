//! The limits of waits. Outside a model, a limit passes when its time comes. In a
//! model, it passes when the model says so, even if no receiver is awake to notice.

use std::time::{Duration, Instant};

/// The limits of one channel's waits.
#[derive(Default)]
pub(super) struct Limits {
    #[cfg(any(loom, shuttle))]
    have_passed: bool,
}

impl Limits {
    /// Returns the time left until `end`.
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

    /// Treats the limits of all waits as passed from now on.
    #[cfg(any(loom, shuttle))]
    pub(super) fn pass(&mut self) {
        self.have_passed = true;
    }
}
