//! Timers are cancelled by name while other timers of that name come and go.

#![cfg(loom)]

use loom::thread;
use tickwheel::{Engine, Timer};
use tickwheel_loom_tests::{
    Lent, Payload, assert_all_ended, beat, beside, engine_model, lent, model, payload, tick,
};

const NAME: &str = "batch";
const ALL: Option<usize> = None;

fn named(name: u32) -> Timer<Payload> {
    Timer::at(tick(1), payload(name)).named(NAME)
}

/// Cancels timers by name from another thread, which returns how many.
fn cancel(engine: &Engine<Payload>, max: Option<usize>) -> thread::JoinHandle<usize> {
    beside(engine, move |engine| {
        let cancelled = engine.cancel_by_name(NAME, max);
        assert!(cancelled.iter().all(|(_, answer)| answer.is_cancelled()));
        cancelled.len()
    })
}

/// Two callers cancel one timer each, and a worker takes one. There are enough
/// timers, and each gets exactly one.
#[test]
fn two_cancels_of_one_each() {
    engine_model(|engine, clock| {
        for name in 0..3 {
            engine.schedule(named(name)).unwrap();
        }
        clock.advance_to(tick(1));
        let cancellers = [cancel(&engine, Some(1)), cancel(&engine, Some(1))];
        let taken = engine.queue(0).try_recv().unwrap().into_payload();
        assert!(taken.name() <= 2);
        for canceller in cancellers {
            assert_eq!(canceller.join().unwrap(), 1);
        }
        assert_all_ended(engine.ledger());
        assert_eq!(engine.ledger().cancelled, 2);
    });
}

/// A timer is cancelled by name while its firing comes back and the engine is shut
/// down: if the answer counts it, it ends as cancelled.
#[test]
fn cancel_and_return_and_shutdown() {
    model(|| {
        let Lent { engine, firing, .. } = lent(beat(0).named(NAME), 1);
        let worker = thread::spawn(move || drop(firing));
        // A firing that a worker holds counts, and keeps its payload.
        let canceller = beside(&engine, |engine| engine.cancel_by_name(NAME, 1).len());
        let returned = engine.shutdown().len();
        worker.join().unwrap();
        let cancelled = canceller.join().unwrap();
        assert_eq!(returned + cancelled, 1);
        let ledger = engine.ledger();
        assert_all_ended(ledger);
        assert_eq!(ledger.cancelled, cancelled as u64);
    });
}

/// Between two holds of a name's bucket, one of its timers is cancelled by id and
/// another is scheduled: no earlier timer is left out, and none counts twice.
#[test]
fn cancel_all_and_cancel_one_and_schedule() {
    engine_model(|engine, _clock| {
        let first = engine.schedule(named(0)).unwrap();
        for name in 1..3 {
            engine.schedule(named(name)).unwrap();
        }
        let canceller = cancel(&engine, ALL);
        let by_id = usize::from(engine.cancel(first).into_payload().is_some());
        engine.schedule(named(3)).unwrap();
        let cancelled = canceller.join().unwrap();
        assert!(cancelled + by_id >= 3, "one was left out");
        let left = engine.cancel_by_name(NAME, ALL).len();
        assert_eq!(cancelled + by_id + left, 4);
        assert_all_ended(engine.ledger());
        assert_eq!(engine.ledger().cancelled, 4);
    });
}
