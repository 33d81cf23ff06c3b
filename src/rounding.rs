//! Rounding times to ticks: deadlines are rounded up, readings of the clock down.

use core::time::Duration;

use crate::tick::Tick;
use crate::timeline::{Time, nanos};

/// The duration of one tick. Converts between [`Time`] and [`Tick`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TickLength {
    nanos: u64,
    /// Twice the nanoseconds that a division adds to round up.
    round_up: u64,
    /// `2^(63 + shift) / nanos`, rounded up. A multiplication by it replaces a division,
    /// which would cost more than all other arithmetic on a deadline that is scheduled.
    magic: u64,
    /// The binary logarithm of `nanos`, rounded up.
    shift: u32,
    /// The first time that has to be divided.
    too_far: u64,
}

/// The tick of a deadline that never comes. The clock stops one tick before it.
pub(crate) const NEVER: Tick = Tick::MAX;

/// Dividends below this number can be divided by a multiplication: the product of a
/// dividend of 63 bits and a rounded factor of 64 bits is exact enough.
const MULTIPLIED: u64 = 1 << 63;

impl TickLength {
    /// Returns `None` if `tick` is zero.
    pub(crate) fn new(tick: Duration) -> Option<TickLength> {
        let nanos = nanos(tick);
        if nanos == 0 {
            return None;
        }
        // A tick of centuries is divided by.
        let by = if nanos < MULTIPLIED { nanos } else { 1 };
        let shift = by.next_power_of_two().trailing_zeros();
        Some(TickLength {
            nanos,
            round_up: 2 * (by - 1),
            magic: (1u128 << (63 + shift)).div_ceil(u128::from(by)) as u64,
            shift,
            too_far: MULTIPLIED.saturating_sub(nanos),
        })
    }

    pub(crate) fn as_nanos(self) -> u64 {
        self.nanos
    }

    /// Returns the last tick that has begun at `time`.
    #[inline]
    pub(crate) fn tick_at(self, time: Time) -> Tick {
        if time.as_nanos() < self.too_far {
            Tick(self.quotient(2 * time.as_nanos()))
        } else {
            self.far_tick_at(time)
        }
    }

    /// Returns the first tick that begins at or after `time`, or [`NEVER`] if none
    /// begins before [`Time::MAX`].
    #[inline]
    pub(crate) fn tick_after(self, time: Time) -> Tick {
        if time.as_nanos() < self.too_far {
            Tick(self.quotient(2 * time.as_nanos() + self.round_up))
        } else {
            self.far_tick_after(time)
        }
    }

    /// Divides a number of half nanoseconds by a multiplication.
    #[inline]
    fn quotient(self, halves: u64) -> u64 {
        let product = u128::from(halves) * u128::from(self.magic);
        (product >> 64) as u64 >> self.shift
    }

    #[cold]
    fn far_tick_at(self, time: Time) -> Tick {
        Tick((time.as_nanos() / self.nanos).min(NEVER.0 - 1))
    }

    #[cold]
    fn far_tick_after(self, time: Time) -> Tick {
        // The time to which timers are disarmed.
        if time == Time::MAX {
            return NEVER;
        }
        let last = (Time::MAX.as_nanos() - 1) / self.nanos * self.nanos;
        if time.as_nanos() > last {
            return NEVER;
        }
        Tick(time.as_nanos().div_ceil(self.nanos))
    }

    /// Returns the time at which `tick` begins.
    #[inline]
    pub(crate) fn start_of(self, tick: Tick) -> Time {
        Time::from_nanos(tick.0.saturating_mul(self.nanos))
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
            rounds_like_a_division(nanos, tick);
        }
    }

    fn rounds_like_a_division(nanos: u64, tick: u64) {
        let length = TickLength::new(Duration::from_nanos(tick)).unwrap();
        let (down, up) = (nanos / tick, nanos.div_ceil(tick));
        assert_eq!(length.tick_at(Time::from_nanos(nanos)).0, down.min(NEVER.0 - 1));
        let begins = up.checked_mul(tick).is_some_and(|begins| begins < u64::MAX);
        let expected = if begins { up } else { NEVER.0 };
        assert_eq!(length.tick_after(Time::from_nanos(nanos)).0, expected, "{nanos} {tick}");
    }

    #[test]
    fn rounding_is_exact_beside_every_multiple_and_every_limit() {
        let ends = |n: u64| [n.saturating_sub(1), n, n.saturating_add(1)];
        let powers = (0..64).flat_map(|bits| ends(1 << bits));
        let ticks = powers.chain([3, 5, 7, 10, 1_000, 50_000, 1_000_000, 1_000_000_000, u64::MAX]);
        for tick in ticks.filter(|&tick| tick > 0) {
            let too_far = TickLength::new(Duration::from_nanos(tick)).unwrap().too_far;
            let limits = [0, tick, 1 << 62, MULTIPLIED, too_far, u64::MAX].into_iter();
            let multiples = limits.map(|limit| limit / tick * tick);
            let limits = [too_far, MULTIPLIED, u64::MAX].into_iter();
            for nanos in multiples.chain(limits).flat_map(ends) {
                rounds_like_a_division(nanos, tick);
            }
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
