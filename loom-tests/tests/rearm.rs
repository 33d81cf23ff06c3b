//! A worker re-arms a timer from within its firing, beside a canceller.

#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::time::Duration;
use tickwheel::{Cancel, Engine, Expired, Firing, TaskEngine, Timer, TimerId, VirtualClock};
use tickwheel_loom_tests::{
    Payload, assert_all_ended, beside, builder, model, payload, take_all, tick,
};

const TICK: Duration = Duration::from_millis(1);
const NAME: &str = "chain";

/// Returns a chain whose first firing the caller holds.
fn held() -> (
    Engine<Payload>,
    VirtualClock<Payload>,
    TimerId,
    Expired<Payload>,
) {
    let (engine, clock) = builder(1).start_virtual().unwrap();
    let chain = Timer::after(TICK, payload(0)).rearmable().named(NAME);
    let id = engine.schedule(chain).unwrap();
    clock.advance_to(tick(1));
    let firing = engine.queue(0).try_recv().unwrap();
    (engine, clock, id, firing)
}

/// Either the worker is refused and keeps the payload, or the canceller gets it.
#[test]
fn cancel_beside_a_worker() {
    model(|| {
        let (engine, clock, id, firing) = held();
        let worker =
            thread::spawn(move || firing.rearm(TICK).map_err(|(_, due)| due.into_payload()));
        let cancelled = engine.cancel(id);
        let rearmed = worker.join().unwrap();
        match cancelled {
            Cancel::Cancelled(_) => assert!(rearmed.is_ok()),
            _ => assert!(rearmed.is_err(), "{cancelled:?}"),
        }
        clock.advance_to(tick(3));
        assert!(take_all(&engine.queue(0)).is_empty());
        assert_all_ended(engine.ledger());
    });
}

/// A cancel by name counts the timer if it was re-armed, and stops it in any case.
#[test]
fn cancel_by_name_beside_a_worker() {
    model(|| {
        let (engine, clock, _, firing) = held();
        let worker = thread::spawn(move || firing.rearm(TICK).is_ok());
        let cancelled = engine.cancel_by_name(NAME, None);
        let rearmed = worker.join().unwrap();
        assert_eq!(cancelled.ids.len(), usize::from(rearmed));
        assert_eq!(cancelled.payloads.len(), cancelled.ids.len());
        clock.advance_to(tick(3));
        assert!(take_all(&engine.queue(0)).is_empty());
        assert_all_ended(engine.ledger());
    });
}

/// A shutdown returns the timer if it was re-armed; otherwise the worker is refused.
#[test]
fn shutdown_beside_a_worker() {
    model(|| {
        let (engine, _clock, _, firing) = held();
        let worker = thread::spawn(move || firing.rearm(TICK).is_ok());
        let closed = engine.shutdown();
        assert_eq!(closed.len(), usize::from(worker.join().unwrap()));
        assert!(closed.iter().all(|closed| closed.payload.is_some()));
        assert_all_ended(engine.ledger());
    });
}

/// A task re-arms its timer and returns in two steps. After a cancel has been answered,
/// it does not run again, whichever step came first.
#[test]
fn cancel_beside_a_task() {
    model(|| {
        let (timers, clock) = TaskEngine::builder()
            .shards(1)
            .wheel_size(4)
            .start_driven_model()
            .unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        let task = {
            let runs = Arc::clone(&runs);
            move |firing: Firing| {
                runs.fetch_add(1, Ordering::Relaxed);
                let _ = firing.rearm(tick(2));
            }
        };
        let chain = Timer::at(tick(1), task).named(NAME);
        let id = timers.run(chain).unwrap();
        let driver = clock.driver();
        clock.pass_to(tick(1));
        let worker = thread::spawn(move || {
            let _ = driver.run_due(1);
            driver
        });
        assert!(!matches!(timers.cancel(id), Cancel::Gone));
        let driver = worker.join().unwrap();
        let ran = runs.load(Ordering::Relaxed);
        clock.pass_to(tick(3));
        let _ = driver.run_due(9);
        assert_eq!(runs.load(Ordering::Relaxed), ran);
        assert_all_ended(timers.ledger());
    });
}

/// A caller that waits for the cancelled timer waits until the worker has let go.
#[test]
fn cancel_and_wait() {
    model(|| {
        let (engine, _clock, id, firing) = held();
        let worker = beside(&engine, move |_| firing.rearm(TICK).is_ok());
        let _ = engine.cancel_and_wait(id);
        assert_all_ended(engine.ledger());
        worker.join().unwrap();
    });
}
