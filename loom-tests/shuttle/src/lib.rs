//! What the tests in `tests/` share. Without `--cfg shuttle` there is nothing
//! here: see the README.

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

/// Of each scheduler, for each test.
const ITERATIONS: usize = 10_000;
/// How many points of preemption PCT puts into a run.
const PREEMPTIONS: usize = 3;
/// A run takes some hundreds of steps, and one that never ends takes this many.
const MAX_STEPS: usize = 100_000;
const STACK_BYTES: usize = 256 * 1024;

/// Runs `body` under `SHUTTLE_ITERATIONS` schedules that are drawn at random,
/// and as many that PCT draws; or under the one in `SHUTTLE_SCHEDULE`, which a
/// failure has printed.
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
    // It knows no ordering but SeqCst; weaker ones are loom's subject.
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(move || body());
}

/// When tick `n` begins.
#[must_use]
pub fn tick(n: u64) -> Time {
    Time::START + Duration::from_millis(n)
}

/// An engine of four shards with short wheels.
pub fn builder() -> Builder<Payload> {
    Engine::builder().wheel_size(4).shards(4)
}

/// Runs `body` for each number below `count`, each in a thread of its own.
pub fn threads<F: FnOnce() + Send + 'static>(
    count: u32,
    body: impl Fn(u32) -> F,
) -> Vec<JoinHandle<()>> {
    (0..count)
        .map(|n| shuttle::thread::spawn(body(n)))
        .collect()
}

/// Waits for threads to end.
pub fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Time passes up to tick `last`, and the ticker does what there is to do.
pub fn pass_time(clock: VirtualClock<Payload>, last: u64) -> JoinHandle<()> {
    shuttle::thread::spawn(move || (1..=last).for_each(|n| clock.pass_to(tick(n))))
}

/// Workers who take one-shots until the engine is shut down.
pub fn workers(engine: &Engine<Payload>, count: u32) -> Vec<JoinHandle<()>> {
    threads(count, |_| {
        let queue = engine.queue(0);
        move || queue.for_each(|expired| expired.into_payload().end(End::Taken))
    })
}

/// Workers who do with each firing what `work` says, until the engine is shut
/// down.
pub fn workers_who(
    engine: &Engine<Payload>,
    count: u32,
    work: impl Fn(Expired<Payload>) + Clone + Send + 'static,
) -> Vec<JoinHandle<()>> {
    threads(count, |_| {
        let (queue, work): (Queue<Payload>, _) = (engine.queue(0), work.clone());
        move || queue.for_each(work)
    })
}

/// Shuts the engine down; what is returned has ended by that.
pub fn shut_down(engine: &Engine<Payload>) {
    end_all(engine.shutdown());
}

/// Notes that what a shutdown or a drain returned has ended by that.
pub fn end_all(returned: Vec<tickwheel::Closed<Payload>>) {
    for payload in returned.into_iter().filter_map(|closed| closed.payload) {
        payload.end(End::ShutDown);
    }
}
