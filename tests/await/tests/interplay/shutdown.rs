//! Shutdowns in the middle.

use super::*;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The message of a panic.
fn message<R>(panics: impl FnOnce() -> R) -> String {
    let Err(thrown) = catch_unwind(AssertUnwindSafe(panics)) else {
        panic!("no panic");
    };
    *thrown
        .downcast::<&str>()
        .map(|text| Box::new(text.to_string()))
        .unwrap()
}

/// All that waits is woken, and learns how it ended. The control waits on other timers.
#[test]
fn e01_a_shutdown_ends_every_wait_and_says_so() {
    let (timers, clock) = paused();
    let (others, _clock) = paused();
    let mut control = ByHand::new(others.sleep(HOUR));
    let mut elapsed = ByHand::new(timers.sleep(ms(10)));
    let mut waiting = ByHand::new(timers.sleep(HOUR));
    let mut limited = ByHand::new(timers.timeout(HOUR, pending::<()>()));
    let mut beat = ByHand::new(timers.interval_at(timers.now() + HOUR, HOUR));
    assert!(control.poll().is_pending());
    assert!(elapsed.poll().is_pending() && waiting.poll().is_pending());
    assert!(limited.poll().is_pending());
    assert!(
        beat.enter(|beat, context| beat.poll_tick(context))
            .is_pending()
    );
    clock.advance(ms(10));
    assert_eq!(timers.shutdown(), 3);

    assert!(elapsed.poll().is_ready() && elapsed.is_elapsed());
    assert!(waiting.is_woken());
    assert!(waiting.poll().is_ready() && !waiting.is_elapsed());
    assert!(waiting.poll().is_ready(), "it stays so");
    assert!(limited.is_woken());
    let Poll::Ready(Err(ended)) = limited.poll() else {
        panic!("it has not ended");
    };
    assert!(ended.is_shut_down());
    assert!(beat.is_woken());
    assert!(control.poll().is_pending() && !control.is_woken());
}

/// A wait that begins later panics, and the panic says what to do.
#[test]
fn e02_a_wait_that_begins_after_a_shutdown_panics() {
    let (timers, _clock) = paused();
    let mut ended = ByHand::new(timers.sleep(HOUR));
    assert!(ended.poll().is_pending());
    timers.shutdown();
    let asks = "the timers were shut down: check `Timers::is_shut_down` before waiting again";
    assert_eq!(message(|| ByHand::new(timers.sleep(HOUR)).poll()), asks);
    let mut beat = ByHand::new(timers.interval(HOUR));
    assert_eq!(
        message(|| beat.enter(|beat, context| beat.poll_tick(context))),
        asks
    );
    // So does one that is reset.
    assert!(ended.poll().is_ready());
    ended.reset(HOUR);
    assert_eq!(message(|| ended.poll()), asks);
    // What is ready needs no timer.
    let ready = timers.timeout(HOUR, std::future::ready(7));
    assert_eq!(ByHand::new(ready).poll(), Poll::Ready(Ok(7)));
}

/// The shutdown comes in the middle of the first poll, which clones its waker.
#[test]
fn e03_a_shutdown_during_the_first_poll_is_a_shutdown_before_it() {
    let (timers, _clock) = paused();
    let shuts_down = {
        let timers = timers.clone();
        Scripted::new()
            .on_clone(move || _ = timers.shutdown())
            .waker()
    };
    let mut sleep = timers.sleep(HOUR);
    let text = message(|| poll_with(&mut sleep, &shuts_down));
    assert!(text.contains("shut down"), "{text}");
    assert!(timers.ledger().is_balanced());

    let (timers, _clock) = paused();
    let shuts_down = {
        let timers = timers.clone();
        Scripted::new()
            .on_clone(move || _ = timers.shutdown())
            .waker()
    };
    let mut limited = timers.timeout(HOUR, pending::<()>());
    let Poll::Ready(Err(ended)) = poll_with(&mut limited, &shuts_down) else {
        panic!("it has not ended");
    };
    assert!(ended.is_shut_down());
}

/// The shutdown comes while a poll changes the waker. It wakes the old one, and the poll is
/// ready.
#[test]
fn e04_a_shutdown_while_the_waker_changes_makes_the_poll_ready() {
    let (timers, _clock) = paused();
    let mut task = ByHand::new(timers.sleep(HOUR));
    assert!(task.poll().is_pending());
    let shuts_down = {
        let timers = timers.clone();
        Scripted::new().on_clone(move || assert_eq!(timers.shutdown(), 1))
    };
    assert!(poll_with(&mut *task, &shuts_down.waker()).is_ready());
    assert!(task.is_woken() && !task.is_elapsed());
}

/// A wake-up may shut down the timers that it comes from.
#[test]
fn e05_a_waker_may_shut_down_its_own_timers() {
    let (timers, clock) = paused();
    let shuts_down = {
        let timers = timers.clone();
        Scripted::new().on_wake(move || assert_eq!(timers.shutdown(), 1))
    };
    let mut sleep = timers.sleep(ms(10));
    assert!(poll_with(&mut sleep, &shuts_down.waker()).is_pending());
    let mut later = ByHand::new(timers.sleep(HOUR));
    assert!(later.poll().is_pending());
    clock.advance(ms(10));
    assert!(sleep.is_elapsed() && later.is_woken() && !later.is_elapsed());
    assert_eq!(timers.snapshot().panics, 0);
}

/// As above, on the engine's own thread, which a shutdown ends.
#[test]
fn e06_the_waking_thread_may_shut_itself_down() {
    let timers = Timers::builder().start().unwrap();
    let (ended, has_ended) = mpsc::channel();
    let shuts_down = {
        let timers = timers.clone();
        Scripted::new().on_wake(move || ended.send(timers.shutdown()).unwrap())
    };
    let mut sleep = timers.sleep(ms(1));
    assert!(poll_with(&mut sleep, &shuts_down.waker()).is_pending());
    assert_eq!(has_ended.recv_timeout(PATIENCE), Ok(0));
    assert!(sleep.is_elapsed());
}

/// Threads poll, reset and drop sleeps while others shut the timers down: each wait ends,
/// or is refused.
#[test]
fn e07_a_shutdown_among_threads_that_poll_loses_no_wait() {
    for round in 0..50 {
        let timers = Timers::builder().start().unwrap();
        let (begun, all_begun) = mpsc::channel();
        let waits = |millis| {
            let (timers, begun) = (timers.clone(), begun.clone());
            move || {
                let limit = |millis| timers.timeout(ms(millis), pending::<()>());
                for _ in 0..round {
                    let mut dropped = Box::pin(limit(3_600_000));
                    if poll_with(&mut dropped, Waker::noop()).is_ready() {
                        break;
                    }
                }
                begun.send(()).unwrap();
                block_on(limit(millis)).unwrap_err().is_shut_down()
            }
        };
        let long: Vec<_> = (0..2).map(|_| thread::spawn(waits(3_600_000))).collect();
        let short = thread::spawn(waits(1));
        for _ in 0..round % 4 {
            all_begun.recv_timeout(PATIENCE).unwrap();
        }
        timers.shutdown();
        for thread in long {
            assert!(thread.join().unwrap(), "the wait of an hour");
        }
        let _ = short.join().unwrap();
        assert!(timers.ledger().is_balanced());
        assert_eq!(timers.ledger().live, 0);
    }
}
