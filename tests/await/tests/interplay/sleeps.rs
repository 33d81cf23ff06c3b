//! Sleeps that are moved, shared, dropped and leaked.

use super::*;

/// A sleep has no fixed place: not in memory, and not on a thread.
#[test]
fn m01_a_sleep_may_be_moved_between_polls() {
    let (timers, clock) = paused();
    let wakes = Arc::<Wakes>::default();
    let mut sleep = timers.sleep(ms(10)).into_owned();
    assert!(poll_with(&mut sleep, &wakes.waker()).is_pending());
    let mut boxed = Box::new(sleep);
    assert!(poll_with(&mut *boxed, &wakes.waker()).is_pending());
    let mut many = vec![*boxed];
    many.reserve(1_000);
    let waker = wakes.waker();
    let mut many = thread::spawn(move || {
        assert!(poll_with(&mut many[0], &waker).is_pending());
        many
    })
    .join()
    .unwrap();
    assert_eq!(timers.ledger().accepted, 1);
    clock.advance(ms(10));
    assert_eq!(wakes.count(), 1);
    assert!(poll_with(&mut many[0], &wakes.waker()).is_ready());
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

/// As above, where the tasks are on threads of their own and the sleep is due meanwhile:
/// whoever polled it last is woken, or has been told that it is ready.
#[test]
fn m03_of_two_threads_that_poll_a_sleep_in_turn_the_last_sees_its_end() {
    let timers = Timers::builder().start().unwrap().leak();
    for round in 0..100_u64 {
        let mut sleep = timers.sleep(Duration::from_micros(1_000 + 7 * round));
        assert!(poll_with(&mut sleep, Waker::noop()).is_pending());
        let first = thread::spawn(move || {
            for _ in 0..round {
                let _ = poll_with(&mut sleep, &Arc::<Wakes>::default().waker());
            }
            sleep
        });
        block_on(first.join().unwrap());
    }
    assert_eq!(timers.ledger().live, 0);
}

/// The waker that is being called may own the sleep that calls it.
#[test]
fn m04_a_sleep_may_be_dropped_in_its_own_wake_up() {
    let (timers, clock) = paused();
    let own = Shared::default();
    let dropped = Arc::new(AtomicUsize::new(0));
    let drops = Scripted::new().on_wake({
        let (own, dropped) = (own.clone(), Arc::clone(&dropped));
        move || {
            drop(own.take().expect("woken once"));
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut sleep = timers.sleep(ms(10)).into_owned();
    assert!(poll_with(&mut sleep, &drops.waker()).is_pending());
    own.put(sleep);
    clock.advance(ms(10));
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    assert_eq!((timers.ledger().live, timers.snapshot().panics), (0, 0));
    assert!(timers.ledger().is_balanced());
}

/// The waker may reset its own sleep, which then waits again.
#[test]
fn m05_a_sleep_may_be_reset_in_its_own_wake_up() {
    let (timers, clock) = paused();
    let own = Shared::default();
    let wakes = Arc::<Wakes>::default();
    let resets = Scripted::new().on_wake({
        let (own, waker) = (own.clone(), wakes.waker());
        move || {
            let mut sleep = own.take().expect("woken once");
            sleep.reset(ms(10));
            assert!(poll_with(&mut sleep, &waker).is_pending());
            own.put(sleep);
        }
    });
    let mut sleep = timers.sleep(ms(10)).into_owned();
    assert!(poll_with(&mut sleep, &resets.waker()).is_pending());
    own.put(sleep);
    clock.advance(ms(10));
    assert_eq!(wakes.count(), 0);
    clock.advance(ms(10));
    assert_eq!(wakes.count(), 1);
    assert!(own.take().unwrap().is_elapsed());
    assert_eq!(timers.snapshot().panics, 0);
}

/// A leaked sleep wakes its task once. Then its timer is gone, and its waker with it.
#[test]
fn m06_a_leaked_sleep_wakes_once_and_leaves_no_timer() {
    let (timers, clock) = paused();
    let mut leaked = ByHand::new(timers.sleep(ms(10)));
    assert!(leaked.poll().is_pending());
    let wakes = leaked.wakes();
    std::mem::forget(leaked.into_inner());
    assert_eq!(timers.ledger().live, 1);
    clock.advance(ms(10));
    assert_eq!((wakes.count(), timers.ledger().live), (1, 0));
    assert_eq!(Arc::strong_count(&wakes), 1);
    clock.advance(HOUR);
    assert_eq!(wakes.count(), 1);
}

/// As above, before its deadline: a shutdown wakes it.
#[test]
fn m07_a_leaked_sleep_is_woken_by_a_shutdown() {
    let (timers, _clock) = paused();
    let mut leaked = ByHand::new(timers.sleep(HOUR).into_owned());
    assert!(leaked.poll().is_pending());
    let wakes = leaked.wakes();
    std::mem::forget(leaked.into_inner());
    assert_eq!(timers.shutdown(), 1);
    assert_eq!((wakes.count(), Arc::strong_count(&wakes)), (1, 1));
}

/// A future in which a sleep is awaited may be dropped at any point.
#[test]
fn m08_a_task_that_is_dropped_frees_its_timer_at_once() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(Box::pin(async {
        timers.sleep(ms(10)).await;
        let _ = timers.timeout(HOUR, std::future::pending::<()>()).await;
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
