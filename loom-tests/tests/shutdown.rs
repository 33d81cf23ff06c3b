//! Timers are scheduled while the engine is shut down.

#![cfg(loom)]

use loom::thread;
use tickwheel::{Engine, Refusal, Timer};
use tickwheel_loom_tests::{Payload, assert_all_ended, builder, model, payload, tick};

/// Returns the payload if it was refused.
fn submit(engine: &Engine<Payload>, name: u32) -> Option<Payload> {
    let refused = engine.schedule(Timer::at(tick(1), payload(name))).err()?;
    assert_eq!(refused.reason(), Refusal::Closed);
    Some(refused.into_timer().into_payload())
}

/// Accepted means returned by shutdown, refused means returned by `schedule`:
/// each payload comes back once, one way or the other.
fn every_payload_comes_back(engine: &Engine<Payload>, submitters: u32) {
    let threads: Vec<_> = (0..submitters)
        .map(|name| {
            let engine = engine.clone();
            thread::spawn(move || submit(&engine, name))
        })
        .collect();
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

#[test]
fn one_submitter() {
    model(|| {
        let (engine, _clock) = builder(1).start_virtual().unwrap();
        every_payload_comes_back(&engine, 1);
    });
}

/// The ticker is there too, and ends.
#[test]
fn one_submitter_and_the_ticker() {
    model(|| {
        let (engine, _clock) = builder(1).start_model().unwrap();
        every_payload_comes_back(&engine, 1);
    });
}

#[test]
fn two_submitters() {
    model(|| {
        let (engine, _clock) = builder(2).start_virtual().unwrap();
        every_payload_comes_back(&engine, 2);
    });
}

#[test]
fn three_submitters() {
    model(|| {
        let (engine, _clock) = builder(2).start_virtual().unwrap();
        every_payload_comes_back(&engine, 3);
    });
}

/// Two shutdowns at once: each timer is returned by one of them, and the
/// worker ends.
#[test]
fn another_shutdown() {
    model(|| {
        let (engine, _clock) = builder(1).start_virtual().unwrap();
        engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        let queue = engine.queue(0);
        let other = {
            let engine = engine.clone();
            thread::spawn(move || engine.shutdown().len())
        };
        assert_eq!(engine.shutdown().len() + other.join().unwrap(), 1);
        assert!(queue.recv().is_err());
        assert_all_ended(engine.ledger());
    });
}
