//! Long uptimes: jumps of an hour or a year while no timer is due, with one that is far away;
//! and ticks at which the level of a wheel wraps, with timers around each.

use std::time::Duration;

use fastrand::Rng;

use super::common::GRACE;
use crate::case::{Case, Effort, Metric};
use crate::rival::Timers;
use crate::rivals::owners;
use crate::stopwatch::{Stopwatch, per_step};

const HOUR_TICKS: u64 = 3_600_000;
const YEAR_TICKS: u64 = 8_766 * HOUR_TICKS;

/// Ninety weeks: beyond all wraps, and within the range of every engine.
const FAR: u64 = 90 * 168 * HOUR_TICKS;

/// The ticks at which the levels of wheels with 64 and 256 slots wrap.
const WRAPS_LOG2: [u32; 8] = [6, 8, 12, 16, 18, 24, 30, 32];

/// The number of timers around each wrap, and the ticks on either side.
const TIMERS: usize = 1_000;
const AROUND: u64 = 32;

pub fn cases(_: Effort) -> Vec<Case> {
    let mut cases = owners!(jumps(&[("jumps of an hour", "ns")], HOUR_TICKS));
    cases.extend(owners!(jumps(&[("jumps of a year", "ns")], YEAR_TICKS)));
    cases.extend(owners!(wraps()));
    cases
}

/// A single jump is shorter than a reading of the clock, so many collections make it.
fn jumps<T: Timers>(metrics: &'static [Metric], ticks: u64) -> Case {
    Case::of::<T>(metrics, 1, move || {
        let mut all: Vec<T> = (0..32).map(|_| T::new()).collect();
        let _ids: Vec<_> = all.iter_mut().map(|one| one.schedule(FAR, 0)).collect();
        let jumps = (FAR / ticks).min(1_000);
        let mut fired = Vec::new();
        let begun = Stopwatch::start();
        for jump in 1..=jumps {
            all.iter_mut().for_each(|one| one.advance(jump * ticks, &mut fired));
        }
        let each = begun.per_step(all.len() * jumps as usize);
        assert!(fired.is_empty(), "nothing was due");
        // In reverse order, as the guards of a runtime require.
        while all.pop().is_some() {}
        vec![each]
    })
}

fn wraps<T: Timers>() -> Case {
    Case::of::<T>(&[("level wraps", "ns")], TIMERS, || {
        let mut timers = T::new();
        let _far = timers.schedule(FAR, 0);
        let cross = |log2| cross(&mut timers, 1_u64 << log2);
        let elapsed: Duration = WRAPS_LOG2.into_iter().map(cross).sum();
        vec![per_step(elapsed, TIMERS * WRAPS_LOG2.len())]
    })
}

/// Times everything from the schedule of the timers around a wrap to the expiry of the last.
fn cross<T: Timers>(timers: &mut T, wrap: u64) -> Duration {
    let (first, last) = (wrap - AROUND, wrap + AROUND);
    let mut rng = Rng::with_seed(13);
    let mut fired = Vec::with_capacity(TIMERS);
    timers.advance(first, &mut fired);
    let begun = Stopwatch::start();
    let mut schedule = |_| timers.schedule(first + rng.u64(1..=2 * AROUND), 0);
    let _ids: Vec<_> = (0..TIMERS).map(&mut schedule).collect();
    for now in first + 1..=last + GRACE {
        timers.advance(now, &mut fired);
    }
    let elapsed = begun.elapsed();
    assert_eq!(fired.len(), TIMERS, "{} lost timers, or was early", T::NAME);
    elapsed
}
