//! A clock for awaited timers that only its owner moves.

use core::fmt;
use std::task::Waker;
use std::time::Duration;

use crate::drive::VirtualClock;
use crate::time::wake::wake;
use crate::timeline::Time;

/// The clock of [`Timers`](crate::time::Timers) that were started with
/// [`TimersBuilder::start_virtual`](crate::time::TimersBuilder::start_virtual).
pub struct TimersClock {
    clock: VirtualClock<Waker>,
}

impl TimersClock {
    pub(super) fn new(clock: VirtualClock<Waker>) -> TimersClock {
        TimersClock { clock }
    }

    /// Returns the clock's time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Moves the clock forward, and wakes the tasks whose timers become due.
    pub fn advance(&self, by: Duration) {
        self.advance_to(self.now() + by);
    }

    /// Moves the clock forward to an absolute time, unless that time has passed; see
    /// [`advance`](TimersClock::advance).
    pub fn advance_to(&self, time: Time) {
        self.clock.advance_taking(time, &mut wake);
    }
}

impl fmt::Debug for TimersClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimersClock")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}
