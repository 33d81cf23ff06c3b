//! Tasks that sleep again and again, and what that costs.

use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::rival::Awaited;
use crate::runtime;
use crate::stopwatch::Stopwatch;

pub const WORKERS: usize = 2;

/// The longest delay.
const LONGEST: Duration = Duration::from_millis(100);

pub struct Slept {
    /// Nanoseconds, sorted.
    pub late: Vec<i64>,
    /// Processor time of the process.
    pub processor: Duration,
}

/// Runs tasks that sleep for random times, one after the other, until `watched` is
/// over.
pub fn run<A: Awaited>(tasks: usize, watched: Duration) -> Slept {
    let runtime = runtime::with_workers::<A>(WORKERS);
    let stopwatch = Stopwatch::start_all();
    let end = Instant::now() + watched;
    let tasks: Vec<_> = (0..tasks as u64)
        .map(|seed| runtime.spawn(sleep_until::<A>(end, seed)))
        .collect();
    let mut late = Vec::new();
    for task in tasks {
        let of_task = runtime.block_on(task);
        late.extend(of_task.expect("the task only sleeps"));
    }
    let processor = stopwatch.elapsed();
    late.sort_unstable();
    Slept { late, processor }
}

/// Sleeps for random times, and returns how late each sleep ended.
async fn sleep_until<A: Awaited>(end: Instant, seed: u64) -> Vec<i64> {
    let mut rng = Rng::with_seed(seed);
    let mut late = Vec::new();
    while Instant::now() < end {
        let delay = LONGEST.mul_f64(rng.f64());
        let deadline = Instant::now() + delay;
        A::sleep(delay).await;
        let now = Instant::now();
        let early = deadline.saturating_duration_since(now);
        let nanos = now.saturating_duration_since(deadline).as_nanos() as i64;
        late.push(nanos - early.as_nanos() as i64);
    }
    late
}
