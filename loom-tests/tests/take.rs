//! Workers take expired timers while other threads cancel or shut down.

#![cfg(loom)]

use loom::thread::{self, JoinHandle};
use tickwheel::{Builder, Engine, Expired, Timer, TimerId, VirtualClock};
use tickwheel_loom_tests::{
    Payload, assert_all_ended, beside, builder, model, names, payload, tick,
};

/// Returns an engine in which timers 0 and 1 have expired, and the id of the first.
fn two_expired(small: Builder<Engine<Payload>>) -> (Engine<Payload>, VirtualClock, TimerId) {
    let (engine, clock) = small.start_virtual().unwrap();
    let first = engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
    engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
    clock.advance_to(tick(1));
    (engine, clock, first)
}

/// Each payload is returned once, and a worker whose timer was cancelled takes the
/// next one.
#[test]
fn cancel_and_two_workers() {
    model(|| {
        let (engine, clock, id) = two_expired(builder(1));
        let workers = [take_one(&engine), take_one(&engine)];
        let mut ends: Vec<Payload> = engine.cancel(id).into_payload().into_iter().collect();
        if !ends.is_empty() {
            engine.schedule(Timer::at(tick(2), payload(2))).unwrap();
            clock.advance_to(tick(2));
        }
        let cancelled = ends.len();
        ends.extend(workers.map(|worker| worker.join().unwrap()));
        assert_eq!(names(&ends), [0, 1, 2][..2 + cancelled]);
        assert_all_ended(engine.ledger());
    });
}

/// A worker that takes many does not wait for as many as it may take.
#[test]
fn many_and_cancel() {
    model(|| {
        let (engine, _clock, id) = two_expired(builder(1));
        let queue = engine.queue(0);
        let worker = thread::spawn(move || {
            let mut taken = Vec::new();
            assert!(queue.recv_many(&mut taken, 3).unwrap().is_none());
            taken
        });
        let mut ends: Vec<Payload> = engine.cancel(id).into_payload().into_iter().collect();
        ends.extend(worker.join().unwrap());
        assert_eq!(names(&ends), [0, 1]);
        assert_all_ended(engine.ledger());
    });
}

/// Each payload has one end, and a call that took some says so.
#[test]
fn many_and_cancel_and_shutdown() {
    model(|| {
        let (engine, clock, _) = two_expired(builder(1));
        // A hold takes two at most.
        let last = engine.schedule(Timer::at(tick(2), payload(2))).unwrap();
        clock.advance_to(tick(2));
        let worker = take_many_until_closed(&engine);
        let canceller = beside(&engine, move |engine| engine.cancel(last).into_payload());
        let returned = engine.shutdown();
        let mut ends: Vec<Payload> = returned.into_iter().filter_map(|c| c.payload).collect();
        ends.extend(canceller.join().unwrap());
        ends.extend(worker.join().unwrap());
        assert_eq!(names(&ends), [0, 1, 2]);
        assert_all_ended(engine.ledger());
    });
}

fn take_many_until_closed(engine: &Engine<Payload>) -> JoinHandle<Vec<Payload>> {
    let queue = engine.queue(0);
    thread::spawn(move || {
        let mut taken = Vec::new();
        loop {
            let before = taken.len();
            let more = queue.recv_many(&mut taken, 3);
            assert_eq!(taken.len() > before, more.is_ok());
            if more.is_err() {
                return taken;
            }
        }
    })
}

fn take_one(engine: &Engine<Payload>) -> JoinHandle<Payload> {
    let queue = engine.queue(0);
    thread::spawn(move || queue.recv().unwrap().into_payload())
}

/// No payload is lost, and no worker stays in `recv`.
#[test]
fn two_workers_and_shutdown() {
    model(|| workers_and_shutdown(builder(1)));
}

fn workers_and_shutdown(small: Builder<Engine<Payload>>) {
    let (engine, _clock, _) = two_expired(small);
    let workers = [take_until_closed(&engine), take_until_closed(&engine)];
    let returned = engine.shutdown();
    let mut ends: Vec<Payload> = returned.into_iter().filter_map(|c| c.payload).collect();
    let taken = workers.map(|worker| worker.join().unwrap());
    ends.extend(taken.into_iter().flatten());
    assert_eq!(names(&ends), [0, 1]);
    assert_all_ended(engine.ledger());
}

fn take_until_closed(engine: &Engine<Payload>) -> JoinHandle<Vec<Payload>> {
    let queue = engine.queue(0);
    thread::spawn(move || queue.map(Expired::into_payload).collect())
}
