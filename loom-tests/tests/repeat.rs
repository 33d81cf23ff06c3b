//! A firing of a repeating timer comes back while the timer is cancelled.

#![cfg(loom)]

use loom::thread;
use tickwheel::Cancel;
use tickwheel_loom_tests::{
    Lent, assert_all_ended, beat, beside, engine_model, lent, model, take_all, tick,
};

/// After `cancel` has returned, no firing is scheduled, and none happens.
fn cancel_is_final(lent: Lent) {
    let Lent { engine, clock, id, firing } = lent;
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
    model(|| cancel_is_final(lent(beat(0), 1)));
}

/// The next firing is due already and would go to the queue at once.
#[test]
fn cancel_when_behind() {
    model(|| cancel_is_final(lent(beat(0), 2)));
}

/// When `cancel_and_wait` returns, no worker holds a firing.
#[test]
fn cancel_and_wait() {
    model(|| {
        let Lent { engine, id, firing, .. } = lent(beat(0), 1);
        let worker = thread::spawn(move || drop(firing));
        engine.cancel_and_wait(id);
        assert_all_ended(engine.ledger());
        worker.join().unwrap();
    });
}

/// The same when two threads wait for different firings.
#[test]
fn cancel_and_wait_for_two() {
    engine_model(|engine, clock| {
        let ids = [0, 1].map(|name| engine.schedule(beat(name)).unwrap());
        clock.advance_to(tick(1));
        let firings = ids.map(|_| engine.queue(0).try_recv().unwrap());
        let other = beside(&engine, move |engine| engine.cancel_and_wait(ids[0]).is_cancelled());
        let worker = thread::spawn(move || drop(firings));
        engine.cancel_and_wait(ids[1]);
        other.join().unwrap();
        worker.join().unwrap();
        assert_all_ended(engine.ledger());
    });
}

/// The same with a report: there is one, after the firing has come back.
#[test]
fn shutdown_and_report() {
    model(|| {
        let Lent { engine, firing, .. } = lent(beat(0).reported(), 1);
        let worker = thread::spawn(move || drop(firing));
        assert_eq!(engine.shutdown().len(), 1);
        worker.join().unwrap();
        assert_eq!(engine.reports().count(), 1);
        assert_all_ended(engine.ledger());
    });
}
