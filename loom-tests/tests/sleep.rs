//! The ticker goes to sleep while somebody files an earlier deadline.
//!
//! Nobody but the ticker makes anything ready in these models: `pass_to` only
//! lets time pass. A wake-up that is lost leaves a worker in `recv` for ever,
//! which loom reports as a deadlock.

#![cfg(loom)]

use loom::thread;
use tickwheel::{Engine, Timer, VirtualClock};
use tickwheel_loom_tests::{Payload, builder, model, name_of, payload, tick};

/// An earlier deadline is never slept over.
#[test]
fn one_submitter() {
    model(|| {
        let (engine, clock) = builder(1).start_model().unwrap();
        let queue = engine.queue(0);
        engine.schedule(Timer::at(tick(3), payload(3))).unwrap();
        engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
        clock.pass_to(tick(1));
        assert_eq!(name_of(&queue.recv().unwrap()), 1);
    });
}

/// A first deadline is not slept over either, nor one after a firing.
#[test]
fn one_submitter_twice() {
    model(|| {
        let (engine, clock) = builder(1).start_model().unwrap();
        let queue = engine.queue(0);
        for n in 1..=2 {
            engine.schedule(Timer::at(tick(n), payload(0))).unwrap();
            clock.pass_to(tick(n));
            assert_eq!(queue.recv().unwrap().tick(), tickwheel::Tick(n));
        }
    });
}

/// Two threads file into one shard: the earlier of their deadlines counts.
#[test]
fn two_submitters() {
    two_submitters_into(1);
}

/// Two threads file into two shards, which have one alarm.
#[test]
fn two_shards() {
    two_submitters_into(2);
}

fn two_submitters_into(shards: usize) {
    model(move || {
        let (engine, clock) = builder(shards).start_model().unwrap();
        beside_a_submitter(&engine, &clock, || {
            engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
        });
    });
}

/// While another thread files timer 2 for tick 2, `file` files timer 1 for tick
/// 1: both fire when they are due.
fn beside_a_submitter(
    engine: &Engine<Payload>,
    clock: &VirtualClock<Payload>,
    file: impl FnOnce(),
) {
    let queue = engine.queue(0);
    let other = {
        let engine = engine.clone();
        thread::spawn(move || engine.schedule(Timer::at(tick(2), payload(2))).unwrap())
    };
    file();
    clock.pass_to(tick(1));
    assert_eq!(name_of(&queue.recv().unwrap()), 1);
    other.join().unwrap();
    clock.pass_to(tick(2));
    assert_eq!(name_of(&queue.recv().unwrap()), 2);
}

/// A timer that is brought forward fires at its new deadline.
#[test]
fn bring_forward() {
    model(|| {
        let (engine, clock) = builder(1).start_model().unwrap();
        let queue = engine.queue(0);
        let id = engine.schedule(Timer::at(tick(3), payload(0))).unwrap();
        engine.reschedule(id, tick(1)).unwrap();
        clock.pass_to(tick(1));
        assert_eq!(queue.recv().unwrap().tick(), tickwheel::Tick(1));
    });
}

/// A timer that is postponed while the ticker wakes for its old deadline fires
/// once, at one of the two.
#[test]
fn postpone() {
    model(|| {
        let (engine, clock) = builder(1).start_model().unwrap();
        let queue = engine.queue(0);
        let id = engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        clock.pass_to(tick(1));
        engine.reschedule(id, tick(2)).unwrap();
        clock.pass_to(tick(2));
        assert_eq!(queue.recv().unwrap().tick(), tickwheel::Tick(2));
    });
}

/// A firing that comes back sets up the next one while the ticker goes to
/// sleep.
#[test]
fn rearm() {
    model(|| {
        let (engine, clock) = builder(1).start_model().unwrap();
        let queue = engine.queue(0);
        let beat = Timer::every(std::time::Duration::from_millis(1), payload(0));
        engine.schedule(beat.times(2)).unwrap();
        clock.pass_to(tick(1));
        drop(queue.recv().unwrap());
        clock.pass_to(tick(2));
        assert_eq!(queue.recv().unwrap().number(), 2);
    });
}

/// A timer is brought forward while another thread files one: the earlier of
/// them is not slept over.
#[test]
fn bring_forward_and_submitter() {
    model(|| {
        let (engine, clock) = builder(1).start_model().unwrap();
        let id = engine.schedule(Timer::at(tick(3), payload(1))).unwrap();
        beside_a_submitter(&engine, &clock, || engine.reschedule(id, tick(1)).unwrap());
    });
}

/// A timer is postponed while the ticker wakes for its old deadline and a
/// worker comes for it: it fires once, and the answer says at which of the two.
#[test]
fn postpone_and_worker() {
    model(|| {
        let (engine, clock) = builder(1).start_model().unwrap();
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
