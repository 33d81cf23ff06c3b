//! Delays in the unit of Windows' timers.

use core::time::Duration;

/// As good as never: three centuries.
const LONGEST: Duration = Duration::from_secs(10_000_000_000);

/// Returns the due time of a waitable timer that goes off after `delay`, and never
/// before: a number of hundreds of nanoseconds, rounded up. It is negative, because any
/// other number is a time of day.
pub(super) fn due_time(delay: Duration) -> i64 {
    let hundreds = delay.min(LONGEST).as_nanos().div_ceil(100).max(1);
    -(hundreds as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_time_is_never_early() {
        for (nanos, hundreds) in [(1, 1), (99, 1), (100, 1), (101, 2), (1_000_001, 10_001)] {
            assert_eq!(due_time(Duration::from_nanos(nanos)), -hundreds, "{nanos}");
        }
    }

    #[test]
    fn a_due_time_is_relative_for_every_delay() {
        for delay in [Duration::ZERO, LONGEST, Duration::MAX] {
            assert!(due_time(delay) < 0);
            assert!(due_time(delay) >= due_time(LONGEST));
        }
    }
}
