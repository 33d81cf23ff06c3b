//! A sleep that is created, polled once and dropped, as a time limit that is not reached; one
//! that waits and is given a later deadline, as by a keep-alive; and the memory of sleeps.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::crew;
use crate::allocator::Watch;
use crate::case::{Case, Effort};
use crate::rival::Awaited;
use crate::rivals::awaited;

/// Longer than a measurement.
const DELAY: Duration = Duration::from_secs(30);

const WAITING: usize = 200_000;

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for threads in [1, 2] {
        cases.extend(awaited!(by_delay(threads, effort)));
        cases.extend(awaited!(by_instant(threads, effort)));
    }
    cases.extend(awaited!(reset(effort)));
    cases.extend(awaited!(memory()));
    cases
}

fn by_delay<A: Awaited>(threads: usize, effort: Effort) -> Case {
    let steps = effort.steps();
    let case = Case::of::<A>(&[("delay given", "ns")], 1, move || {
        let step = |context: &mut Context<'_>| pending(A::sleep(DELAY), context);
        let tasks = (0..threads).map(|_| crew::repeat(steps, 16, step)).collect();
        vec![crew::time::<A, _>(threads, steps, tasks)]
    });
    case.on_threads(threads)
}

fn by_instant<A: Awaited>(threads: usize, effort: Effort) -> Case {
    let steps = effort.steps();
    let case = Case::of::<A>(&[("instant given", "ns")], 1, move || {
        let deadline = Instant::now() + DELAY;
        let step = move |context: &mut Context<'_>| pending(A::sleep_until(deadline), context);
        let tasks = (0..threads).map(|_| crew::repeat(steps, 16, step)).collect();
        vec![crew::time::<A, _>(threads, steps, tasks)]
    });
    case.on_threads(threads)
}

fn pending(sleep: impl Future, context: &mut Context<'_>) {
    assert!(pin!(sleep).poll(context).is_pending());
}

fn reset<A: Awaited>(effort: Effort) -> Case {
    let steps = effort.steps();
    Case::of::<A>(&[("later deadline", "ns")], 64, move || {
        let mut deadline = Instant::now() + DELAY;
        let mut sleeps = VecDeque::new();
        let step = move |context: &mut Context<'_>| {
            deadline += Duration::from_micros(1);
            let mut sleep = match sleeps.len() {
                64 => sleeps.pop_front().expect("there are some"),
                _ => Box::pin(A::sleep_until(deadline)),
            };
            A::reset(sleep.as_mut(), deadline);
            assert!(sleep.as_mut().poll(context).is_pending());
            sleeps.push_back(sleep);
        };
        vec![crew::time::<A, _>(1, steps, vec![crew::repeat(steps, 16, step)])]
    })
}

/// Measures the heap bytes of a sleep that waits, with the sleep itself in a box.
fn memory<A: Awaited>() -> Case {
    Case::of::<A>(&[("memory", "B")], WAITING, move || {
        let runtime = crew::runtime::<A>(1);
        let bytes = runtime.block_on(async { runtime.spawn(bytes_of_many::<A>()).await });
        vec![bytes.expect("the task only registers sleeps") as f64 / WAITING as f64]
    })
}

async fn bytes_of_many<A: Awaited>() -> i64 {
    let mut rng = Rng::with_seed(20);
    let mut sleeps = Vec::with_capacity(WAITING);
    let watch = Watch::start();
    for _ in 0..WAITING {
        let mut sleep = Box::pin(A::sleep(DELAY + DELAY.mul_f64(rng.f64())));
        let register = |context: &mut Context<'_>| Poll::Ready(sleep.as_mut().poll(context));
        assert!(poll_fn(register).await.is_pending());
        sleeps.push(sleep);
    }
    watch.bytes()
}
