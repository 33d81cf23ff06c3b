//! Expiry of timers that are spread over time or share one tick: tick by tick with one owner,
//! and on the real clock with a worker that counts, in the processor time of all threads from
//! the last schedule on.

use std::time::Duration;

use fastrand::Rng;

use super::common::{GRACE, GROWTH, SPAN};
use crate::case::{Case, Effort, Metric};
use crate::rival::{Sleepers, Timers};
use crate::rivals::{owners, sleepers};
use crate::stopwatch::{Stopwatch, per_step};

/// Puts the first deadline after the last schedule, with time to spare, and spreads a million
/// timers over two seconds.
const PER_TIMER: Duration = Duration::from_micros(2);

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in effort.sizes(&GROWTH) {
        cases.extend(owners!(owner(&[("spread, one owner", "ns")], SPAN, size)));
    }
    for size in effort.sizes(&[100_000, 1_000_000]) {
        cases.extend(owners!(owner(&[("one tick, one owner", "ns")], 1, size)));
    }
    // A program that isn't optimised schedules more slowly, and still more so on a busy machine.
    let (lead, sizes) = match effort {
        Effort::Check => (100 * PER_TIMER, vec![10_000]),
        Effort::Quick => (PER_TIMER, vec![100_000]),
        Effort::Full => (PER_TIMER, vec![100_000, 1_000_000]),
    };
    for size in sizes {
        let (metrics, span): (&[Metric], _) = (&[("spread, to a worker", "ns")], PER_TIMER);
        cases.extend(sleepers!(to_a_worker(metrics, lead, span, size)));
        let (metrics, span): (&[Metric], _) = (&[("one tick, to a worker", "ns")], Duration::ZERO);
        cases.extend(sleepers!(to_a_worker(metrics, lead, span, size)));
    }
    cases
}

fn owner<T: Timers>(metrics: &'static [Metric], span: u64, size: usize) -> Case {
    Case::of::<T>(metrics, size, move || {
        let mut rng = Rng::with_seed(5);
        let mut timers = T::new();
        let payloads = 0..size as u64;
        let _ids: Vec<_> = payloads.map(|it| timers.schedule(rng.u64(1..=span), it)).collect();
        let (mut fired, mut count) = (Vec::new(), 0);
        let begun = Stopwatch::start();
        for tick in 1..=span + GRACE {
            timers.advance(tick, &mut fired);
            count += fired.len();
            fired.clear();
        }
        let each = begun.per_step(size);
        assert_eq!(count, size, "{} lost timers", T::NAME);
        vec![each]
    })
}

fn to_a_worker<S: Sleepers>(
    metrics: &'static [Metric],
    lead_per_timer: Duration,
    span_per_timer: Duration,
    size: usize,
) -> Case {
    Case::of::<S>(metrics, size, move || {
        let mut rng = Rng::with_seed(16);
        let (lead, span) = (lead_per_timer * size as u32, span_per_timer * size as u32);
        let delays: Vec<_> = (0..size).map(|_| lead + span.mul_f64(rng.f64())).collect();
        vec![per_step(S::count(&delays), size)]
    })
}
