//! A timer is started, or given up, while others cancel it.

#![cfg(loom)]

use loom::thread::{self, JoinHandle};
use tickwheel::{Engine, Timer, TimerId, Unstarted};
use tickwheel_loom_tests::{Payload, assert_all_ended, builder, model, payload, tick};

const NAME: &str = "lease";

/// An engine that has room for one timer, and that timer.
fn created() -> (Engine<Payload>, Unstarted<Payload>) {
    let (engine, _clock) = builder(1).max_timers(1).start_virtual().unwrap();
    let timer = Timer::at(tick(1), payload(0)).named(NAME);
    let unstarted = engine.create(timer).unwrap();
    (engine, unstarted)
}

/// A thread that cancels by id, and says how many payloads it got.
fn cancelling(engine: &Engine<Payload>, id: TimerId) -> JoinHandle<usize> {
    let engine = engine.clone();
    thread::spawn(move || usize::from(engine.cancel(id).payload().is_some()))
}

/// The same by name.
fn cancelling_by_name(engine: &Engine<Payload>) -> JoinHandle<usize> {
    let engine = engine.clone();
    thread::spawn(move || engine.cancel_by_name(NAME, 1).payloads.len())
}

/// Started before the shutdown, which returns it then, or refused after it.
#[test]
fn start_and_shutdown() {
    model(|| {
        let (engine, unstarted) = created();
        let other = {
            let engine = engine.clone();
            thread::spawn(move || engine.shutdown().len())
        };
        let refused = usize::from(unstarted.start().is_err());
        assert_eq!(refused + other.join().unwrap(), 1);
        assert_all_ended(engine.ledger());
    });
}

/// Started, cancelled, shut down: the payload comes back once, and the ledger
/// has heard of the timer if it was started.
#[test]
fn start_and_cancel_and_shutdown() {
    model(|| {
        let (engine, unstarted) = created();
        let id = unstarted.id();
        let canceller = cancelling(&engine, id);
        let other = {
            let engine = engine.clone();
            thread::spawn(move || engine.shutdown().len())
        };
        let refused = usize::from(unstarted.start().is_err());
        let (cancelled, returned) = (canceller.join().unwrap(), other.join().unwrap());
        assert_eq!(refused + cancelled + returned, 1);
        let ledger = engine.ledger();
        assert_all_ended(ledger);
        assert_eq!(ledger.shut_down, returned as u64);
        assert!(ledger.cancelled <= cancelled as u64);
    });
}

/// Given up, and cancelled by its id and by its name: the payload comes back
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

/// Started and cancelled in both ways: it never fires if anybody was told that
/// it was cancelled.
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
