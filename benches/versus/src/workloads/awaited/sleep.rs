//! A sleep that is created, polled once and dropped, as a time limit that is not
//! reached; and the memory of sleeps that wait.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::Context;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::allocator::Watch;
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::laps::{Crew, Laps};
use crate::rival::Awaited;
use crate::rivals::awaited;
use crate::runtime;

/// Longer than a measurement.
const DELAY: Duration = Duration::from_secs(30);

/// The number of sleeps between two looks of the runtime after its timers.
const PAIRS_PER_TURN: u64 = 16;

const WAITING: usize = 200_000;

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for threads in [1, 2] {
        cases.extend(awaited!(by_delay(threads, effort)));
        cases.extend(awaited!(by_instant(threads, effort)));
    }
    cases.extend(awaited!(memory()));
    cases
}

/// The caller's knowledge of a deadline. Types, so that the call is inlined.
trait Known: 'static {
    const METRIC: &'static str;

    fn sleep<A: Awaited>(start: Instant) -> A::Sleep;
}

struct Delay;

impl Known for Delay {
    const METRIC: &'static str = "delay given";

    fn sleep<A: Awaited>(_: Instant) -> A::Sleep {
        A::sleep(DELAY)
    }
}

struct Deadline;

impl Known for Deadline {
    const METRIC: &'static str = "instant given";

    fn sleep<A: Awaited>(start: Instant) -> A::Sleep {
        A::sleep_until(start + DELAY)
    }
}

fn by_delay<A: Awaited>(threads: usize, effort: Effort) -> Case {
    case::<A, Delay>(threads, effort)
}

fn by_instant<A: Awaited>(threads: usize, effort: Effort) -> Case {
    let reason = "it takes delays alone";
    case::<A, Deadline>(threads, effort).unless((!A::TAKES_INSTANTS).then_some(reason))
}

fn case<A: Awaited, K: Known>(threads: usize, effort: Effort) -> Case {
    let case = Case::new(A::NAME, true, 1, move || {
        let laps = run::<A, K>(threads, effort);
        match threads {
            1 => vec![laps.alone(K::METRIC)],
            _ => laps.together(K::METRIC),
        }
    });
    case.on_threads(threads)
}

fn run<A: Awaited, K: Known>(threads: usize, effort: Effort) -> Laps {
    let mut crew = Crew::new::<A>(threads);
    for _ in 0..threads {
        let start = Instant::now();
        crew.spawn_steps(PAIRS_PER_TURN, move |context| step::<A, K>(start, context));
    }
    crew.watch(effort)
}

fn step<A: Awaited, K: Known>(start: Instant, context: &mut Context<'_>) {
    let sleep = pin!(K::sleep::<A>(start));
    assert!(sleep.poll(context).is_pending());
}

/// Measures the heap bytes of a sleep that waits, with the sleep itself in a box.
fn memory<A: Awaited>() -> Case {
    let case = Case::new(A::NAME, true, WAITING, move || {
        let runtime = runtime::with_workers::<A>(1);
        let bytes = runtime.block_on(async { runtime.spawn(bytes_of_many::<A>()).await });
        let bytes = bytes.expect("the task only registers sleeps");
        vec![Reading::new("memory", "B", bytes as f64 / WAITING as f64)]
    });
    case.unless((!A::FIRES).then_some("nothing waits there"))
}

async fn bytes_of_many<A: Awaited>() -> i64 {
    let mut rng = Rng::with_seed(20);
    let mut sleeps = Vec::with_capacity(WAITING);
    let watch = Watch::start();
    for _ in 0..WAITING {
        let mut sleep = Box::pin(A::sleep(DELAY + DELAY.mul_f64(rng.f64())));
        poll_once(sleep.as_mut()).await;
        sleeps.push(sleep);
    }
    watch.bytes()
}

async fn poll_once<S: Future>(mut sleep: Pin<&mut S>) {
    std::future::poll_fn(|context| {
        assert!(sleep.as_mut().poll(context).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
}
