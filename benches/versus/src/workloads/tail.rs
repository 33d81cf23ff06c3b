//! The slowest calls, while storage grows and while a cold million expires on the
//! thread's own shard. The figures include the two readings of the clock around
//! each call.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::setup::SPAN;
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::{Caller, Shared};
use crate::rivals::shared;

const IN_FLIGHT: usize = 1_024;

/// The least delay of timers in timed calls, so that none of these expires.
const LATER_TICKS: u64 = 60_000;

/// Timers that expire per tick.
const PER_TICK: usize = 1_000;

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = shared!(growing(effort.either(300_000, 10_000_000)));
    cases.extend(shared!(expiring(effort.either(200_000, 1_000_000))));
    cases
}

/// Schedules all timers from nothing, and cancels them in random order.
fn growing<E: Shared>(size: usize) -> Case {
    Case::new(E::NAME, E::THREAD_SAFE, size, move || {
        let mut rng = Rng::with_seed(14);
        let engine = E::start();
        let mut caller = engine.caller();
        let mut calls = Calls::with_capacity(size);
        let mut ids = Vec::with_capacity(size);
        for _ in 0..size {
            let delay = LATER_TICKS + rng.u64(1..=SPAN);
            ids.push(calls.schedule(|| caller.schedule(delay, 0)));
        }
        engine.settle();
        rng.shuffle(&mut ids);
        for id in ids {
            calls.cancel(|| caller.cancel(id));
        }
        calls.readings("growing")
    })
}

/// Cancels and schedules timers on a thread while its earlier timers expire.
fn expiring<E: Shared>(size: usize) -> Case {
    let case = Case::new(E::NAME, E::THREAD_SAFE, size, move || {
        let engine = E::start();
        let is_over = AtomicBool::new(false);
        let calls = thread::scope(|scope| {
            scope.spawn(|| engine.take_until(&is_over));
            let calls = meanwhile(&engine, size);
            is_over.store(true, Ordering::Relaxed);
            calls
        });
        calls.readings("expiring")
    });
    case.unless((!E::FIRES).then_some("nothing fires there by itself"))
}

fn meanwhile<E: Shared>(engine: &E, size: usize) -> Calls {
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
    let mut in_flight: VecDeque<_> = (0..IN_FLIGHT)
        .map(|_| caller.schedule(LATER_TICKS + rng.u64(1..=SPAN), 0))
        .collect();
    engine.settle();
    let first = begun + Duration::from_millis(2 * ticks);
    thread::sleep(first.saturating_duration_since(Instant::now()));
    let mut calls = Calls::with_capacity(size);
    while begun.elapsed() < Duration::from_millis(3 * ticks) {
        if let Some(oldest) = in_flight.pop_front() {
            calls.cancel(|| caller.cancel(oldest));
        }
        let delay = LATER_TICKS + rng.u64(1..=SPAN);
        in_flight.push_back(calls.schedule(|| caller.schedule(delay, 0)));
    }
    drop(cold);
    calls
}

/// The time of each call, in nanoseconds.
struct Calls {
    schedules: Vec<u32>,
    cancels: Vec<u32>,
}

impl Calls {
    fn with_capacity(count: usize) -> Calls {
        Calls {
            schedules: Vec::with_capacity(count),
            cancels: Vec::with_capacity(count),
        }
    }

    fn schedule<R>(&mut self, call: impl FnOnce() -> R) -> R {
        timed(&mut self.schedules, call)
    }

    fn cancel(&mut self, call: impl FnOnce()) {
        timed(&mut self.cancels, call);
    }

    fn readings(mut self, phase: &str) -> Vec<Reading> {
        let mut readings = slowest(phase, "schedule", &mut self.schedules);
        readings.extend(slowest(phase, "cancel", &mut self.cancels));
        readings
    }
}

fn timed<R>(times: &mut Vec<u32>, call: impl FnOnce() -> R) -> R {
    let begun = Instant::now();
    let done = call();
    let nanos = begun.elapsed().as_nanos();
    times.push(nanos.try_into().unwrap_or(u32::MAX));
    done
}

fn slowest(phase: &str, call: &str, nanos: &mut [u32]) -> Vec<Reading> {
    nanos.sort_unstable();
    let last = nanos.len() - 1;
    let shares = [
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("p99.99", 0.9999),
        ("max", 1.0),
    ];
    let reading = |(name, share): (&str, f64)| {
        let slow = f64::from(nanos[(last as f64 * share) as usize]);
        Reading::new(format!("{phase}, {call}, {name}"), "ns", slow)
    };
    shares.into_iter().map(reading).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_call_is_the_maximum() {
        let mut nanos: Vec<u32> = (1..=10_000).rev().collect();
        let readings = slowest("growing", "cancel", &mut nanos);
        let values: Vec<f64> = readings
            .iter()
            .filter_map(|reading| reading.value)
            .collect();
        assert_eq!(values, [9_900.0, 9_990.0, 9_999.0, 10_000.0]);
    }
}
