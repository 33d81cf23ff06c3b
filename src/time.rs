//! The time line of an engine, and its division into ticks.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

use crate::tick::Tick;

/// A point on an engine's own time line, in nanoseconds since the engine was
/// started.
///
/// The time line does not depend on the kind of clock.
/// [`Engine::now`](crate::Engine::now) returns the current time, and
/// [`Engine::time_of`](crate::Engine::time_of) converts an `Instant`. Arithmetic
/// saturates at [`Time::MAX`], which never comes.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::Time;
///
/// let t = Time::from_nanos(1_000) + Duration::from_micros(2);
/// assert_eq!(t.as_nanos(), 3_000);
/// assert_eq!(t - Time::from_nanos(500), Duration::from_nanos(2_500));
/// assert_eq!(t + Duration::MAX, Time::MAX);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The time at which the engine was started.
    pub const START: Time = Time(0);

    /// A time that never comes, 584 years after the start. A deadline never comes
    /// either if no tick begins between it and this time.
    pub const MAX: Time = Time(u64::MAX);

    /// Returns the time `nanos` nanoseconds after the start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Returns the time `micros` microseconds after the start. Saturates at
    /// [`Time::MAX`].
    #[must_use]
    pub const fn from_micros(micros: u64) -> Time {
        Time(micros.saturating_mul(1_000))
    }

    /// Returns the time `millis` milliseconds after the start. Saturates at
    /// [`Time::MAX`].
    ///
    /// ```
    /// use tickwheel::{Time, Timer};
    ///
    /// let timer = Timer::at(Time::from_millis(350), "350 ms after the start");
    /// assert_eq!(Time::from_millis(2_000), Time::from_secs(2));
    /// assert_eq!(Time::from_millis(u64::MAX), Time::MAX);
    /// # let _ = timer;
    /// ```
    #[must_use]
    pub const fn from_millis(millis: u64) -> Time {
        Time(millis.saturating_mul(1_000_000))
    }

    /// Returns the time `secs` seconds after the start. Saturates at [`Time::MAX`].
    #[must_use]
    pub const fn from_secs(secs: u64) -> Time {
        Time(secs.saturating_mul(1_000_000_000))
    }

    /// Returns the nanoseconds since the start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) const fn since_nanos(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the duration from `earlier` to this time, or zero if `earlier` is
    /// later.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// Returns the time `delay` later. Saturates at [`Time::MAX`].
    fn add(self, delay: Duration) -> Time {
        Time(self.0.saturating_add(nanos(delay)))
    }
}

impl Sub for Time {
    type Output = Duration;

    /// Returns the same as [`Time::since`].
    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Time({:?})", Duration::from_nanos(self.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Duration::from_nanos(self.0), f)
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The requested time of a timer: a delay from now, or a [`Time`].
///
/// [`Duration`] and [`Time`] convert into it.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Time, When};
///
/// assert_eq!(When::from(Duration::ZERO), When::After(Duration::ZERO));
/// assert_eq!(When::from(Time::START), When::At(Time::START));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// A delay from now. Resolving it reads the clock.
    After(Duration),
    /// A time. A time in the past means now.
    At(Time),
}

impl From<Duration> for When {
    fn from(delay: Duration) -> When {
        When::After(delay)
    }
}

impl From<Time> for When {
    fn from(time: Time) -> When {
        When::At(time)
    }
}

/// The duration of one tick. Converts between [`Time`] and [`Tick`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TickLength {
    nanos: u64,
    /// Turns division into multiplication. A division costs more than the rest of
    /// the arithmetic that scheduling does on a deadline.
    reciprocal: u64,
    /// When the last tick begins.
    last: u64,
}

/// The tick of a deadline that never comes. The clock stops one tick before it.
pub(crate) const NEVER: Tick = Tick::MAX;

