//! Tasks in a tokio runtime, alike for every library whose timers are awaited.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::unconstrained;

use crate::rival::Awaited;
use crate::stopwatch::{Stopwatch, per_step};

/// The deadline of a timer that waits during every measurement. Without an earlier timer,
/// each new one would interrupt the sleep of tokio's driver.
const EARLIER: Duration = Duration::from_secs(20);

/// Returns a runtime with a number of workers.
pub fn runtime<A: Awaited>(workers: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(workers).enable_all().build();
    let runtime = runtime.expect("the system has a descriptor");
    A::start(&runtime);
    runtime.spawn(async {
        A::sleep(EARLIER).await;
    });
    // The workers notice that timer, and go to sleep.
    thread::sleep(Duration::from_millis(20));
    runtime
}

/// Runs futures to their ends, which take `steps` together, and returns the processor time of
/// a step if there is one worker, and the time on the clock otherwise. The tasks have no
/// budget: when tokio's is used up, its timers neither register nor fire, and would seem fast.
pub fn time<A, F>(workers: usize, steps: usize, futures: Vec<F>) -> f64
where
    A: Awaited,
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = runtime::<A>(workers);
    let (stopwatch, begun) = (Stopwatch::start_all(), Instant::now());
    let spawn = |future| runtime.spawn(unconstrained(future));
    let tasks: Vec<_> = futures.into_iter().map(spawn).collect();
    for task in tasks {
        runtime.block_on(task).expect("no task panics");
    }
    let (processor, clock) = (stopwatch.per_step(steps), per_step(begun.elapsed(), steps));
    runtime.shutdown_background();
    if workers == 1 { processor } else { clock }
}

/// Repeats a step, and yields after `per_turn` steps: the runtime looks after its timers only
/// then.
pub async fn repeat(
    steps: usize,
    per_turn: usize,
    mut step: impl FnMut(&mut Context<'_>) + Send + 'static,
) {
    for _ in 0..steps.div_ceil(per_turn) {
        poll_fn(|context| {
            (0..per_turn).for_each(|_| step(context));
            Poll::Ready(())
        })
        .await;
        tokio::task::yield_now().await;
    }
}
