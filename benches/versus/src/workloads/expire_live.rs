//! Expiry on the real clock, to a worker that counts: the processor time of all
//! threads but the one that schedules.

use std::time::Duration;

use fastrand::Rng;

use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::Sleepers;
use crate::rivals::sleepers;
use crate::rivals::tickwheel_engine::{MANY, count_with, many_at_a_time};
use crate::stopwatch::Stopwatch;

/// Puts the first deadline after the last schedule, with time to spare.
const LEAD_PER_TIMER: Duration = Duration::from_micros(2);

/// Spreads a million timers over two seconds.
const SPREAD_PER_TIMER: Duration = Duration::from_micros(2);

#[derive(Clone, Copy)]
struct Setting {
    metric: &'static str,
    span_per_timer: Duration,
}

const SPREAD: Setting = Setting {
    metric: "spread, CPU of the engine",
    span_per_timer: SPREAD_PER_TIMER,
};

const ONE_TICK: Setting = Setting {
    metric: "one tick, CPU of the engine",
    span_per_timer: Duration::ZERO,
};

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in effort.either(vec![100_000], vec![100_000, 1_000_000]) {
        cases.extend(sleepers!(case(SPREAD, size)));
        cases.push(case_of(MANY, count_many, SPREAD, size));
        cases.extend(sleepers!(case(ONE_TICK, size)));
        cases.push(case_of(MANY, count_many, ONE_TICK, size));
    }
    cases
}

fn case<S: Sleepers>(setting: Setting, size: usize) -> Case {
    case_of(S::NAME, S::count, setting, size)
}

fn count_many(delays: &[Duration]) {
    count_with(many_at_a_time, delays);
}

fn case_of(name: &'static str, count: fn(&[Duration]), setting: Setting, size: usize) -> Case {
    Case::new(name, true, size, move || {
        let delays = delays(setting, size);
        let everybody = Stopwatch::start_all();
        let scheduling = Stopwatch::start();
        count(&delays);
        let scheduling = scheduling.elapsed();
        let others = everybody.elapsed().saturating_sub(scheduling);
        vec![Reading::per_step(setting.metric, others, size)]
    })
}

fn delays(setting: Setting, size: usize) -> Vec<Duration> {
    let mut rng = Rng::with_seed(16);
    let lead = LEAD_PER_TIMER * size as u32;
    let span = setting.span_per_timer * size as u32;
    (0..size).map(|_| lead + span.mul_f64(rng.f64())).collect()
}