impl TickLength {
    /// Returns `None` if `tick` is zero.
    pub(crate) fn new(tick: Duration) -> Option<TickLength> {
        let nanos = nanos(tick);
        (nanos > 0).then(|| TickLength {
            nanos,
            reciprocal: u64::MAX / nanos,
            last: (Time::MAX.0 - 1) / nanos * nanos,
        })
    }

    pub(crate) fn as_nanos(self) -> u64 {
        self.nanos
    }

    /// Returns the last tick that has begun at `time`.
    #[inline]
    pub(crate) fn tick_at(self, time: Time) -> Tick {
        Tick(self.divide(time.0).0.min(NEVER.0 - 1))
    }

    /// Returns the first tick that begins at or after `time`, or [`NEVER`] if none
    /// begins before [`Time::MAX`].
    #[inline]
    pub(crate) fn tick_after(self, time: Time) -> Tick {
        if time.0 > self.last {
            return NEVER;
        }
        let (ticks, rest) = self.divide(time.0);
        Tick(ticks + u64::from(rest > 0))
    }

    /// Returns the time at which `tick` begins.
    #[inline]
    pub(crate) fn start_of(self, tick: Tick) -> Time {
        Time(tick.0.saturating_mul(self.nanos))
    }

    /// Returns the quotient and the remainder. The estimate is never too large, and
    /// at most a little too small.
    #[inline]
    fn divide(self, nanos: u64) -> (u64, u64) {
        let estimate = (u128::from(nanos) * u128::from(self.reciprocal)) >> 64;
        let mut quotient = estimate as u64;
        let mut rest = nanos - quotient * self.nanos;
        while rest >= self.nanos {
            quotient += 1;
            rest -= self.nanos;
        }
        (quotient, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn dividing_by_multiplication_is_exact(nanos: u64, shift in 0..64u32, tick in 1..u64::MAX, tick_shift in 0..64u32) {
            let (nanos, tick) = (nanos >> shift, (tick >> tick_shift).max(1));
            let length = TickLength::new(Duration::from_nanos(tick)).unwrap();
            prop_assert_eq!(length.divide(nanos), (nanos / tick, nanos % tick));
        }
    }

    #[test]
    fn times_are_made_in_any_unit_and_saturate() {
        let second = Time::START + Duration::from_secs(1);
        assert_eq!(Time::from_nanos(1_000_000_000), second);
        assert_eq!(Time::from_micros(1_000_000), second);
        assert_eq!(Time::from_millis(1_000), second);
        assert_eq!(Time::from_secs(1), second);
        let too_far = u64::MAX / 1_000 + 1;
        assert_eq!(Time::from_micros(too_far), Time::MAX);
        assert_eq!(Time::from_millis(too_far), Time::MAX);
        assert_eq!(Time::from_secs(too_far), Time::MAX);
    }

    #[test]
    fn deadlines_round_up_and_the_clock_rounds_down() {
        let ms = TickLength::new(Duration::from_millis(1)).unwrap();
        assert_eq!(ms.tick_after(Time(1)), Tick(1));
        assert_eq!(ms.tick_after(Time(1_000_000)), Tick(1));
        assert_eq!(ms.tick_at(Time(1_999_999)), Tick(1));
        assert_eq!(ms.tick_after(Time::MAX), NEVER);
        let ns = TickLength::new(Duration::from_nanos(1)).unwrap();
        assert!(ns.tick_at(Time::MAX) < NEVER);
        assert_eq!(TickLength::new(Duration::ZERO), None);
    }

    #[test]
    fn a_deadline_after_the_last_tick_has_begun_is_never() {
        for nanos in [1, 2, 5, 7, 1_000_000, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            let length = TickLength::new(Duration::from_nanos(nanos)).unwrap();
            let last = length.tick_at(Time(u64::MAX - 1));
            let begins = length.start_of(last);
            assert_eq!(length.tick_after(begins), last, "tick of {nanos}");
            for time in [Time(begins.0 + 1), Time::MAX] {
                assert_eq!(length.tick_after(time), NEVER, "tick of {nanos}");
            }
        }
    }
}
