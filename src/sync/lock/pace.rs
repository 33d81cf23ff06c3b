//! Converts nanoseconds into a number of pause instructions.
//!
//! A pause takes between one nanosecond and a few dozen, depending on the
//! processor. Waits are given as times and not as numbers of pauses, because the
//! time for which a waiter polls is about the time that a call waits beside a busy
//! thread. Waiters do not read the clock, because a reading costs as much as the
//! shorter waits. The length of a pause is measured once instead.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use crate::sync::primitives::IS_MODEL;

/// The number of pauses in a sample. A sample outlasts a step of a coarse clock.
const SAMPLE: u32 = 128;
const SAMPLES: u32 = 8;
/// Limits beyond the range of real processors. They keep a wait from being endless
/// or empty if the clock stands still or the thread is preempted in every sample.
const LEAST_PER_MICRO: u32 = 8;
const MOST_PER_MICRO: u32 = 1_000;

/// Returns the number of pauses in `nanos`, at least one. In a model, returns one.
pub(super) fn pauses(nanos: u32) -> u32 {
    if IS_MODEL {
        return 1;
    }
    (nanos * pauses_per_micro() / 1_000).max(1)
}

/// Returns the number of pauses in a microsecond. The first call measures it, in a
/// few microseconds. Concurrent first calls all measure it, without harm.
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

/// Uses the fastest sample, because the thread may be interrupted in the others.
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
        // Takes the fastest sample, because the machine may be busy. Allows a
        // factor, because the processor may change its pace.
        let fastest = (0..100).map(|_| sample()).min().unwrap();
        assert!((NANOS / 8..NANOS * 8).contains(&fastest), "{fastest} ns");
    }
}
