//! How many pauses of this processor a time is.
//!
//! A pause takes from one to sixty nanoseconds, depending on the processor. How
//! long a waiter polls decides how long a call waits beside a busy thread, so it
//! is a time and not a number of pauses. The clock is not asked while waiting,
//! because that costs as much as the shorter waits; how long a pause takes is
//! measured once.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use crate::sync::primitives::IS_MODEL;

/// A clock may have steps of a hundred nanoseconds: a sample is longer.
const SAMPLE: u32 = 128;
const SAMPLES: u32 = 8;
/// Beyond what processors do, so that a clock that stands still, or a thread
/// that was put aside in every sample, cannot make a wait endless, or nothing.
const LEAST_PER_MICRO: u32 = 8;
const MOST_PER_MICRO: u32 = 1_000;

/// How many pauses so many nanoseconds are, at least one. In a model: one.
pub(super) fn pauses(nanos: u32) -> u32 {
    if IS_MODEL {
        return 1;
    }
    (nanos * pauses_per_micro() / 1_000).max(1)
}

/// Measured when it is first asked for, in some microseconds; by several threads
/// if they ask at once, which does no harm.
pub(super) fn pauses_per_micro() -> u32 {
    static MEASURED: AtomicU32 = AtomicU32::new(0);
    match MEASURED.load(Ordering::Relaxed) {
        0 => {
            let measured = measure();
            MEASURED.store(measured, Ordering::Relaxed);
            measured
        }
        measured => measured,
    }
}

/// Counts by the fastest sample: in the others the thread was interrupted.
fn measure() -> u32 {
    let sample = |_| {
        let begun = Instant::now();
        (0..SAMPLE).for_each(|_| spin_loop());
        begun.elapsed().as_nanos().max(1)
    };
    let fastest = (0..SAMPLES).map(sample).min().unwrap_or(1);
    let per_micro = u128::from(SAMPLE) * 1_000 / fastest;
    (per_micro as u32).clamp(LEAST_PER_MICRO, MOST_PER_MICRO)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lasts_about_as_long_as_it_says() {
        const NANOS: u32 = 50_000;
        let sample = || {
            let begun = Instant::now();
            (0..pauses(NANOS)).for_each(|_| spin_loop());
            begun.elapsed().as_nanos() as u32
        };
        // The fastest, because the machine may be busy, and by a factor, because
        // the processor may change its pace.
        let fastest = (0..100).map(|_| sample()).min().unwrap();
        assert!((NANOS / 8..NANOS * 8).contains(&fastest), "{fastest} ns");
    }
}
