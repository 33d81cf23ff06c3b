//! tokio's `time_timeout.rs`.

use super::*;
use tickwheel::time::timeout;
use tokio::sync::oneshot;

/// `simultaneous_deadline_future_completion`, `completed_future_past_deadline`
#[test]
fn t02_a_future_that_is_ready_after_the_deadline_wins() {
    let (timers, clock) = paused();
    clock.advance(ms(1_000));
    for deadline in [at(0), timers.now()] {
        let mut task = ByHand::new(Box::pin(timers.timeout_at(deadline, async {})));
        assert_eq!(task.poll(), Poll::Ready(Ok(())));
    }
}

/// `future_and_deadline_in_future`, `future_and_timeout_in_future`, `very_large_timeout`
#[test]
fn t04_a_future_that_ends_within_the_limit_wakes_the_task_and_is_returned() {
    let (timers, clock) = paused();
    for (limit, pass) in [(ms(100), 90), (Duration::MAX, 10 * YEAR)] {
        let (sender, receiver) = oneshot::channel();
        let mut task = ByHand::new(timers.timeout(limit, receiver).into_owned());
        assert!(task.poll().is_pending());
        clock.advance(ms(pass));
        assert!(task.poll().is_pending());
        sender.send(()).unwrap();
        assert!(task.is_woken());
        assert_eq!(task.poll(), Poll::Ready(Ok(Ok(()))));
        drop(task);
        assert_eq!(timers.ledger().live, 0);
    }
}

/// `deadline_now_elapses`, `deadline_future_elapses`
#[test]
fn t07_a_deadline_in_the_future_wakes_the_task_and_elapses() {
    let (timers, clock) = paused();
    clock.advance(ms(50));
    let mut now = ByHand::new(timers.timeout_at(timers.now(), pending::<()>()));
    assert!(now.poll().is_ready());
    let at_350 = timers.timeout_at(at(350), pending::<()>());
    let mut tasks = [at_350, timers.timeout(ms(300), pending())].map(ByHand::new);
    assert!(tasks.iter_mut().all(|task| task.poll().is_pending()));
    clock.advance(ms(299));
    assert!(!tasks.iter().any(ByHand::is_woken));
    clock.advance(ms(1));
    for task in &mut tasks {
        assert!(task.is_woken());
        assert!(matches!(task.poll(), Poll::Ready(Err(elapsed)) if !elapsed.is_shut_down()));
    }
}

/// `timeout_is_not_exhausted_by_future`
#[tokio::test]
async fn t08_a_future_that_uses_up_tokios_budget_does_not_keep_the_limit_from_ending() {
    use tokio::io::AsyncReadExt;

    let busy = async {
        loop {
            let _ = tokio::io::empty().read(&mut [0]).await;
        }
    };
    let limited: Result<(), _> = timeout(ms(1), busy).await;
    assert!(limited.is_err());
}
