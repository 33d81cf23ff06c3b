//! Calls that wait for other threads: drains, and a virtual clock that waits for its
//! workers.

#![cfg(loom)]

use std::time::Duration;

use loom::thread;
use tickwheel::{Cancel, Engine, Timer, TimerId};
use tickwheel_loom_tests::{
    Payload, assert_all_ended, beside, cancel_beside, engine_model, payload, take_all, tick,
};

/// A drain ends when the timer that it waits for is taken.
#[test]
fn drain_and_worker() {
    engine_model(|engine, _clock| {
        engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        let queue = engine.queue(0);
        // Keeps the handle, because dropping it would wake the drain too.
        let worker = thread::spawn(move || {
            drop(queue.recv());
            queue
        });
        assert!(engine.drain(Duration::from_millis(1)).is_empty());
        drop(worker.join().unwrap());
        assert_all_ended(engine.ledger());
    });
}

/// A drain ends when the timer that it waits for is cancelled.
#[test]
fn drain_and_cancel() {
    drain_beside(|engine, id| engine.cancel(id));
}

/// The same when it is cancelled with others.
#[test]
fn drain_and_cancel_many() {
    drain_beside(|engine, id| engine.cancel_many(&[id, id]).remove(0).1);
}

fn drain_beside(cancel: fn(&Engine<Payload>, TimerId) -> Cancel<Payload>) {
    engine_model(move |engine, _clock| {
        let id = engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        let canceller = beside(&engine, move |engine| cancel(engine, id).into_payload().is_some());
        assert!(engine.drain(Duration::from_millis(1)).is_empty());
        assert!(canceller.join().unwrap());
        assert_all_ended(engine.ledger());
    });
}

/// A drain ends when the timer that it waits for is postponed past its limit.
#[test]
fn drain_and_postpone() {
    engine_model(|engine, _clock| {
        let id = engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        let other = beside(&engine, move |engine| engine.reschedule(id, tick(3)).unwrap());
        assert_eq!(engine.drain(Duration::from_millis(1)).len(), 1);
        other.join().unwrap();
        assert_all_ended(engine.ledger());
    });
}

/// A drain counts while two timers are taken, or one of them is cancelled. It ends
/// with the second and returns no timer.
#[test]
fn drain_and_cancel_and_worker() {
    engine_model(|engine, _clock| {
        let id = engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
        let queue = engine.queue(0);
        let worker = thread::spawn(move || {
            let mut taken = 0;
            while let Ok(expired) = queue.recv() {
                drop(expired);
                taken += 1;
            }
            taken
        });
        let canceller = cancel_beside(&engine, id);
        assert!(engine.drain(Duration::from_millis(1)).is_empty());
        let cancelled = u32::from(canceller.join().unwrap());
        assert_eq!(worker.join().unwrap() + cancelled, 2);
        assert_all_ended(engine.ledger());
    });
}

/// The clock waits for a worker at each tick, and does not hang when the worker has
/// ended.
#[test]
fn run_until_and_worker() {
    engine_model(|engine, clock| {
        for n in 1..=2 {
            engine.schedule(Timer::at(tick(n), payload(0))).unwrap();
        }
        let queue = engine.queue(0);
        let worker = thread::spawn(move || {
            for _ in 0..2 {
                drop(queue.recv());
            }
        });
        clock.run_until(tick(2));
        worker.join().unwrap();
        assert_all_ended(engine.ledger());
    });
}

/// Nor does it hang when a handle that is no worker was faster than the worker.
#[test]
fn run_until_and_a_handle_that_is_no_worker() {
    engine_model(|engine, clock| {
        engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        let queue = engine.queue(0);
        let worker = thread::spawn(move || while queue.recv().is_ok() {});
        let queue = engine.queue(0);
        let other = thread::spawn(move || drop(take_all(&queue)));
        clock.run_until(tick(1));
        engine.shutdown();
        worker.join().unwrap();
        other.join().unwrap();
        assert_all_ended(engine.ledger());
    });
}

/// Nor when the worker leaves a timer behind.
#[test]
fn run_until_and_a_worker_that_leaves() {
    engine_model(|engine, clock| {
        for _ in 0..2 {
            engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        }
        let queue = engine.queue(0);
        let worker = thread::spawn(move || drop(queue.recv()));
        clock.run_until(tick(1));
        worker.join().unwrap();
    });
}

/// Nor when a worker that it waits for is no longer expected.
#[test]
fn run_until_and_a_worker_that_is_not_to_come() {
    engine_model(|engine, clock| {
        engine.queue(0).expect_workers(1);
        let other = beside(&engine, |engine| engine.queue(0).expect_workers(0));
        clock.run_until(tick(1));
        other.join().unwrap();
    });
}

/// The clock waits for a worker that has not begun, and then at each tick.
#[test]
fn run_until_and_an_expected_worker() {
    engine_model(|engine, clock| {
        engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        let queue = engine.queue(0);
        let worker = thread::spawn(move || drop(queue.recv()));
        engine.queue(0).expect_workers(1);
        clock.run_until(tick(1));
        assert_eq!(engine.ledger().completed, 1);
        worker.join().unwrap();
        assert_all_ended(engine.ledger());
    });
}
