//! Timers are scheduled while the engine is shut down.

#![cfg(loom)]

use loom::thread;
use tickwheel::{Engine, Refusal, Timer};
use tickwheel_loom_tests::{Payload, assert_all_ended, builder, model, payload, take_all, tick};

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

/// An engine with three timers that have expired, if they are to have; a model's
/// shutdown lets go of the lock after each.
fn with_three(expired: bool) -> (Engine<Payload>, Vec<tickwheel::TimerId>) {
    let (engine, clock) = builder(1).start_virtual().unwrap();
    let schedule = |name| engine.schedule(Timer::at(tick(1), payload(name))).unwrap();
    let ids = (0..3).map(schedule).collect();
    if expired {
        clock.advance_to(tick(1));
    }
    (engine, ids)
}

/// Runs `other` beside a shutdown: each payload comes back once, from either.
fn ends_once_each(
    engine: &Engine<Payload>,
    expected: u32,
    other: impl FnOnce(Engine<Payload>) -> Vec<u32> + Send + 'static,
) {
    let beside = engine.clone();
    let other = thread::spawn(move || other(beside));
    let closed = engine.shutdown().into_iter();
    let mut back: Vec<u32> = closed.map(|c| c.payload.unwrap().name()).collect();
    back.extend(other.join().unwrap());
    back.sort_unstable();
    assert!(back.iter().copied().eq(0..expected), "{back:?}");
    assert_all_ended(engine.ledger());
}

/// Between two holds of a shutdown's walk others cancel what it has not reached,
/// and what it has.
#[test]
fn cancels_beside_a_walk() {
    model(|| {
        let (engine, ids) = with_three(false);
        ends_once_each(&engine, 3, move |engine| {
            let cancelled = ids.into_iter().rev().map(|id| engine.cancel(id).payload());
            cancelled.flatten().map(|payload| payload.name()).collect()
        });
    });
}

/// They schedule nothing behind its back.
#[test]
fn schedules_beside_a_walk() {
    model(|| {
        let (engine, ids) = with_three(false);
        // Its entry, which the walk passes first, is free for the new one.
        let cancelled = engine.cancel(ids[0]).payload().unwrap();
        ends_once_each(&engine, 4, move |engine| {
            let refused = submit(&engine, 3).into_iter().chain([cancelled]);
            refused.map(|payload| payload.name()).collect()
        });
    });
}

/// A worker takes what the walk has not reached.
#[test]
fn takes_beside_a_walk() {
    model(|| {
        let (engine, _ids) = with_three(true);
        ends_once_each(&engine, 3, |engine| {
            let taken = take_all(&engine.queue(0));
            taken.into_iter().map(|payload| payload.name()).collect()
        });
    });
}

/// Two walks meet.
#[test]
fn two_walks() {
    model(|| {
        let (engine, _ids) = with_three(true);
        ends_once_each(&engine, 3, |engine| {
            let closed = engine.shutdown().into_iter();
            closed.map(|c| c.payload.unwrap().name()).collect()
        });
    });
}
