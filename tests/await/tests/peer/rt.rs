//! tokio's `time_rt.rs`: awaited timers on runtimes, in real time.

use super::*;
use std::sync::mpsc;
use tickwheel::time::{sleep_until, timeout};

/// `timer_with_threaded_runtime`
#[test]
fn r01_a_sleep_in_a_task_of_a_runtime_with_threads_is_not_early() {
    let runtime = Runtime::new().unwrap();
    let (sender, receiver) = mpsc::channel();
    runtime.spawn(async move {
        let deadline = Instant::now() + ms(10);
        sleep_until(deadline).await;
        sender.send(Instant::now() >= deadline).unwrap();
    });
    assert_eq!(receiver.recv(), Ok(true));
}

/// `timer_with_current_thread_scheduler`
#[test]
fn r02_a_sleep_in_a_runtime_of_one_thread_is_not_early() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let deadline = Instant::now() + ms(10);
        sleep_until(deadline).await;
        assert!(Instant::now() >= deadline);
    });
}

/// `starving`
#[test]
fn r03_a_task_that_never_rests_sees_its_sleep_end() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let deadline = Instant::now() + ms(10);
            let mut sleep = sleep_until(deadline);
            let mut polls = 0;
            std::future::poll_fn(|context| {
                polls += 1;
                context.waker().wake_by_ref();
                Pin::new(&mut sleep).poll(context)
            })
            .await;
            assert!(Instant::now() >= deadline);
            assert!(polls > 1);
        });
    }
}

/// `timeout_value`
#[test]
fn r04_a_limit_ends_a_wait_in_every_runtime_and_is_not_early() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let (_sender, receiver) = tokio::sync::oneshot::channel::<()>();
            let begin = Instant::now();
            assert!(timeout(ms(10), receiver).await.is_err());
            assert!(begin.elapsed() >= ms(10));
        });
    }
}

/// `tickspace`
#[test]
fn r05_a_sleep_that_is_reset_elsewhere_stays_on_its_own_time_line() {
    let (timers, clock) = paused();
    clock.advance(ms(1));
    let (_other, _clock) = paused();
    let mut task = ByHand::new(timers.sleep(ms(1)));
    assert!(task.poll().is_pending());
    let deadline = task.deadline();
    let other = Builder::new_current_thread().build().unwrap();
    other.block_on(async { task.reset_at(deadline + ms(1)) });
    ends_at(&mut task, &clock, 3);
}
