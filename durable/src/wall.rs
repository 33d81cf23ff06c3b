//! Points of the wall clock, and the clocks that read it.

use std::fmt;
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point of the wall clock, in whole microseconds since 1970 UTC. Earlier points count as
/// 1970, and those after the year 584,000 as the last one.
///
/// ```
/// use std::time::Duration;
/// use tickwheel_durable::WallTime;
///
/// let noon = WallTime::from_unix_micros(1_800_000_000_000_000);
/// assert_eq!((noon + Duration::from_millis(2)).since(noon), Duration::from_millis(2));
/// assert_eq!(noon.to_string(), "2027-01-15T08:00:00Z");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WallTime(u64);

impl WallTime {
    /// The latest point, which no clock reaches.
    pub const MAX: WallTime = WallTime(u64::MAX);

    /// Returns the point that lies so many microseconds after the beginning of 1970 UTC.
    #[must_use]
    pub const fn from_unix_micros(micros: u64) -> WallTime {
        WallTime(micros)
    }

    /// Returns the microseconds since the beginning of 1970 UTC.
    #[must_use]
    pub const fn as_unix_micros(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to this point, or zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: WallTime) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// Rounds up to a microsecond, so that nothing comes early.
impl From<SystemTime> for WallTime {
    fn from(time: SystemTime) -> WallTime {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        WallTime::default() + since
    }
}

/// Rounds up to a microsecond, so that nothing comes early.
impl Add<Duration> for WallTime {
    type Output = WallTime;

    fn add(self, by: Duration) -> WallTime {
        let micros = by.as_nanos().div_ceil(1_000);
        WallTime(self.0.saturating_add(u64::try_from(micros).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_microsecond(micros) {
            Ok(time) => time.fmt(f),
            Err(_) => f.write_str("never"),
        }
    }
}

impl fmt::Debug for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A wall clock. Jobs are due by it; the engine in front of the store sleeps by a monotonic
/// one.
pub trait WallClock: Send + Sync + 'static {
    /// Returns the present time.
    fn now(&self) -> WallTime;
}

/// The clock of the operating system.
#[derive(Clone, Copy, Default, Debug)]
pub struct SystemClock;

impl WallClock for SystemClock {
    fn now(&self) -> WallTime {
        has_reached(SystemTime::now())
    }
}

/// Returns the last microsecond that has begun. A due time is rounded up instead: both in the
/// direction in which nothing comes early.
fn has_reached(now: SystemTime) -> WallTime {
    let micros = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime(u64::try_from(micros.as_micros()).unwrap_or(u64::MAX))
}

/// A clock that only its owner sets, forwards or backwards. Clones show the same time.
#[derive(Clone, Default, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// Returns a clock that shows `time`.
    #[must_use]
    pub fn new(time: WallTime) -> ManualClock {
        ManualClock(Arc::new(AtomicU64::new(time.0)))
    }

    /// Sets the clock to `time`, which may lie in its past.
    pub fn set(&self, time: WallTime) {
        self.0.store(time.0, Ordering::SeqCst);
    }
}

impl WallClock for ManualClock {
    fn now(&self) -> WallTime {
        WallTime(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durable_04_the_present_is_rounded_down() {
        let time = UNIX_EPOCH + Duration::from_nanos(5_900);
        assert_eq!(has_reached(time), WallTime(5));
        assert_eq!(WallTime::from(time), WallTime(6));
    }
}
