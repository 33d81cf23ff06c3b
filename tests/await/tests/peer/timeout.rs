//! tokio's `time_timeout.rs`.

use super::*;
use std::future::pending;
use tickwheel::time::timeout;
use tokio::sync::oneshot;

/// `simultaneous_deadline_future_completion`
#[test]
fn t01_a_future_that_is_ready_at_the_deadline_wins() {
    let (timers, _clock) = paused();
    let mut task = ByHand::new(Box::pin(timers.timeout_at(timers.now(), async {})));
    assert_eq!(task.poll().map(Result::ok), Poll::Ready(Some(())));
}

/// `completed_future_past_deadline`
#[test]
fn t02_a_future_that_is_ready_after_the_deadline_wins() {
    let (timers, clock) = paused();
    clock.advance(ms(1_000));
    let mut task = ByHand::new(Box::pin(timers.timeout_at(at(0), async {})));
    assert_eq!(task.poll().map(Result::ok), Poll::Ready(Some(())));
}

/// `future_and_deadline_in_future`
#[test]
fn t03_a_future_that_ends_before_the_deadline_wakes_the_task_and_is_returned() {
    let (timers, clock) = paused();
    let (sender, receiver) = oneshot::channel();
    let mut task = ByHand::new(timers.timeout_at(at(100), receiver));
    assert!(task.poll().is_pending());
    clock.advance(ms(90));
    assert!(task.poll().is_pending());
    sender.send(()).unwrap();
    assert!(task.is_woken());
    assert_eq!(task.poll().map(Result::unwrap), Poll::Ready(Ok(())));
}

/// `future_and_timeout_in_future`
#[test]
fn t04_a_future_that_ends_within_the_limit_is_returned() {
    let (timers, clock) = paused();
    let (sender, receiver) = oneshot::channel();
    let mut task = ByHand::new(timers.timeout(ms(100), receiver));
    assert!(task.poll().is_pending());
    clock.advance(ms(90));
    assert!(task.poll().is_pending());
    sender.send(()).unwrap();
    assert_eq!(task.poll().map(Result::unwrap), Poll::Ready(Ok(())));
    drop(task);
    assert_eq!(timers.ledger().live, 0);
}

/// `very_large_timeout`
#[test]
fn t05_the_largest_limit_does_not_end_in_ten_years() {
    let (timers, clock) = paused();
    let (sender, receiver) = oneshot::channel();
    let mut task = ByHand::new(timers.timeout(Duration::MAX, receiver));
    assert!(task.poll().is_pending());
    clock.advance(ms(10 * YEAR));
    assert!(task.poll().is_pending());
    sender.send(()).unwrap();
    assert_eq!(task.poll().map(Result::unwrap), Poll::Ready(Ok(())));

    let (_sender, receiver) = oneshot::channel::<()>();
    assert!(
        ByHand::new(timeout(Duration::MAX, receiver))
            .poll()
            .is_pending()
    );
}

/// `deadline_now_elapses`
#[test]
fn t06_a_deadline_that_is_now_elapses() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.timeout_at(timers.now(), pending::<()>()));
    clock.advance(ms(1));
    assert!(matches!(task.poll(), Poll::Ready(Err(_))));
}

/// `deadline_future_elapses`
#[test]
fn t07_a_deadline_in_the_future_wakes_the_task_and_elapses() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.timeout_at(at(300), pending::<()>()));
    assert!(task.poll().is_pending());
    clock.advance(ms(299));
    assert!(!task.is_woken());
    clock.advance(ms(1));
    assert!(task.is_woken());
    let Poll::Ready(Err(elapsed)) = task.poll() else {
        panic!("it has not elapsed");
    };
    assert!(!elapsed.is_shut_down());
}

/// `timeout_is_not_exhausted_by_future`
#[tokio::test]
async fn t08_a_future_that_uses_up_tokios_budget_does_not_keep_the_limit_from_ending() {
    use tokio::io::AsyncReadExt;

    let busy = async {
        let mut buffer = [0];
        loop {
            let _ = tokio::io::empty().read(&mut buffer).await;
        }
    };
    let limited: Result<(), _> = timeout(ms(1), busy).await;
    assert!(limited.is_err());
}
