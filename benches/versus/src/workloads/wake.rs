//! The processor time of sleeps that end: with a waker that only counts, spread over time or
//! on one tick; and with a task behind each, few and many. And how late those tasks run:
//! async-io and futures-timer wake their thread for each deadline; pingora-timeout has a tick of
//! 10 ms, and the others one of a millisecond unless their name says otherwise.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::common::quantile;
use super::crew;
use crate::case::{Case, Effort, Metric};
use crate::rival::Awaited;
use crate::rivals::awaited;
use crate::rivals::tickwheel_sleep::Driven;
use crate::stopwatch::Stopwatch;

/// Puts the first deadline after the last registration, with time to spare.
const LEAD: Duration = Duration::from_millis(500);

pub fn cases(effort: Effort) -> Vec<Case> {
    // A program that isn't optimised, on a busy machine, could not register more within the lead.
    let sleeps = if effort == Effort::Check { 1_000 } else { 100_000 };
    let mut cases = awaited!(counted(&[("spread", "ns")], sleeps, Duration::from_millis(200)));
    cases.extend(awaited!(counted(&[("one tick", "ns")], sleeps, Duration::ZERO)));
    let watched = effort.either(Duration::from_millis(300), Duration::from_secs(2));
    for tasks in [10, 500] {
        cases.extend(awaited!(with_tasks(tasks, watched)));
    }
    cases.push(with_tasks::<Driven<1>>(500, watched));
    cases
}

/// Measures on a runtime that runs on the calling thread.
fn counted<A: Awaited>(metrics: &'static [Metric], sleeps: usize, span: Duration) -> Case {
    Case::of::<A>(metrics, sleeps, move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the system has a descriptor");
        A::start(&runtime);
        let each = runtime.block_on(async { runtime.spawn(count::<A>(sleeps, span)).await });
        vec![each.expect("the task only counts")]
    })
}

/// Runs tasks on two workers that sleep for random times up to 100 ms, one after the other,
/// until `watched` is over.
fn with_tasks<A: Awaited>(tasks: u64, watched: Duration) -> Case {
    let metrics =
        &[("processor time of tasks", "ns"), ("lateness, p50", "µs"), ("lateness, p99", "µs")];
    let case = Case::of::<A>(metrics, tasks as usize, move || {
        let runtime = crew::runtime::<A>(2);
        let stopwatch = Stopwatch::start_all();
        let end = Instant::now() + watched;
        let sleep = |seed| runtime.spawn(sleep_until::<A>(end, seed));
        let tasks: Vec<_> = (0..tasks).map(sleep).collect();
        let slept = |task: JoinHandle<_>| runtime.block_on(task).expect("the task only sleeps");
        let mut late: Vec<u64> = tasks.into_iter().flat_map(slept).collect();
        let processor = stopwatch.per_step(late.len());
        late.sort_unstable();
        let late = |share| quantile(&late, share) as f64 / 1_000.0;
        vec![processor, late(0.5), late(0.99)]
    });
    case.on_threads(2)
}

/// Returns the nanoseconds by which each sleep was late. One that is early, as a few of
/// pingora-timeout's are, counts as punctual.
async fn sleep_until<A: Awaited>(end: Instant, seed: u64) -> Vec<u64> {
    let mut rng = Rng::with_seed(seed);
    let mut late = Vec::new();
    while Instant::now() < end {
        let delay = Duration::from_millis(100).mul_f64(rng.f64());
        let deadline = Instant::now() + delay;
        A::sleep(delay).await;
        late.push(deadline.elapsed().as_nanos() as u64);
    }
    late
}

/// A waker that counts down, and wakes a task at zero.
struct Countdown {
    left: AtomicUsize,
    is_zero: Notify,
}

impl Wake for Countdown {
    fn wake(self: Arc<Countdown>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Countdown>) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.is_zero.notify_one();
        }
    }
}

/// Returns the processor time from the last registration to the last wake-up, for each sleep.
async fn count<A: Awaited>(sleeps: usize, span: Duration) -> f64 {
    let countdown = Arc::new(Countdown { left: AtomicUsize::new(sleeps), is_zero: Notify::new() });
    let waker = Waker::from(Arc::clone(&countdown));
    let mut rng = Rng::with_seed(21);
    let start = Instant::now();
    let register = |_| {
        let deadline = start + LEAD + span.mul_f64(rng.f64());
        let mut sleep = Box::pin(A::sleep_until(deadline));
        let polled = sleep.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        sleep
    };
    let _sleeps: Vec<_> = (0..sleeps).map(register).collect();
    let stopwatch = Stopwatch::start_all();
    countdown.is_zero.notified().await;
    stopwatch.per_step(sleeps)
}
