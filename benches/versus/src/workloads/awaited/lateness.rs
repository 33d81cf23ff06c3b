//! The lateness of five hundred tasks that sleep again and again, where their code
//! runs. Timers that are late by a tick of a millisecond on purpose are not compared with
//! those that wake their thread for each deadline.

use std::time::Duration;

use super::sleepers;
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::{Awaited, TICK};
use crate::rivals::awaited;
use crate::rivals::futures::tickwheel_driven::Driven;

const SLEEPERS: usize = 500;

/// The tick of the engine that is compared with timers that have none.
const FINE_MICROS: u64 = 1;

/// The names of the metrics: of ticks of a millisecond, and of finer ones or none.
const SHARES: [([&str; 2], f64); 5] = [
    (["min", "min, fine"], 0.0),
    (["p10", "p10, fine"], 0.1),
    (["p50", "p50, fine"], 0.5),
    (["p90", "p90, fine"], 0.9),
    (["p99", "p99, fine"], 0.99),
];

pub fn cases(effort: Effort) -> Vec<Case> {
    let watched = effort.either(Duration::from_millis(300), Duration::from_secs(3));
    let mut cases = awaited!(case(watched));
    cases.push(case::<Driven<FINE_MICROS>>(watched));
    cases
}

fn case<A: Awaited>(watched: Duration) -> Case {
    let case = Case::new(A::NAME, true, SLEEPERS, move || {
        let slept = sleepers::run::<A>(SLEEPERS, watched);
        let last = slept.late.len() - 1;
        let is_fine = A::TICK < TICK;
        let late = |(metrics, share): ([&str; 2], f64)| {
            let nanos = slept.late[(last as f64 * share) as usize];
            Reading::new(metrics[usize::from(is_fine)], "µs", nanos as f64 / 1_000.0)
        };
        SHARES.into_iter().map(late).collect()
    });
    let case = case.on_threads(sleepers::WORKERS);
    case.unless((!A::FIRES).then_some("nothing fires there"))
}
