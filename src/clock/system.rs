//! The clocks of the system: the monotonic clock and, on Linux and Android, the boot-time
//! clock.

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use linux::SystemClock;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use portable::SystemClock;

/// The system clock that an engine follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum ClockSource {
    /// The monotonic clock, which stands still while the machine is suspended.
    #[default]
    Monotonic,
    /// The boot-time clock, which also runs while the machine is suspended. Only
    /// Linux and Android have it. On other systems, this is the monotonic clock.
    BootTime,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use core::mem::MaybeUninit;
    use core::time::Duration;
    use std::time::Instant;

    use super::ClockSource;
    use crate::clock::instant::{has_numbers, number};
    use crate::timeline::{Time, nanos};

    #[derive(Clone, Copy)]
    pub(crate) struct SystemClock {
        id: libc::clockid_t,
        /// The nanoseconds in which `origin` was read, beginning at `instant`. Two clocks
        /// cannot be read at once, and this is how far their readings may be apart.
        spread: u32,
        /// The reading of the system's clock at the start.
        origin: u64,
        instant: Instant,
        /// The number of `instant`, if this clock measures instants and they have
        /// numbers.
        first: Option<u64>,
    }

    /// The number of times that the clocks are read for a small spread. A thread that is
    /// interrupted between two readings measures a large one.
    const READINGS: usize = 8;

    impl SystemClock {
        pub(crate) fn new(source: ClockSource) -> SystemClock {
            let id = match source {
                ClockSource::Monotonic => libc::CLOCK_MONOTONIC,
                ClockSource::BootTime => libc::CLOCK_BOOTTIME,
            };
            let readings = (0..READINGS).map(|_| SystemClock::read(id));
            let best = readings.min_by_key(|clock| clock.spread);
            let best = best.expect("there are several readings");
            let has_first = best.measures_instants() && has_numbers(best.instant);
            let first = number(best.instant).filter(|_| has_first);
            SystemClock { first, ..best }
        }

        fn read(id: libc::clockid_t) -> SystemClock {
            let instant = Instant::now();
            let origin = raw_nanos(id);
            let spread = u32::try_from(nanos(instant.elapsed()));
            SystemClock {
                id,
                spread: spread.unwrap_or(u32::MAX),
                origin,
                instant,
                first: None,
            }
        }

        pub(crate) fn name(&self) -> &'static str {
            match self.id {
                libc::CLOCK_BOOTTIME => "boot time",
                _ => "monotonic",
            }
        }

        /// Returns the number of nanoseconds since the start.
        #[inline]
        pub(crate) fn nanos(&self) -> u64 {
            raw_nanos(self.id).saturating_sub(self.origin)
        }

        /// Returns the system's identifier of this clock, for timerfd.
        pub(crate) fn id(&self) -> libc::clockid_t {
            self.id
        }

        /// Returns the reading of the system's clock at `time`.
        pub(crate) fn raw(&self, time: Time) -> u64 {
            self.origin.saturating_add(time.as_nanos())
        }

        /// Returns `None` unless this clock measures instants.
        #[inline]
        pub(crate) fn time_of(&self, instant: Instant) -> Option<Time> {
            // `self.instant` was read a moment before `origin`. The result is
            // therefore a moment late, but never early.
            match self.first.zip(number(instant)) {
                Some((first, number)) => Some(Time::from_nanos(number.saturating_sub(first))),
                None => self.time_by_difference(instant),
            }
        }

        #[cold]
        fn time_by_difference(&self, instant: Instant) -> Option<Time> {
            let since = instant.checked_duration_since(self.instant);
            let time = Time::START + since.unwrap_or_default();
            self.measures_instants().then_some(time)
        }

        #[inline]
        pub(crate) fn after(&self, delay: Duration) -> Time {
            // `instant_at` is early by at most `spread`.
            Time::from_nanos(self.nanos() + u64::from(self.spread)) + delay
        }

        pub(crate) fn instant_at(&self, time: Time) -> Option<Instant> {
            let since = Duration::from_nanos(time.as_nanos());
            let instant = self.instant.checked_add(since);
            instant.filter(|_| self.measures_instants())
        }

        pub(crate) fn instant_of(&self, time: Time) -> Option<Instant> {
            // `origin` was read at most `spread` after `self.instant`. The result is
            // therefore a moment late, but never early.
            let late = Duration::from_nanos(u64::from(self.spread));
            self.instant_at(time)?.checked_add(late)
        }

        fn measures_instants(&self) -> bool {
            self.id == libc::CLOCK_MONOTONIC
        }
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    mod tests {
        use super::*;

        #[test]
        fn neither_conversion_is_early_however_far_apart_the_clocks_were_read() {
            const SPREAD: u32 = 1_000_000_000;
            let clock = SystemClock {
                // Much longer than it takes to read a clock twice.
                spread: SPREAD,
                ..SystemClock::new(ClockSource::Monotonic)
            };
            // The engine's clock shows zero at this instant, or up to the spread later.
            let start = clock.instant;
            let latest = start + Duration::from_nanos(SPREAD.into());
            assert_eq!(clock.time_of(latest), Some(Time::from_nanos(SPREAD.into())));
            assert_eq!(clock.instant_of(Time::START), Some(latest));
            // A delay counts from a time that instants have reached, too.
            let now = Time::from_nanos(clock.nanos() + u64::from(SPREAD));
            assert!(clock.after(Duration::ZERO) >= now);
        }

        #[test]
        fn an_instant_is_no_earlier_than_a_time_that_was_read_before() {
            for _ in 0..10_000 {
                let clock = SystemClock::read(libc::CLOCK_MONOTONIC);
                let before = Time::from_nanos(clock.nanos());
                assert!(clock.time_of(Instant::now()) >= Some(before));
            }
        }
    }

    #[inline]
    fn raw_nanos(id: libc::clockid_t) -> u64 {
        let mut now = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the pointer is valid for writes. The call succeeds and fills it
        // in, because every kernel that has timerfd has both clocks.
        let now = unsafe {
            let result = libc::clock_gettime(id, now.as_mut_ptr());
            debug_assert_eq!(result, 0);
            now.assume_init()
        };
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod portable {
    use core::time::Duration;
    use std::time::Instant;

    use super::ClockSource;
    use crate::timeline::{Time, nanos};

    #[derive(Clone, Copy)]
    pub(crate) struct SystemClock(Instant);

    impl SystemClock {
        pub(crate) fn new(_: ClockSource) -> SystemClock {
            SystemClock(Instant::now())
        }

        pub(crate) fn name(&self) -> &'static str {
            "monotonic"
        }

        pub(crate) fn nanos(&self) -> u64 {
            nanos(self.0.elapsed())
        }

        #[inline]
        pub(crate) fn time_of(&self, instant: Instant) -> Option<Time> {
            let since = instant.checked_duration_since(self.0);
            Some(Time::START + since.unwrap_or_default())
        }

        pub(crate) fn after(&self, delay: Duration) -> Time {
            Time::from_nanos(self.nanos()) + delay
        }

        pub(crate) fn instant_at(&self, time: Time) -> Option<Instant> {
            self.0.checked_add(Duration::from_nanos(time.as_nanos()))
        }

        pub(crate) fn instant_of(&self, time: Time) -> Option<Instant> {
            self.instant_at(time)
        }
    }
}
