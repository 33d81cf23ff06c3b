//! tokio runtimes in which awaited timers are measured, alike for every library.

use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::processors;
use crate::rival::Awaited;

/// The deadline of a timer that waits during every measurement. Without an earlier
/// timer, each new one would interrupt the sleep of tokio's driver.
const EARLIER: Duration = Duration::from_secs(20);

/// The time in which the runtime's workers notice that timer and go to sleep.
const SETTLING: Duration = Duration::from_millis(20);

/// Returns a runtime with a number of workers. Several workers have a processor
/// each.
pub fn with_workers<A: Awaited>(workers: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers);
    if workers > 1 {
        builder.on_thread_start(processors::keep_to_next);
    }
    let runtime = started::<A>(&mut builder);
    runtime.spawn(async {
        A::sleep(EARLIER).await;
    });
    thread::sleep(SETTLING);
    runtime
}

/// Returns a runtime that runs on the calling thread, or has one worker if the
/// timers need one.
pub fn on_one_thread<A: Awaited>() -> Runtime {
    match A::ON_ONE_THREAD {
        true => started::<A>(&mut Builder::new_current_thread()),
        false => started::<A>(Builder::new_multi_thread().worker_threads(1)),
    }
}

fn started<A: Awaited>(builder: &mut Builder) -> Runtime {
    A::configure(builder.enable_all());
    let runtime = builder.build().expect("the system has a descriptor");
    A::start(&runtime);
    runtime
}
