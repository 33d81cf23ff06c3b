//! The ticker goes to sleep while another thread schedules an earlier deadline.
//!
//! In these models only the ticker makes timers ready: `pass_to` only lets time
//! pass. A lost wake-up leaves a worker in `recv` for ever, which loom reports as a
//! deadlock.

#![cfg(loom)]

use loom::thread;
use tickwheel::{Engine, Timer};
use tickwheel_loom_tests::{
    Payload, beat, beside, builder, model, name_of, payload, tick, ticker_model,
};

/// The ticker does not sleep past an earlier deadline.
#[test]
fn one_submitter() {
    ticker_model(|engine, clock| {
        let queue = engine.queue(0);
        engine.schedule(Timer::at(tick(3), payload(3))).unwrap();
        engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
        clock.pass_to(tick(1));
        assert_eq!(name_of(&queue.recv().unwrap()), 1);
    });
}

/// Nor if it finds, before it sleeps, that the timer it would sleep for was cancelled.
#[test]
fn cancel_beside_the_confirm() {
    ticker_model(|engine, clock| {
        let queue = engine.queue(0);
        let id = engine.schedule(Timer::at(tick(3), payload(3))).unwrap();
        drop(engine.cancel(id));
        engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
        clock.pass_to(tick(1));
        assert_eq!(name_of(&queue.recv().unwrap()), 1);
    });
}

/// Nor past the first deadline, or the first one after a firing.
#[test]
fn one_submitter_twice() {
    ticker_model(|engine, clock| {
        let queue = engine.queue(0);
        for n in 1..=2 {
            engine.schedule(Timer::at(tick(n), payload(0))).unwrap();
            clock.pass_to(tick(n));
            assert_eq!(queue.recv().unwrap().tick(), tickwheel::Tick(n));
        }
    });
}

/// Two threads schedule into one shard: the earlier of their deadlines counts.
#[test]
fn two_submitters() {
    ticker_model(|engine, clock| {
        let queue = engine.queue(0);
        let other = beside(&engine, submit_second);
        engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
        clock.pass_to(tick(1));
        assert_eq!(name_of(&queue.recv().unwrap()), 1);
        other.join().unwrap();
        clock.pass_to(tick(2));
        assert_eq!(name_of(&queue.recv().unwrap()), 2);
    });
}

/// Two threads schedule into two shards, which share one alarm.
#[test]
fn two_shards() {
    model(|| {
        let (engine, clock) = builder(2).start_model().unwrap();
        let other = beside(&engine, submit_second);
        engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
        clock.pass_to(tick(1));
        assert_eq!(name_of(&engine.queue(0).recv().unwrap()), 1);
        other.join().unwrap();
    });
}

fn submit_second(engine: &Engine<Payload>) {
    engine.schedule(Timer::at(tick(2), payload(2))).unwrap();
}

/// A timer that is brought forward fires at its new deadline.
#[test]
fn bring_forward() {
    ticker_model(|engine, clock| {
        let queue = engine.queue(0);
        let id = engine.schedule(Timer::at(tick(3), payload(0))).unwrap();
        engine.reschedule(id, tick(1)).unwrap();
        clock.pass_to(tick(1));
        assert_eq!(queue.recv().unwrap().tick(), tickwheel::Tick(1));
    });
}

/// A timer that is postponed while the ticker wakes up for its old deadline fires
/// once, at its new one.
#[test]
fn postpone() {
    ticker_model(|engine, clock| {
        let queue = engine.queue(0);
        let id = engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        clock.pass_to(tick(1));
        engine.reschedule(id, tick(2)).unwrap();
        clock.pass_to(tick(2));
        assert_eq!(queue.recv().unwrap().tick(), tickwheel::Tick(2));
    });
}

/// A firing that comes back schedules the next one while the ticker goes to sleep.
#[test]
fn rearm() {
    ticker_model(|engine, clock| {
        let queue = engine.queue(0);
        engine.schedule(beat(0).times(2)).unwrap();
        clock.pass_to(tick(1));
        drop(queue.recv().unwrap());
        clock.pass_to(tick(2));
        assert_eq!(queue.recv().unwrap().number(), 2);
    });
}

/// A timer is postponed while the ticker wakes up for its old deadline and a worker
/// waits for it: it fires once, at the deadline that the answer implies.
#[test]
fn postpone_and_worker() {
    ticker_model(|engine, clock| {
        let queue = engine.queue(0);
        let id = engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        let worker = thread::spawn(move || queue.recv().unwrap().tick().0);
        clock.pass_to(tick(1));
        let fires_at = match engine.reschedule(id, tick(2)) {
            Ok(()) => 2,
            Err(_) => 1,
        };
        clock.pass_to(tick(2));
        assert_eq!(worker.join().unwrap(), fires_at);
    });
}
