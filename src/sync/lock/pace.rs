//! Converts nanoseconds into pause instructions of this processor.
//!
//! A pause takes between one nanosecond and some dozens, depending on the
//! processor. How long a waiter polls decides how long a call waits beside a busy
//! thread, so waits are given as times and not as numbers of pauses. Waiters do not
//! read the clock, because a reading costs as much as the shorter waits; the length
//! of a pause is measured once.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use crate::sync::primitives::IS_MODEL;

/// Pauses in a sample. It is longer than the steps of coarse clocks.
const SAMPLE: u32 = 128;
const SAMPLES: u32 = 8;
/// Beyond the range of real processors, so that neither a clock that stands still
/// nor a thread that is preempted in every sample makes a wait endless or empty.
const LEAST_PER_MICRO: u32 = 8;
const MOST_PER_MICRO: u32 = 1_000;

/// Returns how many pauses take `nanos`, at least one. In a model, returns one.
pub(super) fn pauses(nanos: u32) -> u32 {
    if IS_MODEL {
        return 1;
    }
    (nanos * pauses_per_micro() / 1_000).max(1)
}

/// Returns how many pauses take a microsecond. The first call measures that, in
/// some microseconds; several first calls at once all do, without harm.
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

/// Takes the fastest sample, because the thread may be interrupted in others.
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
