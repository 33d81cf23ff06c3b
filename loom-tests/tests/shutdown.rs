//! Timers are scheduled while the engine is shut down.

#![cfg(loom)]

use tickwheel::{Engine, Refusal, Timer, TimerId};
use tickwheel_loom_tests::{
    Payload, assert_all_ended, beside, builder, engine_model, model, payload, tick, ticker_model,
};

/// Schedules a timer. Returns its payload if it is refused.
fn submit(engine: &Engine<Payload>, name: u32) -> Option<Payload> {
    let refused = engine.schedule(Timer::at(tick(1), payload(name))).err()?;
    assert_eq!(refused.reason(), Refusal::ShutDown);
    Some(refused.into_payload())
}

/// Shutdown returns the accepted timers, and `schedule` the refused ones: each
/// payload comes back once.
fn every_payload_comes_back(engine: &Engine<Payload>, submitters: u32) {
    let threads: Vec<_> =
        (0..submitters).map(|name| beside(engine, move |engine| submit(engine, name))).collect();
    let closed = engine.shutdown().into_iter();
    let mut back: Vec<u32> = closed.map(|c| c.payload.unwrap().name()).collect();
    let accepted = back.len() as u64;
    for thread in threads {
        back.extend(thread.join().unwrap().map(|payload| payload.name()));
    }
    back.sort_unstable();
    assert!(back.iter().copied().eq(0..submitters), "{back:?}");
    let ledger = engine.ledger();
    assert_all_ended(ledger);
    assert_eq!(ledger.accepted, accepted);
}

/// The ticker ends, too.
#[test]
fn one_submitter_and_the_ticker() {
    ticker_model(|engine, _clock| {
        every_payload_comes_back(&engine, 1);
    });
}

#[test]
fn three_submitters() {
    model(|| {
        let (engine, _clock) = builder(2).start_virtual().unwrap();
        every_payload_comes_back(&engine, 3);
    });
}

/// Two threads shut down at once: one of them returns the timer, and the worker
/// ends.
#[test]
fn two_shutdowns() {
    engine_model(|engine, _clock| {
        engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        let queue = engine.queue(0);
        let other = beside(&engine, |engine| engine.shutdown().len());
        assert_eq!(engine.shutdown().len() + other.join().unwrap(), 1);
        assert!(queue.recv().is_err());
        assert_all_ended(engine.ledger());
    });
}

/// Schedules three timers. In a model, a shutdown releases the lock after each.
fn three(engine: &Engine<Payload>) -> Vec<TimerId> {
    let schedule = |name| engine.schedule(Timer::at(tick(1), payload(name))).unwrap();
    (0..3).map(schedule).collect()
}

/// Runs `other` beside a shutdown: each payload comes back once, from one of them.
fn ends_once_each(
    engine: &Engine<Payload>,
    expected: u32,
    other: impl FnOnce(&Engine<Payload>) -> Vec<u32> + 'static,
) {
    let other = beside(engine, other);
    let closed = engine.shutdown().into_iter();
    let mut back: Vec<u32> = closed.map(|c| c.payload.unwrap().name()).collect();
    back.extend(other.join().unwrap());
    back.sort_unstable();
    assert!(back.iter().copied().eq(0..expected), "{back:?}");
    assert_all_ended(engine.ledger());
}

/// Between two holds of a shutdown, another thread cancels timers that the shutdown
/// has reached, and timers that it has not.
#[test]
fn cancel_between_holds() {
    engine_model(|engine, _clock| {
        let ids = three(&engine);
        ends_once_each(&engine, 3, move |engine| {
            let cancelled = ids.into_iter().rev().map(|id| engine.cancel(id).into_payload());
            cancelled.flatten().map(|payload| payload.name()).collect()
        });
    });
}

/// Between two holds, no timer is accepted into an entry that the shutdown has
/// passed.
#[test]
fn schedule_between_holds() {
    engine_model(|engine, _clock| {
        let ids = three(&engine);
        // The shutdown passes the entry of this timer first; now it is free.
        let cancelled = engine.cancel(ids[0]).into_payload().unwrap();
        ends_once_each(&engine, 4, move |engine| {
            let refused = submit(engine, 3).into_iter().chain([cancelled]);
            refused.map(|payload| payload.name()).collect()
        });
    });
}
