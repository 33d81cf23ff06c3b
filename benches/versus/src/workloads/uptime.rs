//! Years of uptime: with a far timer present, the clock crosses the ticks where the
//! level of a wheel wraps, and ends at the last tick.

use std::time::Duration;

use fastrand::Rng;

use super::expire::GRACE;
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::Timers;
use crate::rivals::owners;
use crate::stopwatch::Stopwatch;

/// The ticks at which the levels of wheels with 64 and 256 slots wrap.
const WRAPS_LOG2: [u32; 8] = [6, 8, 12, 16, 18, 24, 30, 32];

/// Beyond all wraps, and within the range of every engine.
const FAR: u64 = 1 << 35;

/// The number of timers around each wrap, and the ticks on either side.
const TIMERS: usize = 1_000;
const AROUND: u64 = 32;

pub fn cases(_: Effort) -> Vec<Case> {
    let mut cases = owners!(wraps());
    cases.extend(owners!(end_of_time()));
    cases
}

fn wraps<T: Timers>() -> Case {
    Case::new(T::NAME, T::THREAD_SAFE, TIMERS, || {
        let mut timers = T::new();
        let far = timers.schedule(FAR, 0);
        let mut elapsed = Duration::ZERO;
        for log2 in WRAPS_LOG2 {
            let wrap = 1 << log2;
            elapsed += cross(&mut timers, wrap - AROUND, wrap + AROUND);
        }
        drop(far);
        let count = TIMERS * WRAPS_LOG2.len();
        vec![Reading::per_step("level wraps", elapsed, count)]
    })
}

fn end_of_time<T: Timers>() -> Case {
    let case = Case::new(T::NAME, T::THREAD_SAFE, TIMERS, || {
        let mut timers = T::new();
        let elapsed = cross(&mut timers, u64::MAX - 2 * AROUND, u64::MAX);
        vec![Reading::per_step("end of u64", elapsed, TIMERS)]
    });
    case.unless((!T::ENDLESS).then_some("its time ends before that of u64 does"))
}

/// Jumps to `first` and advances tick by tick to `last`. Times everything from the
/// schedule of the timers between to the expiry of the last.
fn cross<T: Timers>(timers: &mut T, first: u64, last: u64) -> Duration {
    let mut rng = Rng::with_seed(13);
    let mut fired = Vec::with_capacity(TIMERS);
    timers.advance(first, &mut fired);
    let begun = Stopwatch::start();
    let ids: Vec<_> = (0..TIMERS)
        .map(|_| timers.schedule(first + rng.u64(1..=last - first), 0))
        .collect();
    for now in first + 1..=last.saturating_add(GRACE) {
        timers.advance(now, &mut fired);
        if now == u64::MAX {
            break;
        }
    }
    let elapsed = begun.elapsed();
    assert_eq!(fired.len(), TIMERS, "{} lost timers, or was early", T::NAME);
    drop(ids);
    elapsed
}
