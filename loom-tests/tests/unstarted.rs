//! A timer is started or dismissed while other threads cancel it.

#![cfg(loom)]

use loom::thread::JoinHandle;
use tickwheel::{Engine, Timer, TimerId, Unstarted};
use tickwheel_loom_tests::{Payload, assert_all_ended, beside, builder, model, payload, tick};

const NAME: &str = "lease";

/// Returns an engine with room for one timer, and that timer.
fn created() -> (Engine<Payload>, Unstarted<Payload>) {
    let (engine, _clock) = builder(1).max_timers(1).start_virtual().unwrap();
    let timer = Timer::at(tick(1), payload(0)).named(NAME);
    let unstarted = engine.create(timer).unwrap();
    (engine, unstarted)
}

/// Cancels by id from another thread, which returns how many payloads it got.
fn cancelling(engine: &Engine<Payload>, id: TimerId) -> JoinHandle<usize> {
    beside(engine, move |engine| usize::from(engine.cancel(id).into_payload().is_some()))
}

/// The same by name.
fn cancelling_by_name(engine: &Engine<Payload>) -> JoinHandle<usize> {
    beside(engine, |engine| engine.cancel_by_name(NAME, 1).len())
}

/// The timer is started before the shutdown, which returns it, or refused after it.
#[test]
fn start_and_shutdown() {
    model(|| {
        let (engine, unstarted) = created();
        let other = beside(&engine, |engine| engine.shutdown().len());
        let refused = usize::from(unstarted.start().is_err());
        assert_eq!(refused + other.join().unwrap(), 1);
        assert_all_ended(engine.ledger());
    });
}

/// A timer is started, cancelled and shut down at once: the payload comes back once,
/// and the ledger counts the timer if it was started.
#[test]
fn start_and_cancel_and_shutdown() {
    model(|| {
        let (engine, unstarted) = created();
        let id = unstarted.id();
        let canceller = cancelling(&engine, id);
        let other = beside(&engine, |engine| engine.shutdown().len());
        let refused = usize::from(unstarted.start().is_err());
        let (cancelled, returned) = (canceller.join().unwrap(), other.join().unwrap());
        assert_eq!(refused + cancelled + returned, 1);
        let ledger = engine.ledger();
        assert_all_ended(ledger);
        assert_eq!(ledger.shut_down, returned as u64);
        assert!(ledger.cancelled <= cancelled as u64);
    });
}

/// A timer is dismissed, and cancelled by id and by name: the payload comes back
/// once, and there is room for another timer.
#[test]
fn dismiss_and_cancel_and_cancel_by_name() {
    model(|| {
        let (engine, unstarted) = created();
        let id = unstarted.id();
        let canceller = cancelling(&engine, id);
        let by_name = cancelling_by_name(&engine);
        let dismissed = usize::from(unstarted.dismiss().is_some());
        let cancelled = canceller.join().unwrap() + by_name.join().unwrap();
        assert_eq!(dismissed + cancelled, 1);
        assert_eq!(engine.ledger().accepted, 0);
        engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
        assert_eq!(engine.shutdown().len(), 1);
    });
}

/// A timer is started, and cancelled in both ways: one call cancels it, and it never
/// fires.
#[test]
fn start_and_cancel_and_cancel_by_name() {
    model(|| {
        let (engine, unstarted) = created();
        let id = unstarted.id();
        let canceller = cancelling(&engine, id);
        let by_name = cancelling_by_name(&engine);
        unstarted.start().unwrap();
        assert_eq!(canceller.join().unwrap() + by_name.join().unwrap(), 1);
        assert!(engine.shutdown().is_empty());
        assert_all_ended(engine.ledger());
        assert_eq!(engine.ledger().cancelled, 1);
    });
}
