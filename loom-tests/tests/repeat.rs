//! A repeating timer's firing comes back while the timer is cancelled.

#![cfg(loom)]

use std::time::Duration;

use loom::thread;
use tickwheel::{Cancel, Engine, Expired, Timer, TimerId, VirtualClock};
use tickwheel_loom_tests::{Payload, assert_all_ended, builder, model, payload, take_all, tick};

struct Lent {
    engine: Engine<Payload>,
    clock: VirtualClock<Payload>,
    id: TimerId,
    firing: Expired<Payload>,
}

/// A timer with a period of one tick, whose first firing is in a worker's
/// hands while the clock says `now`.
fn lent(now: u64) -> Lent {
    let (engine, clock) = builder(1).start_virtual().unwrap();
    let beat = Timer::every(Duration::from_millis(1), payload(0));
    let id = engine.schedule(beat).unwrap();
    clock.advance_to(tick(now));
    let firing = engine.queue(0).try_recv().unwrap();
    Lent {
        engine,
        clock,
        id,
        firing,
    }
}

/// Nothing is armed after cancel said so, and nothing fires any more.
fn cancel_is_final(lent: Lent) {
    let Lent {
        engine,
        clock,
        id,
        firing,
    } = lent;
    let worker = thread::spawn(move || drop(firing));
    let cancelled = engine.cancel(id);
    assert!(!matches!(cancelled, Cancel::Gone));
    worker.join().unwrap();
    assert_all_ended(engine.ledger());
    assert_eq!(engine.ledger().cancelled, 1);
    clock.advance_to(tick(3));
    assert!(take_all(&engine.queue(0)).is_empty());
}

/// The next firing would go back into the wheel.
#[test]
fn cancel() {
    model(|| cancel_is_final(lent(1)));
}

/// The next firing is due already and would go straight to the queue.
#[test]
fn cancel_when_behind() {
    model(|| cancel_is_final(lent(2)));
}

/// When `cancel_and_wait` returns, no firing is in anybody's hands.
#[test]
fn cancel_and_wait() {
    model(|| {
        let Lent {
            engine, id, firing, ..
        } = lent(1);
        let worker = thread::spawn(move || drop(firing));
        let _ = engine.cancel_and_wait(id);
        assert_all_ended(engine.ledger());
        worker.join().unwrap();
    });
}

/// Nor in anybody else's, where two wait for different ones.
#[test]
fn cancel_and_wait_for_two() {
    model(|| {
        let (engine, clock) = builder(1).start_virtual().unwrap();
        let lend = |name| {
            let beat = Timer::every(Duration::from_millis(1), payload(name));
            engine.schedule(beat).unwrap()
        };
        let ids = [lend(0), lend(1)];
        clock.advance_to(tick(1));
        let firings = ids.map(|_| engine.queue(0).try_recv().unwrap());
        let other = {
            let engine = engine.clone();
            thread::spawn(move || engine.cancel_and_wait(ids[0]).is_cancelled())
        };
        let worker = thread::spawn(move || drop(firings));
        let _ = engine.cancel_and_wait(ids[1]);
        other.join().unwrap();
        worker.join().unwrap();
        assert_all_ended(engine.ledger());
    });
}

/// Shut down with a firing in a worker's hands: the timer is returned once,
/// the payload with it or dropped with the firing.
#[test]
fn shutdown() {
    model(|| {
        let Lent { engine, firing, .. } = lent(1);
        let worker = thread::spawn(move || drop(firing));
        assert_eq!(engine.shutdown().len(), 1);
        worker.join().unwrap();
        assert_all_ended(engine.ledger());
        assert_eq!(engine.ledger().shut_down, 1);
    });
}

/// Shut down with a firing in a worker's hands, and asked for: there is one
/// report, once the firing came back.
#[test]
fn shutdown_and_report() {
    model(|| {
        let (engine, clock) = builder(1).start_virtual().unwrap();
        let beat = Timer::every(Duration::from_millis(1), payload(0)).reported();
        engine.schedule(beat).unwrap();
        clock.advance_to(tick(1));
        let firing = engine.queue(0).try_recv().unwrap();
        let worker = thread::spawn(move || drop(firing));
        assert_eq!(engine.shutdown().len(), 1);
        worker.join().unwrap();
        assert_eq!(engine.closed().count(), 1);
        assert_all_ended(engine.ledger());
    });
}
