//! The processor time of sleeps that end: with a waker that only counts, spread
//! over time or on one tick; and with a task behind each, few and many.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::sync::Notify;

use super::sleepers;
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::Awaited;
use crate::rivals::awaited;
use crate::runtime;
use crate::stopwatch::Stopwatch;

const SLEEPS: usize = 100_000;

/// Puts the first deadline after the last registration, with time to spare.
const LEAD: Duration = Duration::from_millis(500);

const SPREAD: (&str, Duration) = ("spread", Duration::from_millis(200));
const ONE_TICK: (&str, Duration) = ("one tick", Duration::ZERO);

const FEW: usize = 10;
const MANY: usize = 500;

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for (metric, span) in [SPREAD, ONE_TICK] {
        cases.extend(awaited!(counted(metric, span)));
    }
    for tasks in [FEW, MANY] {
        let watched = effort.either(Duration::from_millis(300), Duration::from_secs(2));
        cases.extend(awaited!(with_tasks(tasks, watched)));
    }
    cases
}

fn counted<A: Awaited>(metric: &'static str, span: Duration) -> Case {
    let case = Case::new(A::NAME, true, SLEEPS, move || {
        let runtime = runtime::on_one_thread::<A>();
        let elapsed = runtime.block_on(async { runtime.spawn(count::<A>(span)).await });
        let elapsed = elapsed.expect("the task only counts");
        vec![Reading::per_step(metric, elapsed, SLEEPS)]
    });
    case.unless((!A::FIRES).then_some("nothing fires there"))
}

fn with_tasks<A: Awaited>(tasks: usize, watched: Duration) -> Case {
    let case = Case::new(A::NAME, true, tasks, move || {
        let slept = sleepers::run::<A>(tasks, watched);
        let per_sleep = slept.processor.as_secs_f64() * 1e6 / slept.late.len() as f64;
        vec![Reading::new("tasks that sleep again", "µs", per_sleep)]
    });
    let case = case.on_threads(sleepers::WORKERS);
    case.unless((!A::FIRES).then_some("nothing fires there"))
}

/// A waker that counts down, and wakes a task at zero.
struct CountDown {
    left: AtomicUsize,
    is_zero: Notify,
}

impl Wake for CountDown {
    fn wake(self: Arc<CountDown>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<CountDown>) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.is_zero.notify_one();
        }
    }
}

/// Returns the processor time from the last registration to the last wake-up.
async fn count<A: Awaited>(span: Duration) -> Duration {
    let countdown = Arc::new(CountDown {
        left: AtomicUsize::new(SLEEPS),
        is_zero: Notify::new(),
    });
    let waker = Waker::from(Arc::clone(&countdown));
    let sleeps = registered::<A>(span, &mut Context::from_waker(&waker));
    let stopwatch = Stopwatch::start_all();
    countdown.is_zero.notified().await;
    let elapsed = stopwatch.elapsed();
    drop(sleeps);
    elapsed
}

fn registered<A: Awaited>(span: Duration, context: &mut Context<'_>) -> Vec<Pin<Box<A::Sleep>>> {
    let mut rng = Rng::with_seed(21);
    let start = Instant::now();
    let mut sleep = |_| {
        let deadline = start + LEAD + span.mul_f64(rng.f64());
        let mut sleep = Box::pin(A::sleep_until(deadline));
        assert!(sleep.as_mut().poll(context).is_pending());
        sleep
    };
    (0..SLEEPS).map(&mut sleep).collect()
}
