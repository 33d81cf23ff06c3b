//! The lateness of a thousand sleepers with random delays, idle and beside a busy thread per
//! processor. hash-wheel's and pingora-timeout's timers fire early, so that their lateness says
//! nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::task::JoinHandle;

use super::common::quantile;
use super::crew;
use crate::case::{Case, Effort, Metric};
use crate::rival::{Awaited, Punctual, TICK};
use crate::rivals::punctual;

const SLEEPERS: usize = 1_000;
const FINE: Duration = Duration::from_micros(50);

pub fn cases(effort: Effort) -> Vec<Case> {
    let longest = effort.either(Duration::from_millis(300), Duration::from_secs(2));
    let coarse = &[("p50", "µs"), ("p99", "µs"), ("p99.9", "µs")];
    let mut cases = punctual!(case(coarse, TICK, false, longest));
    let fine = &[
        ("tick of 50 µs, p50", "µs"),
        ("tick of 50 µs, p99", "µs"),
        ("tick of 50 µs, p99.9", "µs"),
    ];
    cases.extend(punctual!(case(fine, FINE, false, longest)));
    let loaded = &[("loaded, p50", "µs"), ("loaded, p99", "µs"), ("loaded, p99.9", "µs")];
    cases.extend(punctual!(case(loaded, TICK, true, longest)));
    cases
}

fn case<S: Punctual>(
    metrics: &'static [Metric],
    tick: Duration,
    is_loaded: bool,
    longest: Duration,
) -> Case {
    Case::of::<S>(metrics, SLEEPERS, move || {
        let mut rng = Rng::with_seed(10);
        let delays: Vec<_> = (0..SLEEPERS).map(|_| longest.mul_f64(rng.f64())).collect();
        let mut late = if is_loaded {
            under_load(|| S::lateness(tick, &delays))
        } else {
            S::lateness(tick, &delays)
        };
        late.sort_unstable();
        [0.5, 0.99, 0.999].map(|share| quantile(&late, share) as f64 / 1_000.0).into()
    })
}

/// Awaited timers have a task each, and the tick of their library.
impl<A: Awaited> Punctual for A {
    fn lateness(_: Duration, delays: &[Duration]) -> Vec<u64> {
        let runtime = crew::runtime::<A>(1);
        let one = |deadline: Instant| async move {
            A::sleep_until(deadline).await;
            deadline.elapsed().as_nanos() as u64
        };
        let spawn = |&delay| runtime.spawn(one(Instant::now() + delay));
        let tasks: Vec<_> = delays.iter().map(spawn).collect();
        let slept = |task: JoinHandle<_>| runtime.block_on(task).expect("the task only sleeps");
        let late = tasks.into_iter().map(slept).collect();
        runtime.shutdown_background();
        late
    }
}

/// Runs `work` beside a busy thread per processor.
fn under_load<R>(work: impl FnOnce() -> R) -> R {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        done
    })
}
