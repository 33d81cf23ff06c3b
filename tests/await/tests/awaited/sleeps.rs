//! Sleeps that are moved, shared, dropped and leaked.

use super::*;

/// A sleep has no fixed place: not in memory, and not on a thread.
#[test]
fn m01_a_sleep_may_be_moved_between_polls() {
    let (timers, clock) = paused();
    let wakes = Arc::<Wakes>::default();
    let mut sleep = timers.sleep(ms(10)).into_owned();
    assert!(poll_with(&mut sleep, &wakes.waker()).is_pending());
    let (mut boxed, waker) = (Box::new(sleep), wakes.waker());
    let elsewhere = thread::spawn(move || {
        assert!(poll_with(&mut *boxed, &waker).is_pending());
        *boxed
    });
    let mut sleep = elsewhere.join().unwrap();
    assert_eq!(timers.ledger().accepted, 1);
    clock.advance(ms(10));
    assert_eq!(wakes.count(), 1);
    assert!(poll_with(&mut sleep, &wakes.waker()).is_ready());
}

/// The last task that polled a sleep is woken, and no other.
#[test]
fn m02_of_two_tasks_that_poll_a_sleep_in_turn_the_last_is_woken() {
    for last in 0..2 {
        let (timers, clock) = paused();
        let wakes = [Arc::<Wakes>::default(), Arc::default()];
        let mut sleep = timers.sleep(ms(10));
        for task in [1 - last, last, 1 - last, last] {
            assert!(poll_with(&mut sleep, &wakes[task].waker()).is_pending());
        }
        clock.advance(ms(10));
        assert_eq!((wakes[last].count(), wakes[1 - last].count()), (1, 0));
        assert!(poll_with(&mut sleep, &wakes[1 - last].waker()).is_ready());
    }
}

/// The waker that is being called may own the sleep that calls it.
#[test]
fn m04_a_sleep_may_be_dropped_in_its_own_wake_up() {
    let (timers, clock) = paused();
    let own = Shared::default();
    let inner = own.clone();
    let drops = on_wake(move || drop(inner.take().expect("woken once")));
    let mut sleep = timers.sleep(ms(10)).into_owned();
    assert!(poll_with(&mut sleep, &drops).is_pending());
    own.put(sleep);
    clock.advance(ms(10));
    assert!(own.take().is_none());
    assert_eq!((timers.ledger().live, timers.snapshot().panics), (0, 0));
    assert!(timers.ledger().is_balanced());
}

/// The waker may reset its own sleep, which then waits again, as an executor does that
/// runs tasks in `wake`.
#[test]
fn m05_a_sleep_may_be_reset_in_its_own_wake_up() {
    let (timers, clock) = paused();
    let (own, wakes) = (Shared::default(), Arc::<Wakes>::default());
    let (inner, waker) = (own.clone(), wakes.waker());
    let resets = on_wake(move || {
        let mut sleep = inner.take().expect("woken once");
        sleep.reset(ms(10));
        assert!(poll_with(&mut sleep, &waker).is_pending());
        inner.put(sleep);
    });
    let mut sleep = timers.sleep(ms(10)).into_owned();
    assert!(poll_with(&mut sleep, &resets).is_pending());
    own.put(sleep);
    clock.advance(ms(10));
    assert_eq!(wakes.count(), 0);
    clock.advance(ms(10));
    assert_eq!(wakes.count(), 1);
    assert!(own.take().unwrap().is_elapsed());
    assert_eq!(timers.snapshot().panics, 0);
}

/// A leaked sleep wakes its task once, at its deadline or at a shutdown. Then its timer is
/// gone, and its waker with it.
#[test]
fn m06_a_leaked_sleep_wakes_once_and_leaves_no_timer() {
    for shuts_down in [false, true] {
        let (timers, clock) = paused();
        let mut leaked = ByHand::new(timers.sleep(ms(10)).into_owned());
        assert!(leaked.poll().is_pending());
        let wakes = leaked.wakes();
        std::mem::forget(leaked.into_inner());
        if shuts_down {
            assert_eq!(timers.shutdown(), 1);
        }
        clock.advance(HOUR);
        assert_eq!((wakes.count(), timers.ledger().live), (1, 0));
        assert_eq!(Arc::strong_count(&wakes), 1);
    }
}

/// A future in which a sleep is awaited may be dropped at any point.
#[test]
fn m08_a_task_that_is_dropped_frees_its_timer_at_once() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(Box::pin(async {
        timers.sleep(ms(10)).await;
        let _ = timers.timeout(HOUR, pending::<()>()).await;
    }));
    assert!(task.poll().is_pending());
    clock.advance(ms(10));
    assert!(task.is_woken());
    assert!(task.poll().is_pending());
    assert_eq!(timers.ledger().live, 1);
    let wakes = task.wakes();
    drop(task);
    assert_eq!(timers.ledger().live, 0);
    assert_eq!(Arc::strong_count(&wakes), 1);
}
