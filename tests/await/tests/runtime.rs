//! Awaited timers on a runtime with several threads and the real clock. What needs no
//! real time is tested on the virtual clock.

use std::time::{Duration, Instant};

use tickwheel::time::{Global, Timers, interval, sleep, sleep_until, timeout};

const MS: Duration = Duration::from_millis(1);

/// Longer than any test takes.
const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sleeps_of_many_tasks_are_never_early() {
    let tasks: Vec<_> = (0..200)
        .map(|n| {
            tokio::spawn(async move {
                let deadline = Instant::now() + MS * (n % 20);
                sleep_until(deadline).await;
                let delay = MS * (n % 7);
                let start = Instant::now();
                sleep(delay).await;
                start >= deadline && start.elapsed() >= delay
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_ends_a_wait_and_an_interval_keeps_its_distance() {
    let start = Instant::now();
    assert!(timeout(5 * MS, sleep(HOUR)).await.is_err());
    assert!(start.elapsed() >= 5 * MS);
    assert_eq!(timeout(HOUR, async { 7 }).await, Ok(7));

    let mut beats = interval(10 * MS);
    let first = beats.tick().await;
    for n in 1..4 {
        let due = beats.tick().await;
        assert_eq!(due, first + 10 * MS * n);
        assert!(Instant::now() >= due);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_wakes_every_task_and_says_so() {
    let timers = Timers::builder().name("own").start().unwrap().leak();
    let limited = tokio::spawn(timers.timeout(HOUR, std::future::pending::<()>()));
    let sleeping = tokio::spawn(async {
        let mut sleep = timers.sleep(HOUR);
        (&mut sleep).await;
        sleep.is_elapsed()
    });
    while timers.ledger().live < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(timers.shutdown(), 2);
    assert!(!sleeping.await.unwrap());
    assert!(limited.await.unwrap().unwrap_err().is_shut_down());
    let late = tokio::spawn(timers.sleep(MS)).await;
    assert!(late.unwrap_err().is_panic());
    let limited = timers.timeout(MS, std::future::pending::<()>()).await;
    assert!(limited.unwrap_err().is_shut_down());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_sleep_leaves_nothing_behind() {
    let timers = Timers::builder().start().unwrap();
    for _ in 0..100 {
        let mut sleep = timers.sleep(HOUR);
        tokio::select! {
            biased;
            () = &mut sleep => unreachable!(),
            () = std::future::ready(()) => {}
        }
        assert_eq!(timers.ledger().live, 1);
    }
    assert_eq!((timers.ledger().live, timers.ledger().cancelled), (0, 100));
    let _ = Global.snapshot();
}
