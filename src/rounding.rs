//! Rounding times to ticks: deadlines are rounded up, readings of the clock down.

use core::time::Duration;

use crate::tick::Tick;
use crate::timeline::{Time, nanos};

/// The duration of one tick. Converts between [`Time`] and [`Tick`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TickLength {
    nanos: u64,
    /// Replaces a division by a multiplication. The division would cost more than all
    /// other arithmetic on a deadline that is scheduled.
    reciprocal: u64,
    /// The time at which the last tick begins.
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
            last: (Time::MAX.as_nanos() - 1) / nanos * nanos,
        })
    }

    pub(crate) fn as_nanos(self) -> u64 {
        self.nanos
    }

    /// Returns the last tick that has begun at `time`.
    #[inline]
    pub(crate) fn tick_at(self, time: Time) -> Tick {
        Tick(self.divide(time.as_nanos()).0.min(NEVER.0 - 1))
    }

    /// Returns the first tick that begins at or after `time`, or [`NEVER`] if none
    /// begins before [`Time::MAX`].
    #[inline]
    pub(crate) fn tick_after(self, time: Time) -> Tick {
        if time.as_nanos() > self.last {
            return NEVER;
        }
        let (ticks, rest) = self.divide(time.as_nanos());
        Tick(ticks + u64::from(rest > 0))
    }

    /// Returns the time at which `tick` begins.
    #[inline]
    pub(crate) fn start_of(self, tick: Tick) -> Time {
        Time::from_nanos(tick.0.saturating_mul(self.nanos))
    }

    /// Returns the quotient and the remainder. The estimate is never too large, and
    /// if it is too small, then only by a little.
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
    fn deadlines_round_up_and_the_clock_rounds_down() {
        let ms = TickLength::new(Duration::from_millis(1)).unwrap();
        assert_eq!(ms.tick_after(Time::from_nanos(1)), Tick(1));
        assert_eq!(ms.tick_after(Time::from_nanos(1_000_000)), Tick(1));
        assert_eq!(ms.tick_at(Time::from_nanos(1_999_999)), Tick(1));
        assert_eq!(ms.tick_after(Time::MAX), NEVER);
        let ns = TickLength::new(Duration::from_nanos(1)).unwrap();
        assert!(ns.tick_at(Time::MAX) < NEVER);
        assert_eq!(TickLength::new(Duration::ZERO), None);
    }

    #[test]
    fn a_deadline_after_the_last_tick_has_begun_is_never() {
        for nanos in [1, 2, 5, 7, 1_000_000, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            let length = TickLength::new(Duration::from_nanos(nanos)).unwrap();
            let last = length.tick_at(Time::from_nanos(u64::MAX - 1));
            let begins = length.start_of(last);
            assert_eq!(length.tick_after(begins), last, "tick of {nanos}");
            for time in [Time::from_nanos(begins.as_nanos() + 1), Time::MAX] {
                assert_eq!(length.tick_after(time), NEVER, "tick of {nanos}");
            }
        }
    }
}
