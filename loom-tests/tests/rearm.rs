//! A worker re-arms a timer from within its firing, beside a canceller.

#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::time::Duration;
use tickwheel::{Cancel, Firing, Timer};
use tickwheel_loom_tests::{
    Lent, assert_all_ended, driven_task_model, lent, model, payload, take_all, tick,
};

const TICK: Duration = Duration::from_millis(1);

/// Returns a chain whose first firing the caller holds.
fn held() -> Lent {
    lent(Timer::after(TICK, payload(0)).rearmable(), 1)
}

/// Either the worker is refused and keeps the payload, or the canceller gets it.
#[test]
fn cancel_beside_a_worker() {
    model(|| {
        let Lent { engine, clock, id, firing } = held();
        let worker = thread::spawn(move || {
            firing.rearm(TICK).map_err(|refused| refused.into_inner().into_payload())
        });
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

/// A shutdown returns the timer if it was re-armed; otherwise the worker is refused.
#[test]
fn shutdown_beside_a_worker() {
    model(|| {
        let Lent { engine, firing, .. } = held();
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
    driven_task_model(|timers, driver, clock| {
        let runs = Arc::new(AtomicUsize::new(0));
        let task = {
            let runs = Arc::clone(&runs);
            move |firing: Firing| {
                runs.fetch_add(1, Ordering::Relaxed);
                let _ = firing.rearm(tick(2));
            }
        };
        let chain = Timer::at(tick(1), task);
        let id = timers.run(chain).unwrap();
        clock.pass_to(tick(1));
        let worker = thread::spawn(move || {
            let _ = driver.process_due(1);
            driver
        });
        assert!(!matches!(timers.cancel(id), Cancel::Gone));
        let driver = worker.join().unwrap();
        let ran = runs.load(Ordering::Relaxed);
        clock.pass_to(tick(3));
        let _ = driver.process_due(9);
        assert_eq!(runs.load(Ordering::Relaxed), ran);
        assert_all_ended(timers.ledger());
    });
}
