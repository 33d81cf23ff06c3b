//! A pair: cancels the oldest timer in flight and schedules another.

use std::collections::VecDeque;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use fastrand::Rng;

use super::common::{GROWTH, SPAN};
use crate::case::{Case, Effort, Metric};
use crate::rival::{Caller, Shared, Timers};
use crate::rivals::{owners, shared};
use crate::stopwatch::{Stopwatch, per_step};

const FEW: usize = 1_024;
const MANY: usize = 65_536;

/// The work of each thread.
#[derive(Clone, Copy)]
struct Work {
    metrics: &'static [Metric],
    in_flight: usize,
    /// Timers that stay for good: how does the cost grow with untouched timers?
    background: usize,
    /// Whether the caller knows the deadline. Otherwise the engine must read its clock.
    knows_deadline: bool,
    steps: usize,
}

impl Work {
    fn size(self) -> usize {
        if self.background > 0 { self.background } else { self.in_flight }
    }
}

pub fn cases(effort: Effort) -> Vec<Case> {
    let work = |metrics, in_flight| Work {
        metrics,
        in_flight,
        background: 0,
        knows_deadline: true,
        steps: effort.steps(),
    };
    let mut cases = Vec::new();
    for in_flight in [FEW, MANY] {
        cases.extend(owners!(owner(work(&[("one owner", "ns")], in_flight))));
    }
    for background in effort.sizes(&GROWTH) {
        let work = |metrics| Work { background, ..work(metrics, FEW) };
        cases.extend(owners!(owner(work(&[("background, one owner", "ns")]))));
        cases.extend(shared!(threaded(work(&[("background, shared", "ns")]), 1)));
    }
    for threads in [1, 2, 4, 8] {
        for in_flight in [FEW, MANY] {
            cases.extend(shared!(threaded(work(&[("shared", "ns")], in_flight), threads)));
        }
        let work = work(&[("shared, only a delay known", "ns")], FEW);
        let work = Work { knows_deadline: false, ..work };
        cases.extend(shared!(threaded(work, threads)));
    }
    cases
}

fn owner<T: Timers>(work: Work) -> Case {
    Case::of::<T>(work.metrics, work.size(), move || {
        let mut rng = Rng::with_seed(1);
        let mut timers = T::new();
        let _stay: Vec<_> =
            (0..work.background).map(|_| timers.schedule(rng.u64(1..=SPAN), 0)).collect();
        let mut in_flight: VecDeque<_> =
            (0..work.in_flight).map(|_| timers.schedule(rng.u64(1..=SPAN), 0)).collect();
        let begun = Stopwatch::start();
        for _ in 0..work.steps {
            if let Some(oldest) = in_flight.pop_front() {
                timers.cancel(oldest);
            }
            in_flight.push_back(timers.schedule(rng.u64(1..=SPAN), 0));
        }
        vec![begun.per_step(work.steps)]
    })
}

/// The work of a single thread is measured in processor time, that of the engine's own
/// threads included. Several threads are timed from the first start to the last end: with
/// perfect scaling, and a core for each, that takes as long as one thread does.
fn threaded<E: Shared>(work: Work, threads: usize) -> Case {
    let case = Case::of::<E>(work.metrics, work.size(), move || {
        let (engine, start) = (E::start(), Barrier::new(threads));
        let laps: Vec<(Instant, Instant, f64)> = thread::scope(|scope| {
            let run = |seed| {
                scope.spawn({
                    let (engine, start) = (&engine, &start);
                    move || run_thread(engine, work, seed, start)
                })
            };
            let running: Vec<_> = (0..threads as u64).map(run).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let begun = laps.iter().map(|lap| lap.0).min().expect("a thread ran");
        let ended = laps.iter().map(|lap| lap.1).max().expect("a thread ran");
        match laps[..] {
            [(_, _, processor)] => vec![processor],
            _ => vec![per_step(ended - begun, work.steps)],
        }
    });
    case.on_threads(threads)
}

/// Returns the beginning, the end, and the processor time of the whole process for each step.
fn run_thread<E: Shared>(
    engine: &E,
    work: Work,
    seed: u64,
    start: &Barrier,
) -> (Instant, Instant, f64) {
    let mut rng = Rng::with_seed(seed);
    let mut caller = engine.caller();
    let _stay: Vec<_> =
        (0..work.background).map(|_| schedule(&mut caller, work, &mut rng)).collect();
    let mut in_flight: VecDeque<_> =
        (0..work.in_flight).map(|_| schedule(&mut caller, work, &mut rng)).collect();
    engine.settle();
    start.wait();
    let (stopwatch, begun) = (Stopwatch::start_all(), Instant::now());
    for _ in 0..work.steps {
        if let Some(oldest) = in_flight.pop_front() {
            caller.cancel(oldest);
        }
        in_flight.push_back(schedule(&mut caller, work, &mut rng));
    }
    engine.settle();
    (begun, Instant::now(), stopwatch.per_step(work.steps))
}

/// Inlined into the loop that is timed, as a user's own call would be.
#[inline(always)]
fn schedule<C: Caller>(caller: &mut C, work: Work, rng: &mut Rng) -> C::Id {
    if work.knows_deadline {
        caller.schedule(rng.u64(1..=SPAN), 0)
    } else {
        caller.schedule_after(rng.u64(1..=SPAN), 0)
    }
}
