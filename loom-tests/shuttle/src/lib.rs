//! Helpers that the tests in `tests/` share.
//!
//! A test runs a dozen threads under thousands of random schedules. Its payloads
//! count how each of them left the engine (`tally.rs`). The package is empty without
//! `--cfg shuttle`; the README says how to run it and how to replay a failure.

#![cfg(shuttle)]

mod tally;

pub use tally::{End, Payload, Tally};

use std::env;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::thread::JoinHandle;
use shuttle::{Config, MaxSteps, Runner};
use tickwheel::{Builder, Engine, Expired, Queue, Time, VirtualClock};

/// How many schedules of each kind a test runs under.
const ITERATIONS: usize = 2_000;
/// How many preemptions a PCT schedule has.
const PREEMPTIONS: usize = 3;
/// A run that takes this many steps never ends. Others take some hundreds.
const MAX_STEPS: usize = 100_000;
const STACK_BYTES: usize = 256 * 1024;

/// Runs `body` under `SHUTTLE_ITERATIONS` random schedules and as many of PCT. If
/// `SHUTTLE_SCHEDULE` is set to the schedule that a failure has printed, runs it
/// under that one.
pub fn check(body: impl Fn() + Send + Sync + 'static) {
    if let Some(schedule) = setting::<String>("SHUTTLE_SCHEDULE") {
        return shuttle::replay(body, &schedule);
    }
    let iterations = setting("SHUTTLE_ITERATIONS").unwrap_or(ITERATIONS);
    let preemptions = setting("SHUTTLE_PREEMPTIONS").unwrap_or(PREEMPTIONS);
    let body = Arc::new(body);
    run(RandomScheduler::new(iterations), Arc::clone(&body));
    run(PctScheduler::new(preemptions, iterations), body);
}

fn setting<V: FromStr>(name: &str) -> Option<V> {
    let value = env::var(name).ok()?;
    let parsed = value.parse().ok();
    Some(parsed.unwrap_or_else(|| panic!("{name} cannot be {value:?}")))
}

fn run(scheduler: impl Scheduler + 'static, body: Arc<impl Fn() + Send + Sync + 'static>) {
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(MAX_STEPS);
    config.stack_size = STACK_BYTES;
    // Shuttle knows only SeqCst; loom checks the weaker orderings.
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(move || body());
}

/// Returns the time at which tick `n` begins.
#[must_use]
pub fn tick(n: u64) -> Time {
    Time::START + Duration::from_millis(n)
}

/// Returns a builder of an engine with four shards and short wheels.
pub fn builder() -> Builder<Engine<Payload>> {
    Engine::builder().wheel_size(4).shards(4)
}

/// Starts a thread with `body(n)` for each `n` below `count`.
pub fn threads<F: FnOnce() + Send + 'static>(
    count: u32,
    body: impl Fn(u32) -> F,
) -> Vec<JoinHandle<()>> {
    (0..count).map(|n| shuttle::thread::spawn(body(n))).collect()
}

/// Blocks until all of the threads have ended.
pub fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Lets time pass up to tick `last`, for the ticker.
pub fn pass_time(clock: VirtualClock, last: u64) -> JoinHandle<()> {
    shuttle::thread::spawn(move || (1..=last).for_each(|n| clock.pass_to(tick(n))))
}

/// Starts workers that take one-shots until the engine is shut down.
pub fn workers(engine: &Engine<Payload>, count: u32) -> Vec<JoinHandle<()>> {
    workers_that(engine, count, |expired| expired.into_payload().end(End::Taken))
}

/// Starts workers that call `work` with each firing until the engine is shut down.
pub fn workers_that(
    engine: &Engine<Payload>,
    count: u32,
    work: impl Fn(Expired<Payload>) + Clone + Send + 'static,
) -> Vec<JoinHandle<()>> {
    threads(count, |_| {
        let (queue, work): (Queue<Payload>, _) = (engine.queue(0), work.clone());
        move || queue.for_each(work)
    })
}

/// Shuts the engine down, and notes how the returned payloads ended.
pub fn shut_down(engine: &Engine<Payload>) {
    let returned = engine.shutdown().into_iter();
    let payloads = returned.filter_map(|closed| closed.payload);
    payloads.for_each(|payload| payload.end(End::ShutDown));
}
