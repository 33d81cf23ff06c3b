//! Jumps of the clock by an hour or a year while no timer is due: without a
//! timer, and with one that is far away.

use std::hint::black_box;
use std::time::Duration;

use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::Timers;
use crate::rivals::owners;
use crate::stopwatch::Stopwatch;

const HOUR_TICKS: u64 = 3_600_000;
const YEAR_TICKS: u64 = 8_766 * HOUR_TICKS;

/// Ninety weeks, within the range of every engine.
const FAR: u64 = 90 * 168 * HOUR_TICKS;

const JUMPS: usize = 10_000;

/// Enough to hide the cost of reading the processor time, and few enough to stay
/// in the cache.
const COLLECTIONS: usize = 32;

pub fn cases(_: Effort) -> Vec<Case> {
    let mut cases = owners!(empty("an hour, no timer", HOUR_TICKS));
    cases.extend(owners!(one_far_timer("an hour, one far timer", HOUR_TICKS)));
    cases.extend(owners!(empty("a year, no timer", YEAR_TICKS)));
    cases.extend(owners!(one_far_timer("a year, one far timer", YEAR_TICKS)));
    cases
}

/// Measures one collection that jumps repeatedly.
fn empty<T: Timers>(metric: &'static str, ticks: u64) -> Case {
    Case::new(T::NAME, T::THREAD_SAFE, 0, move || {
        let mut timers = T::new();
        let jumps = 1..=JUMPS as u64;
        let elapsed = advance(jumps.map(|jump| jump * ticks), |now, fired| {
            // Otherwise the compiler looks into an empty map once for all jumps.
            black_box(&mut timers).advance(now, fired);
        });
        vec![Reading::per_step(metric, elapsed, JUMPS)]
    })
}

/// Measures as many jumps as the far timer allows. Has several collections,
/// because a single jump of a year is shorter than a reading of the clock.
fn one_far_timer<T: Timers>(metric: &'static str, ticks: u64) -> Case {
    Case::new(T::NAME, T::THREAD_SAFE, 1, move || {
        let mut all: Vec<T> = (0..COLLECTIONS).map(|_| T::new()).collect();
        let ids: Vec<_> = all.iter_mut().map(|one| one.schedule(FAR, 0)).collect();
        let jumps = 1..=(FAR / ticks).min(1_000);
        let count = all.len() * jumps.clone().count();
        let elapsed = advance(jumps.map(|jump| jump * ticks), |now, fired| {
            all.iter_mut().for_each(|one| one.advance(now, fired));
        });
        drop(ids);
        // In reverse order, as the guards of a runtime require.
        while all.pop().is_some() {}
        vec![Reading::per_step(metric, elapsed, count)]
    })
}

fn advance(
    times: impl Iterator<Item = u64>,
    mut advance: impl FnMut(u64, &mut Vec<u64>),
) -> Duration {
    let mut fired = Vec::new();
    let begun = Stopwatch::start();
    times.for_each(|now| advance(now, &mut fired));
    let elapsed = begun.elapsed();
    assert!(fired.is_empty(), "nothing was due");
    elapsed
}
