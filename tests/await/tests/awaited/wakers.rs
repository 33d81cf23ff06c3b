//! Wakers that do what a good waker does not.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

/// A panic that is thrown again when it is dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("again");
        }
    }
}

/// A panic of a waker is counted, and harms no other task: neither those that are due at
/// the same tick nor later ones.
#[test]
fn w01_a_waker_that_panics_harms_no_other() {
    let (timers, clock) = paused();
    let panics = on_wake(|| panic!("a waker"));
    let mut bad = [0; 50].map(|_| timers.sleep(ms(10)));
    let mut good = [0; 50].map(|_| ByHand::new(timers.sleep(ms(10))));
    for (bad, good) in bad.iter_mut().zip(&mut good) {
        assert!(poll_with(bad, &panics).is_pending());
        assert!(good.poll().is_pending());
    }
    clock.advance(ms(10));
    assert_eq!(timers.snapshot().panics, 50);
    assert!(good.iter().all(ByHand::is_woken));
    assert!(bad.iter_mut().all(|bad| poll_with(bad, &panics).is_ready()));
    ends_at(&mut ByHand::new(timers.sleep(ms(1))), &clock, 11);
}

/// As above, where the engine's own thread wakes.
#[test]
fn w02_a_waker_that_panics_leaves_the_waking_thread_alive() {
    let timers = Timers::builder().start().unwrap();
    let mut bad = timers.sleep(ms(1));
    assert!(poll_with(&mut bad, &on_wake(|| panic!("a waker"))).is_pending());
    block_on(timers.sleep(ms(5)));
    block_on(timers.sleep(ms(5)));
    assert_eq!(timers.snapshot().panics, 1);
    assert!(bad.is_elapsed());
}

/// A panic that is thrown again when it is dropped is counted once.
#[test]
fn w03_a_panic_that_panics_when_it_is_dropped_harms_nobody() {
    let (timers, clock) = paused();
    let mut bad = timers.sleep(ms(10));
    assert!(poll_with(&mut bad, &on_wake(|| panic_any(Grenade))).is_pending());
    ends_at(&mut ByHand::new(timers.sleep(ms(10))), &clock, 10);
    assert_eq!(timers.snapshot().panics, 1);
}

/// A waker that cannot be cloned stops the poll that clones it, and nothing else.
#[test]
fn w04_a_waker_that_panics_when_it_is_cloned_leaves_the_sleep_as_it_was() {
    let (timers, clock) = paused();
    let panics = on_clone(|| panic!("a clone"));
    let poll = |sleep: &mut Sleep<_>| catch_unwind(AssertUnwindSafe(|| poll_with(sleep, &panics)));
    let mut task = ByHand::new(timers.sleep(ms(10)));
    assert!(poll(&mut task).is_err());
    assert_eq!(timers.ledger().live, 0);
    // Neither does it take the place of a good one.
    assert!(task.poll().is_pending());
    assert!(poll(&mut task).is_err());
    clock.advance(ms(10));
    assert!(task.is_woken());
    assert!(task.poll().is_ready());
}

/// Nor does it change the limit, which begins with that poll.
#[test]
fn w12_a_waker_that_panics_when_it_is_cloned_leaves_the_limit_as_it_was() {
    let (timers, clock) = paused();
    clock.advance(ms(100_000));
    let panics = on_clone(|| panic!("a clone"));
    let mut limited = Box::pin(timers.timeout(ms(5_000), pending::<()>()));
    let poll = AssertUnwindSafe(|| poll_with(&mut limited, &panics));
    assert!(catch_unwind(poll).is_err());
    let ended = Box::pin(async { assert!(limited.await.is_err()) });
    ends_at(&mut ByHand::new(ended), &clock, 105_000);
}

/// A waker that panics when it is dropped panics in the call that drops its sleep. The
/// timers go on.
#[test]
fn w05_a_waker_that_panics_when_it_is_dropped_leaves_the_timers_in_order() {
    let (timers, clock) = paused();
    let armed = Arc::new(AtomicUsize::new(0));
    let inner = Arc::clone(&armed);
    let waker = on_drop(move || assert_eq!(inner.swap(0, Ordering::Relaxed), 0, "a drop"));
    let mut bad = timers.sleep(ms(10));
    assert!(poll_with(&mut bad, &waker).is_pending());
    let mut good = ByHand::new(timers.sleep(ms(10)));
    assert!(good.poll().is_pending());
    armed.store(1, Ordering::Relaxed);
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(bad)));
    armed.store(0, Ordering::Relaxed);
    assert!(dropped.is_err());
    assert_eq!(timers.ledger().live, 1);
    clock.advance(ms(10));
    assert!(good.is_woken());
    assert!(timers.ledger().is_balanced());
}

