//! tokio's `time_alt.rs`: many tasks at once, and timers that outlive a runtime.

use super::*;
use tickwheel::time::{sleep, timeout};

const TASKS: usize = 512;

/// Runs a check on each runtime outside of its workers, and in many tasks at once.
fn everywhere<F: Future<Output = ()> + Send + 'static>(check: fn() -> F) {
    for runtime in runtimes() {
        runtime.block_on(async {
            check().await;
            let tasks: Vec<_> = (0..TASKS).map(|_| tokio::spawn(check())).collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
}

/// `sleep`
#[test]
fn a01_sleeps_of_many_tasks_are_not_early() {
    everywhere(|| async {
        let begin = Instant::now();
        sleep(ms(10)).await;
        assert!(begin.elapsed() >= ms(10));
    });
}

/// `cancelled_timer_waker_drop_can_register_timer`
#[test]
fn a02_a_waker_that_is_dropped_with_its_sleep_may_start_another() {
    struct StartsOnDrop(Timers);
    impl Wake for StartsOnDrop {
        fn wake(self: Arc<StartsOnDrop>) {}
    }
    impl Drop for StartsOnDrop {
        fn drop(&mut self) {
            let mut another = ByHand::new(self.0.sleep(ms(5_000)).into_owned());
            assert!(another.poll().is_pending());
            std::mem::forget(another);
        }
    }

    let (timers, _clock) = paused();
    let mut sleep = timers.sleep(ms(10_000));
    let waker = Waker::from(Arc::new(StartsOnDrop(timers.clone())));
    let polled = Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    drop(waker);
    assert_eq!(timers.ledger().accepted, 1);
    drop(sleep);
    assert_eq!((timers.ledger().accepted, timers.ledger().live), (2, 1));
}

/// `timeout`
#[test]
fn a03_limits_of_many_tasks_are_not_early() {
    everywhere(|| async {
        let begin = Instant::now();
        let limited = timeout(ms(10), std::future::pending::<()>()).await;
        assert!(limited.is_err());
        assert!(begin.elapsed() >= ms(10));
    });
}

/// A sleep of timers that end is woken and ready, even if it was reset in a task of the
/// given runtime, which does not end.
fn ends_with_its_own_timers(resets_in: &Runtime) {
    let (timers, _clock) = paused();
    let hour = ms(3_600_000);
    let mut task = ByHand::new(timers.sleep(hour).into_owned());
    assert!(task.poll().is_pending());
    let wakes = task.wakes();
    let reset = resets_in.spawn(async move {
        task.reset(hour);
        assert!(task.poll().is_pending());
        task
    });
    let mut task = resets_in.block_on(reset).unwrap();
    assert_eq!(wakes.count(), 0);
    assert_eq!(timers.shutdown(), 1);
    assert!(task.is_woken());
    assert!(task.poll().is_ready());
}

/// `reset_should_stay_on_same_runtime`
#[test]
fn a04_a_sleep_that_is_reset_in_another_runtime_ends_with_its_own_timers() {
    ends_with_its_own_timers(&workers(1).build().unwrap());
}

/// `reset_should_stay_on_same_runtime2`
#[test]
fn a05_a_sleep_that_is_reset_in_a_runtime_of_one_thread_ends_with_its_own_timers() {
    ends_with_its_own_timers(&Builder::new_current_thread().build().unwrap());
}
