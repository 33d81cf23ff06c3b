//! Reports are read while timers end.

#![cfg(loom)]

use loom::thread;
use tickwheel::{CloseReason, Timer};
use tickwheel_loom_tests::{
    assert_all_ended, beat, builder, cancel_beside, engine_model, model, payload, tick,
};

/// A timer is cancelled or shut down: the reader gets one report, and learns
/// afterwards that there will be no more.
#[test]
fn cancel_and_shutdown() {
    engine_model(|engine, _clock| {
        let timer = Timer::at(tick(1), payload(0)).reported();
        let id = engine.schedule(timer).unwrap();
        let reports = engine.reports();
        let reader = thread::spawn(move || reports.map(|closed| closed.reason).collect::<Vec<_>>());
        let canceller = cancel_beside(&engine, id);
        engine.shutdown();
        let reason =
            if canceller.join().unwrap() { CloseReason::Cancelled } else { CloseReason::ShutDown };
        assert_eq!(reader.join().unwrap(), [reason]);
        assert_all_ended(engine.ledger());
    });
}

/// A worker holds a firing while the engine is shut down: the reader gets its
/// report, and learns only then that there will be no more.
#[test]
fn return_and_shutdown() {
    return_and_shutdown_of(1);
}

/// The same with another shard that has nothing to report.
#[test]
fn return_and_shutdown_of_two_shards() {
    return_and_shutdown_of(2);
}

fn return_and_shutdown_of(shards: usize) {
    model(move || {
        let (engine, clock) = builder(shards).start_virtual().unwrap();
        engine.schedule(beat(0).reported()).unwrap();
        clock.advance_to(tick(1));
        let firing = engine.queue(0).try_recv().unwrap();
        let reports = engine.reports();
        let reader = thread::spawn(move || reports.count());
        let worker = thread::spawn(move || drop(firing));
        assert_eq!(engine.shutdown().len(), 1);
        worker.join().unwrap();
        assert_eq!(reader.join().unwrap(), 1);
        assert_all_ended(engine.ledger());
    });
}

/// Two timers end in one shard: two readers get one report each.
#[test]
fn two_readers() {
    engine_model(|engine, _clock| {
        let ids = [0, 1].map(|name| {
            let timer = Timer::at(tick(1), payload(name)).reported();
            engine.schedule(timer).unwrap()
        });
        let readers = [0, 1].map(|_| {
            let reports = engine.reports();
            thread::spawn(move || reports.recv().unwrap().id)
        });
        for id in ids {
            assert!(engine.cancel(id).into_payload().is_some());
        }
        let mut read = readers.map(|reader| reader.join().unwrap());
        read.sort_unstable();
        assert_eq!(read, ids);
    });
}
