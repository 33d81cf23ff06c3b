//! The time line of an engine, and the ways to name a time on it. The clocks read it and turn
//! an `Instant` into a `Time` (`clock`); `rounding.rs` divides it into ticks.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};
use core::time::Duration;
use std::time::Instant;

/// A point on an engine's own time line, in nanoseconds since the engine was
/// started, or since zero on its [`VirtualClock`](crate::VirtualClock).
///
/// The time line does not depend on the kind of clock.
/// [`Engine::now`](crate::Engine::now) returns the current time. An engine on the
/// monotonic clock converts from and to `Instant`, with
/// [`Engine::time_of`](crate::Engine::time_of) and
/// [`Engine::instant_of`](crate::Engine::instant_of).
///
/// Operators saturate, at [`Time::START`] and at [`Time::MAX`], which never comes. The
/// difference of a time and the start converts it to a [`Duration`], and their sum converts
/// back.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::Time;
///
/// let t = Time::from_nanos(1_000) + Duration::from_micros(2);
/// assert_eq!(t.as_nanos(), 3_000);
/// assert_eq!(t - Time::from_nanos(500), Duration::from_nanos(2_500));
/// assert_eq!(t - Duration::from_nanos(500), Time::from_nanos(2_500));
/// assert_eq!((t + Duration::MAX, t - Duration::MAX), (Time::MAX, Time::START));
/// assert_eq!(Time::START + (t - Time::START), t);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Time(u64);

impl Time {
    /// The time at which the engine was started, or zero on its virtual clock.
    pub const START: Time = Time(0);

    /// A time that never comes, 584 years after the start. A deadline also never
    /// comes if no tick begins between it and this time.
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

    /// Returns the number of nanoseconds since the start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) const fn since_nanos(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the time `delay` later, or `None` if it would not be before [`Time::MAX`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::Time;
    ///
    /// assert_eq!(Time::START.checked_add(Duration::from_secs(2)), Some(Time::from_secs(2)));
    /// assert_eq!(Time::START.checked_add(Duration::MAX), None);
    /// ```
    #[must_use]
    pub fn checked_add(self, delay: Duration) -> Option<Time> {
        Some(self + delay).filter(|&time| time < Time::MAX)
    }

    /// Returns the time `delay` earlier, or `None` if it would be before the start.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::Time;
    ///
    /// let second = Duration::from_secs(1);
    /// assert_eq!(Time::from_secs(1).checked_sub(second), Some(Time::START));
    /// assert_eq!(Time::START.checked_sub(second), None);
    /// ```
    #[must_use]
    pub fn checked_sub(self, delay: Duration) -> Option<Time> {
        let nanos = u64::try_from(delay.as_nanos()).ok()?;
        self.0.checked_sub(nanos).map(Time)
    }

    /// Returns the duration from `earlier` to this time, or zero if `earlier` is
    /// later.
    #[doc(alias = "duration_since")]
    #[must_use]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// Returns the time `delay` later. Saturates at [`Time::MAX`].
    #[inline]
    fn add(self, delay: Duration) -> Time {
        Time(self.0.saturating_add(nanos(delay)))
    }
}

impl AddAssign<Duration> for Time {
    /// Moves the time `delay` later. Saturates at [`Time::MAX`].
    fn add_assign(&mut self, delay: Duration) {
        *self = *self + delay;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    /// Returns the time `delay` earlier. Saturates at [`Time::START`].
    fn sub(self, delay: Duration) -> Time {
        Time(self.0.saturating_sub(nanos(delay)))
    }
}

impl SubAssign<Duration> for Time {
    /// Moves the time `delay` earlier. Saturates at [`Time::START`].
    fn sub_assign(&mut self, delay: Duration) {
        *self = *self - delay;
    }
}

impl Sub for Time {
    type Output = Duration;

