//! A pair: cancels the oldest timer in flight and schedules another.

use std::collections::VecDeque;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::setup::{GROWTH, SPAN};
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::{Caller, Shared, Timers};
use crate::rivals::{owners, shared};
use crate::stopwatch::Stopwatch;

/// The timers of a thread: in flight, and in the background for good.
#[derive(Clone, Copy)]
struct Load {
    metric: &'static str,
    in_flight: usize,
    background: usize,
}

impl Load {
    /// All timers are in flight.
    fn in_flight(size: usize) -> Load {
        Load {
            metric: "in flight",
            in_flight: size,
            background: 0,
        }
    }

    /// A few timers are in flight, and all others stay. Shows how the cost grows
    /// with untouched timers.
    fn background(size: usize) -> Load {
        Load {
            metric: "background",
            in_flight: FEW,
            background: size,
        }
    }

    /// Returns the number that varies.
    fn size(self) -> usize {
        match self.background {
            0 => self.in_flight,
            background => background,
        }
    }
}

const FEW: usize = 1_024;
const MANY: usize = 65_536;

const THREADS: [usize; 3] = [2, 4, 8];

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut loads = vec![Load::in_flight(FEW), Load::in_flight(MANY)];
    loads.extend(effort.sizes(&GROWTH).into_iter().map(Load::background));
    let mut cases = Vec::new();
    for load in loads {
        cases.extend(owners!(owner(load, effort)));
        cases.extend(shared!(by_deadline(load, 1, effort)));
    }
    for threads in THREADS {
        for load in on_threads(effort) {
            cases.extend(shared!(by_deadline(load, threads, effort)));
        }
    }
    cases
}

/// Returns the loads of each of several threads.
fn on_threads(effort: Effort) -> Vec<Load> {
    let few = Load::in_flight(FEW);
    let all = vec![few, Load::in_flight(MANY), Load::background(1_000_000)];
    effort.either(vec![few], all)
}

/// Returns the cases in which the caller knows only a delay, so that the engine
/// must read its clock.
pub fn with_clock(effort: Effort) -> Vec<Case> {
    let load = Load::in_flight(FEW);
    let mut cases = shared!(by_delay(load, 1, effort));
    for threads in THREADS {
        cases.extend(shared!(by_delay(load, threads, effort)));
    }
    cases.retain(|case| !case.engine.starts_with("floor"));
    cases
}

fn owner<T: Timers>(load: Load, effort: Effort) -> Case {
    let steps = effort.steps();
    Case::new(T::NAME, T::THREAD_SAFE, load.size(), move || {
        let elapsed = run_owner::<T>(load, steps);
        vec![Reading::per_step(load.metric, elapsed, steps)]
    })
}

fn run_owner<T: Timers>(load: Load, steps: usize) -> Duration {
    let mut rng = Rng::with_seed(1);
    let mut timers = T::new();
    let background: Vec<_> = (0..load.background)
        .map(|_| timers.schedule(rng.u64(1..=SPAN), 0))
        .collect();
    let mut in_flight: VecDeque<_> = (0..load.in_flight)
        .map(|_| timers.schedule(rng.u64(1..=SPAN), 0))
        .collect();
    let begun = Stopwatch::start();
    for _ in 0..steps {
        if let Some(oldest) = in_flight.pop_front() {
            timers.cancel(oldest);
        }
        in_flight.push_back(timers.schedule(rng.u64(1..=SPAN), 0));
    }
    let elapsed = begun.elapsed();
    drop(background);
    elapsed
}

/// The caller's knowledge of a deadline. Types, not function pointers, so that the
/// call is inlined into the loop as it is for the wheels.
trait Known {
    fn schedule<C: Caller>(caller: &mut C, delay: u64) -> C::Id;
}

struct Deadline;

impl Known for Deadline {
    fn schedule<C: Caller>(caller: &mut C, delay: u64) -> C::Id {
        caller.schedule(delay, 0)
    }
}

struct Delay;

impl Known for Delay {
    fn schedule<C: Caller>(caller: &mut C, delay: u64) -> C::Id {
        caller.schedule_after(delay, 0)
    }
}

fn by_deadline<E: Shared>(load: Load, threads: usize, effort: Effort) -> Case {
    threaded::<E, Deadline>(load, threads, effort)
}

fn by_delay<E: Shared>(load: Load, threads: usize, effort: Effort) -> Case {
    threaded::<E, Delay>(load, threads, effort)
}

fn threaded<E: Shared, K: Known>(load: Load, threads: usize, effort: Effort) -> Case {
    let steps = effort.steps();
    let case = Case::new(E::NAME, E::THREAD_SAFE, load.size(), move || {
        let elapsed = run_threads::<E, K>(load, threads, steps);
        vec![Reading::per_step(load.metric, elapsed, steps)]
    });
    case.on_threads(threads)
}

/// One thread's run.
struct Lap {
    begun: Instant,
    ended: Instant,
    /// Processor time of the whole process.
    processor: Duration,
}

/// Runs all steps on every thread.
///
/// The work of a single thread is measured in processor time, including the
/// engine's own threads. Several threads are timed from the first start to the last
/// end. With perfect scaling, and a core for each, that takes as long as one
/// thread does.
fn run_threads<E: Shared, K: Known>(load: Load, threads: usize, steps: usize) -> Duration {
    let engine = E::start();
    let start = Barrier::new(threads);
    let run = |seed| run_thread::<E, K>(&engine, load, steps, seed, &start);
    thread::scope(|scope| {
        let run = &run;
        let running: Vec<_> = (1..=threads as u64)
            .map(|seed| scope.spawn(move || run(seed)))
            .collect();
        let laps = running.into_iter().map(|thread| thread.join().unwrap());
        elapsed(&laps.collect::<Vec<_>>())
    })
}

fn elapsed(laps: &[Lap]) -> Duration {
    if let [alone] = laps {
        return alone.processor;
    }
    let begun = laps.iter().map(|lap| lap.begun).min();
    let ended = laps.iter().map(|lap| lap.ended).max();
    let both = ended.zip(begun);
    both.map(|(ended, begun)| ended - begun).unwrap_or_default()
}

fn run_thread<E: Shared, K: Known>(
    engine: &E,
    load: Load,
    steps: usize,
    seed: u64,
    start: &Barrier,
) -> Lap {
    let mut rng = Rng::with_seed(seed);
    let mut caller = engine.caller();
    let background: Vec<_> = (0..load.background)
        .map(|_| K::schedule(&mut caller, rng.u64(1..=SPAN)))
        .collect();
    let mut in_flight: VecDeque<_> = (0..load.in_flight)
        .map(|_| K::schedule(&mut caller, rng.u64(1..=SPAN)))
        .collect();
    engine.settle();
    start.wait();
    let stopwatch = Stopwatch::start_all();
    let begun = Instant::now();
    for _ in 0..steps {
        if let Some(oldest) = in_flight.pop_front() {
            caller.cancel(oldest);
        }
        in_flight.push_back(K::schedule(&mut caller, rng.u64(1..=SPAN)));
    }
    engine.settle();
    let lap = Lap {
        begun,
        ended: Instant::now(),
        processor: stopwatch.elapsed(),
    };
    drop(background);
    lap
}