/// A waker that blocks delays the wake-ups of its own engine, because one thread wakes.
/// It holds up no call, and no other engine.
#[test]
fn w06_a_waker_that_blocks_holds_up_no_call_and_no_other_engine() {
    let timers = Timers::builder().start().unwrap();
    let (entered, has_entered) = mpsc::channel();
    let (release, is_released) = mpsc::channel::<()>();
    let is_released = Mutex::new(is_released);
    let blocks = on_wake(move || {
        entered.send(()).unwrap();
        is_released.lock().unwrap().recv().unwrap();
    });
    let mut slow = timers.sleep(ms(1));
    assert!(poll_with(&mut slow, &blocks).is_pending());
    has_entered.recv_timeout(PATIENCE).unwrap();

    // The control: another engine goes on.
    let mut delayed = ByHand::new(timers.sleep(ms(1)));
    assert!(delayed.poll().is_pending());
    block_on(tickwheel::time::sleep(ms(20)));
    assert!(!delayed.is_woken());
    let mut sleep = ByHand::new(timers.sleep(HOUR));
    assert!(sleep.poll().is_pending());
    sleep.reset(2 * HOUR);
    assert!(!sleep.is_elapsed());
    drop((sleep, slow));
    release.send(()).unwrap();
    block_on(delayed.into_inner());
}

/// A wake-up may drop a sleep that is due in the same batch, before or after its own turn.
#[test]
fn w07_a_waker_may_drop_another_sleep_of_its_batch() {
    let (timers, clock) = paused();
    let shared = [(); 2].map(|()| Shared::default());
    let wakes = [(); 2].map(|()| Arc::<Wakes>::default());
    let begin = |n: usize| {
        let mut sleep = timers.sleep(ms(10)).into_owned();
        assert!(poll_with(&mut sleep, &wakes[n].waker()).is_pending());
        shared[n].put(sleep);
    };
    let inner = shared.clone();
    let drops = on_wake(move || inner.iter().for_each(|sleep| drop(sleep.take())));
    let mut middle = timers.sleep(ms(10));
    begin(0);
    assert!(poll_with(&mut middle, &drops).is_pending());
    begin(1);
    clock.advance(ms(10));
    assert!(shared.iter().all(|sleep| sleep.take().is_none()));
    assert_eq!(wakes[0].count(), 1);
    // It was taken together with the others, so it may be woken in vain, once.
    assert!(wakes[1].count() <= 1);
    assert!(middle.is_elapsed());
    assert_eq!((timers.ledger().live, timers.snapshot().panics), (0, 0));
}

/// One waker may wait for several sleeps, and is woken for each. Its clones are the same
/// task: a poll with one of them does not take the place of another.
#[test]
fn w10_a_waker_and_its_clones_may_wait_for_many_sleeps() {
    let (timers, clock) = paused();
    let wakes = Arc::<Wakes>::default();
    let waker = wakes.waker();
    let mut sleeps = [10, 10, 20].map(|millis| timers.sleep(ms(millis)));
    for sleep in &mut sleeps {
        assert!(poll_with(sleep, &waker).is_pending());
        assert!(poll_with(sleep, &waker.clone()).is_pending());
    }
    drop(waker);
    // One in each timer, and the test's own.
    assert_eq!(Arc::strong_count(&wakes), 4);
    clock.advance(ms(10));
    assert_eq!(wakes.count(), 2);
    clock.advance(ms(10));
    assert_eq!(wakes.count(), 3);
    assert_eq!(Arc::strong_count(&wakes), 1);
}

/// A waker is dropped without a lock being held: when its sleep is dropped, when another
/// waker takes its place, and when the timers shut down.
#[test]
fn w11_a_waker_may_use_the_timers_when_it_is_dropped() {
    let (timers, _clock) = paused();
    let used = Arc::new(AtomicUsize::new(0));
    let waker = || {
        let (timers, used) = (timers.clone(), Arc::clone(&used));
        on_drop(move || {
            let mut sleep = timers.sleep(HOUR);
            assert!(poll_with(&mut sleep, Waker::noop()).is_pending());
            used.fetch_add(1, Ordering::Relaxed);
        })
    };
    // Each `waker()` itself is dropped as well.
    let mut sleep = timers.sleep(HOUR);
    assert!(poll_with(&mut sleep, &waker()).is_pending());
    assert_eq!(used.load(Ordering::Relaxed), 1);
    assert!(poll_with(&mut sleep, &waker()).is_pending());
    assert_eq!(used.load(Ordering::Relaxed), 3);
    drop(sleep);
    assert_eq!(used.load(Ordering::Relaxed), 4);
    assert_eq!(timers.ledger().live, 0);
}