    /// Returns the same duration as [`Time::since`].
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

#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The requested time of a timer: a delay from now, a [`Time`], or an [`Instant`].
///
/// [`Duration`], [`Time`] and [`Instant`] convert into it.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tickwheel::{Time, When};
///
/// assert_eq!(When::from(Duration::ZERO), When::After(Duration::ZERO));
/// assert_eq!(When::from(Time::START), When::At(Time::START));
/// let now = Instant::now();
/// assert_eq!(When::from(now), When::AtInstant(now));
/// ```
///
/// A program that passes a `When` on to a new timer matches on it, because a new timer
/// counts either from now or not:
///
/// ```
/// use tickwheel::{Timer, When};
///
/// fn reminder(when: impl Into<When>) -> Timer<&'static str> {
///     match when.into() {
///         When::After(delay) => Timer::after(delay, "reminder"),
///         When::At(time) => Timer::at(time, "reminder"),
///         When::AtInstant(instant) => Timer::at(instant, "reminder"),
///     }
/// }
/// # let _ = reminder(std::time::Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// A delay from now. Resolving it reads the clock.
    After(Duration),
    /// An absolute time. One in the past is due at once. A repeating timer counts its
    /// periods from there all the same, so that firings may be [missed](crate::MissedTicks).
    At(Time),
    /// A reading of the monotonic clock, otherwise as a `Time`. An engine that does not follow
    /// the monotonic clock refuses it.
    AtInstant(Instant),
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

impl From<Instant> for When {
    fn from(instant: Instant) -> When {
        When::AtInstant(instant)
    }
}

/// A point in time: a [`Time`] or an [`Instant`], but not a `Duration`.
///
/// [`Timer::at`](crate::Timer::at) takes it. Other calls take a [`When`], which may
/// also be a delay.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a point in time",
    label = "expected a `Time` or an `Instant`",
    note = "a delay goes to `Timer::after`, `run_after` or `sleep`; tokio's `Instant` has `into_std`"
)]
pub trait PointInTime: Into<When> + Sealed {}

impl PointInTime for Time {}

impl PointInTime for Instant {}

/// Keeps other crates from implementing [`PointInTime`].
pub trait Sealed {}

impl Sealed for Time {}

impl Sealed for Instant {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_moved_in_both_directions_and_saturate() {
        let (second, mut time) = (Duration::from_secs(1), Time::from_secs(5));
        time += 2 * second;
        time -= second;
        assert_eq!(time, Time::from_secs(6));
        assert_eq!((time - 9 * second, time - Duration::MAX), (Time::START, Time::START));
        assert_eq!(
            (time.checked_sub(9 * second), Time::MAX.checked_sub(Duration::MAX)),
            (None, None)
        );
        // In 64 bits, so many nanoseconds are none.
        let too_long = Duration::from_secs(1 << 60);
        assert_eq!((Time::START + too_long, Time::START - time), (Time::MAX, Duration::ZERO));
        assert_eq!(time.checked_add(Duration::from_nanos(u64::MAX)), None);
        let last = Time::from_nanos(u64::MAX - 1);
        assert_eq!(time.checked_add(last - time), Some(last));
        assert_eq!(last.checked_add(Duration::from_nanos(1)), None);
    }

    #[test]
    fn times_are_made_in_any_unit_and_saturate() {
        let second = Time::START + Duration::from_secs(1);
        assert_eq!(format!("{second} {second:?}"), "1s Time(1s)");
        assert_eq!(Time::from_nanos(1_000_000_000), second);
        assert_eq!(Time::from_micros(1_000_000), second);
        assert_eq!(Time::from_millis(1_000), second);
        assert_eq!(Time::from_secs(1), second);
        let too_far = u64::MAX / 1_000 + 1;
        assert_eq!(Time::from_micros(too_far), Time::MAX);
        assert_eq!(Time::from_millis(too_far), Time::MAX);
        assert_eq!(Time::from_secs(too_far), Time::MAX);
    }
}
