//! The clock of an engine, which never goes back, and the ticker's alarm.

mod alarm;
mod system;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod timerfd;
#[cfg(windows)]
mod waitable_timer;

pub(crate) use alarm::{Alarm, Device};
pub use system::ClockSource;
use system::SystemClock;

/// The timer on which a thread can sleep better than on a condition variable. Deadlines
/// come as times of the engine, and may be set while a thread sleeps.
#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
use no_timer::NoTimer as SystemTimer;
#[cfg(any(target_os = "linux", target_os = "android"))]
use timerfd::TimerFd as SystemTimer;
#[cfg(windows)]
use waitable_timer::WaitableTimer as SystemTimer;

use std::time::{Duration, Instant};

use crate::sync::{Arc, AtomicU64, Ordering};
use crate::timeline::Time;

/// In place of a timer to sleep on. macOS and the BSDs have timers in kqueue. The crate uses
/// none of them, because it was never run there: a condition variable is right without a
/// system call of one's own.
#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
mod no_timer {
    use std::io;

    use crate::clock::system::SystemClock;
    use crate::timeline::Time;

    pub(crate) enum NoTimer {}

    impl NoTimer {
        pub(crate) const NAME: &str = "none";

        pub(crate) fn for_ticker(_: SystemClock) -> io::Result<Option<NoTimer>> {
            Ok(None)
        }

        pub(crate) fn for_caller(_: SystemClock) -> io::Result<Option<NoTimer>> {
            Ok(None)
        }

        pub(crate) fn set(&self, _: Time) {
            match *self {}
        }

        pub(crate) fn wait(&self) {
            match *self {}
        }
    }
}

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

    #[inline]
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
    #[inline]
    pub(crate) fn time_of(&self, instant: Instant) -> Option<Time> {
        match self {
            Clock::System(clock) => clock.time_of(instant),
            Clock::Virtual(_) => None,
        }
    }

    /// Returns the time `delay` from now: never early, even by the clock that measures
    /// instants.
    #[inline]
    pub(crate) fn after(&self, delay: Duration) -> Time {
        match self {
            Clock::System(clock) => clock.after(delay),
            Clock::Virtual(_) => self.now() + delay,
        }
    }

    /// Returns the instant of which [`Clock::time_of`] makes this time.
    pub(crate) fn instant_at(&self, time: Time) -> Option<Instant> {
        match self {
            Clock::System(clock) => clock.instant_at(time),
            Clock::Virtual(_) => None,
        }
    }

    /// Converts a time to an `Instant`, if the clock measures instants and the
    /// time comes.
    pub(crate) fn instant_of(&self, time: Time) -> Option<Instant> {
        match self {
            Clock::System(clock) if time < Time::MAX => clock.instant_of(time),
            Clock::System(_) | Clock::Virtual(_) => None,
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// More than two readings of the clock take on any machine.
    const MOMENT: Duration = Duration::from_secs(10);

    proptest! {
        #[test]
        fn a_time_becomes_an_instant_and_returns_a_moment_later_at_most(nanos in 0..u64::MAX / 2, shift in 0..63u32) {
            let clock = Clock::system(ClockSource::Monotonic);
            let time = Time::from_nanos(nanos >> shift);
            let instant = clock.instant_of(time).unwrap();
            let back = clock.time_of(instant).unwrap();
            prop_assert!(time <= back && back - time < MOMENT);
            let again = clock.instant_of(back).unwrap();
            prop_assert!(instant <= again && again - instant < MOMENT);
            let exact = clock.instant_at(time).unwrap();
            prop_assert_eq!(clock.time_of(exact), Some(time));
        }
    }

    #[test]
    fn a_time_that_never_comes_has_no_instant() {
        let clock = Clock::system(ClockSource::Monotonic);
        assert_eq!(clock.instant_of(Time::MAX), None);
        assert!(clock.instant_of(Time::START).is_some());
    }

    #[test]
    fn only_the_monotonic_clock_measures_instants() {
        let now = Instant::now() + MOMENT;
        let clock = Clock::virtual_at(Time::START);
        assert_eq!((clock.time_of(now), clock.instant_of(Time::START)), (None, None));
        assert_eq!(clock.name(), "virtual");
        #[cfg(target_os = "linux")]
        {
            let clock = Clock::system(ClockSource::BootTime);
            assert_eq!((clock.time_of(now), clock.instant_of(Time::START)), (None, None));
            assert_eq!(clock.name(), "boot time");
            assert!(matches!(clock, Clock::System(clock) if clock.id() == libc::CLOCK_BOOTTIME));
        }
    }

    #[test]
    fn an_instant_before_the_start_is_the_start() {
        let before = Instant::now();
        let clock = Clock::system(ClockSource::Monotonic);
        assert_eq!(clock.time_of(before), Some(Time::START));
    }
}
