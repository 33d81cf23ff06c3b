//! tokio's `time_rt.rs` and `time_alt.rs`: awaited timers on runtimes, in real time.

use super::*;
use tickwheel::time::{sleep_until, timeout};
use tokio::runtime::{Builder, Runtime};

/// tokio's kinds of runtime.
fn runtimes() -> [Runtime; 2] {
    [Builder::new_current_thread(), Builder::new_multi_thread()]
        .map(|mut builder| builder.worker_threads(2).build().unwrap())
}

/// `timer_with_threaded_runtime`, `timer_with_current_thread_scheduler`, `timeout_value`,
/// `sleep`, `timeout`
#[test]
fn r01_waits_of_many_tasks_are_never_early_in_any_runtime() {
    for runtime in runtimes() {
        let wait = |n: u64| async move {
            let (begin, delay) = (Instant::now(), ms(n % 20));
            sleep_until(begin + delay).await;
            let middle = Instant::now();
            assert!(timeout(delay, pending::<()>()).await.is_err());
            middle - begin >= delay && middle.elapsed() >= delay
        };
        let tasks: Vec<_> = (0..500).map(|n| runtime.spawn(wait(n))).collect();
        for task in tasks {
            assert!(runtime.block_on(task).unwrap());
        }
    }
}

/// `starving`
#[test]
fn r03_a_task_that_never_rests_sees_its_sleep_end() {
    for runtime in runtimes() {
        let deadline = Instant::now() + ms(10);
        let mut sleep = sleep_until(deadline);
        runtime.block_on(std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            Pin::new(&mut sleep).poll(context)
        }));
        assert!(Instant::now() >= deadline);
    }
}
