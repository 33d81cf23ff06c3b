//! Workers and tasks that call the engine that runs them.

#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loom::thread;
use tickwheel::{Cancel, Timer};
use tickwheel_loom_tests::{assert_all_ended, beat, engine_model, task_model, tick};

/// A worker shuts the engine down while it holds a firing, and another thread
/// cancels the timer: the timer ends once, and the worker learns of the end.
#[test]
fn shutdown_by_a_worker_that_holds_a_firing() {
    engine_model(|engine, clock| {
        let id = engine.schedule(beat(0)).unwrap();
        clock.advance_to(tick(1));
        let worker = {
            let (engine, queue) = (engine.clone(), engine.queue(0));
            let end_it = move |_firing| engine.shutdown().len();
            thread::spawn(move || queue.map(end_it).sum::<usize>())
        };
        let cancelled = match engine.cancel(id) {
            Cancel::Cancelled(_) => {
                // No firing is left that could end the worker.
                engine.shutdown();
                1
            }
            Cancel::Running => 1,
            Cancel::Notified | Cancel::Gone => 0,
        };
        assert_eq!(worker.join().unwrap() + cancelled, 1);
        assert_all_ended(engine.ledger());
    });
}

/// The same for a repeating task: the wait returns after it.
#[test]
fn shutdown_from_a_repeating_task() {
    task_model(1, |timers, clock| {
        let inner = timers.clone();
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let task = move |_| {
            inner.shutdown();
            done.store(true, Ordering::Relaxed);
        };
        let id = timers.run_every(Duration::from_millis(1), task).unwrap();
        clock.advance_to(tick(1));
        let cancelled = timers.cancel_and_wait(id) == Cancel::Cancelled(());
        assert!(cancelled || is_done.load(Ordering::Relaxed));
        timers.shutdown();
        assert_all_ended(timers.ledger());
    });
}

/// A task does not wait for its own end; another thread does.
#[test]
fn cancel_and_wait_from_a_task() {
    task_model(1, |timers, clock| {
        let inner = timers.clone();
        let task = move |firing: tickwheel::Firing| {
            inner.cancel_and_wait(firing.id());
        };
        let beat = Timer::every(Duration::from_millis(1), task);
        let id = timers.run(beat).unwrap();
        clock.advance_to(tick(1));
        timers.cancel_and_wait(id);
        assert_all_ended(timers.ledger());
        timers.shutdown();
    });
}
