//! The lateness of five hundred tasks that sleep again and again, where their code
//! runs.

use std::time::Duration;

use super::sleepers;
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::Awaited;
use crate::rivals::awaited;

const SLEEPERS: usize = 500;

const SHARES: [(&str, f64); 5] = [
    ("min", 0.0),
    ("p10", 0.1),
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
];

pub fn cases(effort: Effort) -> Vec<Case> {
    let watched = effort.either(Duration::from_millis(300), Duration::from_secs(3));
    awaited!(case(watched))
}

fn case<A: Awaited>(watched: Duration) -> Case {
    let case = Case::new(A::NAME, true, SLEEPERS, move || {
        let slept = sleepers::run::<A>(SLEEPERS, watched);
        let last = slept.late.len() - 1;
        let late = |(metric, share): (&str, f64)| {
            let nanos = slept.late[(last as f64 * share) as usize];
            Reading::new(metric, "µs", nanos as f64 / 1_000.0)
        };
        SHARES.into_iter().map(late).collect()
    });
    let case = case.on_threads(sleepers::WORKERS);
    case.unless((!A::FIRES).then_some("nothing fires there"))
}
