//! Expiry, tick by tick, of timers that are spread over a minute of ticks or share
//! one tick.

use std::time::Duration;

use fastrand::Rng;

use super::expire_live;
use super::setup::{GROWTH, SPAN};
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::Timers;
use crate::rivals::owners;
use crate::rivals::tickwheel_engine::{MANY, expire_through_worker, many_at_a_time, one_by_one};
use crate::stopwatch::Stopwatch;

/// Extra ticks, because engines round a deadline up in different ways.
pub const GRACE: u64 = 2;

const STORM: usize = 1_000_000;

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in effort.sizes(&GROWTH) {
        cases.extend(owners!(case("spread", SPAN, size)));
        cases.extend(through_worker("spread, to a worker", SPAN, size));
    }
    cases.extend(owners!(case("one tick", 1, STORM)));
    cases.extend(through_worker("one tick, to a worker", 1, STORM));
    cases.extend(expire_live::cases(effort));
    cases
}

fn deadlines(size: usize, span: u64) -> impl Iterator<Item = u64> {
    let mut rng = Rng::with_seed(5);
    (0..size).map(move |_| rng.u64(1..=span))
}

fn case<T: Timers>(metric: &'static str, span: u64, size: usize) -> Case {
    Case::new(T::NAME, T::THREAD_SAFE, size, move || {
        let elapsed = run::<T>(span, size);
        vec![Reading::per_step(metric, elapsed, size)]
    })
}

fn run<T: Timers>(span: u64, size: usize) -> Duration {
    let mut timers = T::new();
    let payloads = 0..size as u64;
    let ids: Vec<_> = deadlines(size, span)
        .zip(payloads)
        .map(|(deadline, payload)| timers.schedule(deadline, payload))
        .collect();
    let mut fired = Vec::new();
    let mut count = 0;
    let begun = Stopwatch::start();
    for tick in 1..=span + GRACE {
        timers.advance(tick, &mut fired);
        count += fired.len();
        fired.clear();
    }
    let elapsed = begun.elapsed();
    assert_eq!(count, size, "{} lost timers", T::NAME);
    drop(ids);
    elapsed
}

fn through_worker(metric: &'static str, span: u64, size: usize) -> [Case; 2] {
    let case = |name, worker| {
        Case::new(name, true, size, move || {
            let elapsed = expire_through_worker(worker, deadlines(size, span), span);
            vec![Reading::per_step(metric, elapsed, size)]
        })
    };
    [
        case("tickwheel engine", one_by_one),
        case(MANY, many_at_a_time),
    ]
}
