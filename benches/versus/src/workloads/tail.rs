//! The slowest calls while a million cold timers expire on the thread's own shard. The figures
//! include the two readings of the clock around each call.

use std::collections::VecDeque;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::common::{SPAN, quantile};
use crate::case::{Case, Effort};
use crate::rival::{Caller, Shared};
use crate::rivals::shared;

/// The time from one call to the next.
const PACE: Duration = Duration::from_micros(2);

/// Timers that expire per tick.
const PER_TICK: usize = 1_000;

pub fn cases(effort: Effort) -> Vec<Case> {
    shared!(case(effort.either(200_000, 1_000_000)))
}

fn case<E: Shared>(size: usize) -> Case {
    let metrics = &[
        ("schedule, p99", "ns"),
        ("schedule, p99.99", "ns"),
        ("cancel, p99", "ns"),
        ("cancel, p99.99", "ns"),
    ];
    Case::of::<E>(metrics, size, move || {
        let (engine, is_over) = (E::start(), AtomicBool::new(false));
        let calls = thread::scope(|scope| {
            scope.spawn(|| engine.take_until(&is_over));
            let calls = while_expiring(&engine, size);
            is_over.store(true, Ordering::Relaxed);
            calls
        });
        let slowest = |mut nanos: Vec<u64>| {
            nanos.sort_unstable();
            [0.99, 0.9999].map(|share| quantile(&nanos, share) as f64)
        };
        calls.into_iter().flat_map(slowest).collect()
    })
}

/// Returns the nanoseconds of each schedule and of each cancel.
fn while_expiring<E: Shared>(engine: &E, size: usize) -> [Vec<u64>; 2] {
    let mut rng = Rng::with_seed(15);
    let mut caller = engine.caller();
    let ticks = (size / PER_TICK) as u64;
    // Scheduling takes about as long as the expiry.
    let begun = Instant::now();
    let mut cold = Vec::with_capacity(size);
    for _ in 0..size {
        let deadline = 2 * ticks + rng.u64(1..=ticks);
        let past = begun.elapsed().as_millis() as u64;
        cold.push(caller.schedule(deadline.saturating_sub(past), 0));
    }
    // Those of the timed calls do not expire.
    let mut later = || SPAN + rng.u64(1..=SPAN);
    let mut in_flight: VecDeque<_> = (0..1_024).map(|_| caller.schedule(later(), 0)).collect();
    engine.settle();
    let first = begun + Duration::from_millis(2 * ticks);
    thread::sleep(first.saturating_duration_since(Instant::now()));
    let (mut schedules, mut cancels) = (Vec::new(), Vec::new());
    let mut due = Instant::now();
    // One at least, should filling alone have taken as long.
    while schedules.is_empty() || begun.elapsed() < Duration::from_millis(3 * ticks) {
        let oldest = in_flight.pop_front().expect("each round adds one");
        timed(&mut due, &mut cancels, || caller.cancel(oldest));
        let delay = later();
        in_flight.push_back(timed(&mut due, &mut schedules, || caller.schedule(delay, 0)));
    }
    [schedules, cancels]
}

/// Times a call. All engines get as many calls in the same time: otherwise a fast one would get
/// more between two that have to wait, and hide those.
fn timed<R>(due: &mut Instant, nanos: &mut Vec<u64>, call: impl FnOnce() -> R) -> R {
    *due = (*due + PACE).max(Instant::now());
    while Instant::now() < *due {
        spin_loop();
    }
    let begun = Instant::now();
    let done = call();
    nanos.push(begun.elapsed().as_nanos() as u64);
    done
}
