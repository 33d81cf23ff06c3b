//! tokio's `time_rt.rs` and `time_alt.rs`: awaited timers on runtimes, in real time.

use super::*;
use tickwheel::time::{sleep_until, timeout};
use tokio::runtime::Builder;

/// `timer_with_threaded_runtime`, `timer_with_current_thread_scheduler`, `timeout_value`,
/// `sleep`, `timeout`
#[test]
fn r01_waits_of_many_tasks_are_never_early_in_any_runtime() {
    let runtimes = [Builder::new_current_thread(), Builder::new_multi_thread()];
    for runtime in runtimes.map(|mut builder| builder.worker_threads(2).build().unwrap()) {
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
