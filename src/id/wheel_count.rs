//! The count of the wheels of a process, on whatever atomics the target has.
//!
//! The best counter is shared by all threads and has 64 bits. Some targets without an
//! operating system have a compare-and-swap of 32 bits only (thumbv7em), and then a
//! process makes fewer wheels. Others have loads and stores only (thumbv6m). There a
//! count may be lost, so wheels must be made one at a time; see
//! [`wheel`](crate::wheel#without-std).

use core::sync::atomic::{AtomicU32, Ordering};

#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;

#[cfg(target_has_atomic = "64")]
type Count = AtomicU64;
#[cfg(all(target_has_atomic = "32", not(target_has_atomic = "64")))]
type Count = AtomicU32;
#[cfg(not(target_has_atomic = "32"))]
type Count = Uncontended;

/// Replaces the number of the next wheel by `next` of it, and returns it. Returns `None`
/// if the count ends.
pub(super) fn advance(next: impl Fn(u64) -> u64) -> Option<u64> {
    static NEXT: Count = Count::new(1);
    NEXT.advance(next)
}

trait Counter {
    /// Replaces the count by `next` of it, and returns the old one. Returns `None` if the
    /// counter cannot hold the new one; then the old one stays.
    fn advance(&self, next: impl Fn(u64) -> u64) -> Option<u64>;
}

#[cfg(target_has_atomic = "64")]
impl Counter for AtomicU64 {
    #[allow(deprecated)] // Rust 1.99 gave `fetch_update` a new name
    fn advance(&self, next: impl Fn(u64) -> u64) -> Option<u64> {
        let next = |count| Some(next(count));
        let old = self.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        old.ok()
    }
}

#[cfg(target_has_atomic = "32")]
impl Counter for AtomicU32 {
    #[allow(deprecated)] // as above
    fn advance(&self, next: impl Fn(u64) -> u64) -> Option<u64> {
        let next = |count| next(u64::from(count)).try_into().ok();
        let old = self.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        old.ok().map(u64::from)
    }
}

/// A counter without compare-and-swap. It may give one number to two callers at once, and
/// gives each of them a valid one.
#[cfg(any(test, not(target_has_atomic = "32")))]
struct Uncontended(AtomicU32);

#[cfg(any(test, not(target_has_atomic = "32")))]
impl Uncontended {
    const fn new(first: u32) -> Uncontended {
        Uncontended(AtomicU32::new(first))
    }
}

#[cfg(any(test, not(target_has_atomic = "32")))]
impl Counter for Uncontended {
    fn advance(&self, next: impl Fn(u64) -> u64) -> Option<u64> {
        let old = u64::from(self.0.load(Ordering::Relaxed));
        self.0.store(next(old).try_into().ok()?, Ordering::Relaxed);
        Some(old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counter: impl Counter) {
        assert_eq!(counter.advance(|count| count + 1), Some(1));
        assert_eq!(counter.advance(|count| count + 4), Some(2));
        assert_eq!(counter.advance(|count| count + 1), Some(6));
    }

    /// A count that began anew would give a wheel the number of another.
    fn ends(counter: impl Counter) {
        let almost_all = |_| u64::from(u32::MAX);
        assert_eq!(counter.advance(almost_all), Some(1));
        for _ in 0..2 {
            assert_eq!(counter.advance(|count| count + 1), None);
        }
        assert_eq!(counter.advance(|count| count), Some(u64::from(u32::MAX)));
    }

    #[test]
    fn every_counter_counts_from_one() {
        counts(Count::new(1));
        counts(AtomicU32::new(1));
        counts(Uncontended::new(1));
    }

    #[test]
    fn a_counter_of_32_bits_ends_and_does_not_begin_anew() {
        ends(AtomicU32::new(1));
        ends(Uncontended::new(1));
    }
}
