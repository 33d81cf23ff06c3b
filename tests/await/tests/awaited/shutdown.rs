//! Shutdowns in the middle.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tickwheel::time::Elapsed;

const ASKS: &str = "the timers were shut down or are draining: let tasks end before that";

/// Asserts that a call panics, and that the panic says what to do.
fn is_refused<R>(wait: impl FnOnce() -> R) {
    let thrown = catch_unwind(AssertUnwindSafe(wait)).err();
    assert_eq!(thrown.unwrap().downcast_ref(), Some(&ASKS));
}

fn says_shut_down(polled: Poll<Result<(), Elapsed>>) -> bool {
    matches!(polled, Poll::Ready(Err(ended)) if ended.is_shut_down())
}

fn shuts_down(timers: &Timers) -> impl Fn() + Send + Sync + use<> {
    let timers = timers.clone();
    move || _ = timers.shutdown()
}

/// All that waits is woken, and learns how it ended, however late it asks. The control waits on other timers.
#[test]
fn e01_a_shutdown_ends_every_wait_and_says_so() {
    let ((timers, clock), (others, _clock)) = (paused(), paused());
    let mut control = ByHand::new(others.sleep(HOUR));
    let mut elapsed = ByHand::new(timers.sleep(ms(10)));
    let mut waiting = ByHand::new(timers.sleep(HOUR));
    let mut limited = ByHand::new(timers.timeout(HOUR, pending::<()>()));
    let mut beat = ByHand::new(timers.interval_at(timers.now() + HOUR, HOUR));
    let mut bad = timers.sleep(HOUR);
    assert!(poll_with(&mut bad, &on_wake(|| panic!("a waker"))).is_pending());
    for sleep in [&mut control, &mut elapsed, &mut waiting] {
        assert!(sleep.poll().is_pending());
    }
    assert!(limited.poll().is_pending());
    assert!(poll_tick(&mut beat).is_pending());
    clock.advance(ms(10));
    assert_eq!((timers.drain(HOUR / 2), timers.snapshot().panics), (4, 1));
    clock.advance(HOUR);

    assert!(elapsed.poll().is_ready() && elapsed.is_elapsed());
    assert!(waiting.is_woken() && !waiting.is_elapsed());
    assert!(waiting.poll().is_ready() && !waiting.is_elapsed());
    assert!(waiting.poll().is_ready(), "it stays so");
    assert!(limited.is_woken() && beat.is_woken() && !control.is_woken());
    assert!(says_shut_down(limited.poll()));
    (0..2).for_each(|_| is_refused(|| poll_tick(&mut beat)));
}

/// A wait that begins later panics.
#[test]
fn e02_a_wait_that_begins_after_a_shutdown_panics() {
    let (timers, _clock) = paused();
    let mut ended = ByHand::new(timers.sleep(HOUR));
    assert!(ended.poll().is_pending());
    timers.shutdown();
    is_refused(|| ByHand::new(timers.sleep(HOUR)).poll());
    let mut beat = ByHand::new(timers.interval(HOUR));
    is_refused(|| poll_tick(&mut beat));
    // So does one that is reset.
    assert!(ended.poll().is_ready());
    ended.reset(HOUR);
    is_refused(|| ended.poll());
    assert!(ended.poll().is_ready(), "it is refused once");
    // What is ready needs no timer.
    let ready = timers.timeout(HOUR, std::future::ready(7));
    assert_eq!(ByHand::new(ready).poll(), Poll::Ready(Ok(7)));
}

/// The shutdown comes in the middle of the first poll, which clones its waker.
#[test]
fn e03_a_shutdown_during_the_first_poll_is_a_shutdown_before_it() {
    let (timers, _clock) = paused();
    let waker = on_clone(shuts_down(&timers));
    is_refused(|| poll_with(&mut timers.sleep(HOUR), &waker));
    assert!(timers.ledger().is_balanced());

    let (timers, _clock) = paused();
    let mut limited = timers.timeout(HOUR, pending::<()>());
    let waker = on_clone(shuts_down(&timers));
    assert!(says_shut_down(poll_with(&mut limited, &waker)));
}

/// The shutdown comes while a poll changes the waker. It wakes the old one, and the poll is
/// ready.
#[test]
fn e04_a_shutdown_while_the_waker_changes_makes_the_poll_ready() {
    let (timers, _clock) = paused();
    let mut task = ByHand::new(timers.sleep(HOUR));
    assert!(task.poll().is_pending());
    assert!(poll_with(&mut *task, &on_clone(shuts_down(&timers))).is_ready());
    assert!(task.is_woken() && !task.is_elapsed());
}

/// A wake-up may shut down the timers that it comes from, on the engine's own thread, which
/// a shutdown ends.
#[test]
fn e06_the_waking_thread_may_shut_itself_down() {
    let timers = Timers::builder().start().unwrap();
    let (shut_down, (ended, has_ended)) = (shuts_down(&timers), mpsc::channel());
    let waker = on_wake(move || {
        shut_down();
        ended.send(()).unwrap();
    });
    let mut later = ByHand::new(timers.sleep(HOUR));
    assert!(later.poll().is_pending());
    let mut sleep = timers.sleep(ms(1));
    assert!(poll_with(&mut sleep, &waker).is_pending());
    assert_eq!(has_ended.recv_timeout(PATIENCE), Ok(()));
    assert!(sleep.is_elapsed() && later.is_woken() && !later.is_elapsed());
    assert_eq!(timers.snapshot().panics, 0);
}
