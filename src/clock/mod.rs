//! The clock of an engine, which never goes back, and the ticker's alarm.

mod alarm;
mod system;
#[cfg(target_os = "linux")]
mod timerfd;

pub(crate) use alarm::{Alarm, Device, Wake};
pub use system::ClockSource;
use system::SystemClock;

use std::time::Instant;

use crate::sync::{Arc, AtomicU64, Ordering};
use crate::time::Time;

/// A clock that starts at zero.
#[derive(Clone)]
pub(crate) enum Clock {
    System(SystemClock),
    Virtual(Arc<AtomicU64>),
}

impl Clock {
    pub(crate) fn system(source: ClockSource) -> Clock {
        Clock::System(SystemClock::new(source))
    }

    pub(crate) fn virtual_at(start: Time) -> Clock {
        Clock::Virtual(Arc::new(AtomicU64::new(start.as_nanos())))
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        match self {
            Clock::System(clock) => Time::from_nanos(clock.nanos()),
            Clock::Virtual(nanos) => Time::from_nanos(nanos.load(Ordering::Acquire)),
        }
    }

    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self, Clock::Virtual(_))
    }

    /// Returns the clock's name for an operator.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Clock::System(clock) => clock.name(),
            Clock::Virtual(_) => "virtual",
        }
    }

    /// Advances a virtual clock to `to`, unless that time has passed.
    pub(crate) fn set(&self, to: Time) {
        if let Clock::Virtual(nanos) = self {
            nanos.fetch_max(to.as_nanos(), Ordering::AcqRel);
        }
    }

    /// Converts an `Instant` to a time of this clock, if the clock measures instants.
    pub(crate) fn time_of(&self, instant: Instant) -> Option<Time> {
        match self {
            Clock::System(clock) => clock.time_of(instant),
            Clock::Virtual(_) => None,
        }
    }
}
