//! Workers and tasks that call the engine that runs them.

#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loom::thread;
use tickwheel::{Cancel, TaskEngine, Timer};
use tickwheel_loom_tests::{assert_all_ended, beat, builder, model, tick};

/// A worker shuts the engine down while it holds a firing, and another thread
/// cancels the timer: the timer ends once, and the worker learns of the end.
#[test]
fn shutdown_by_a_worker_that_holds_a_firing() {
    model(|| {
        let (engine, clock) = builder(1).start_virtual().unwrap();
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

/// A task shuts down its engine without waiting, while another thread waits for the
/// task.
#[test]
fn shutdown_from_a_task() {
    model(|| {
        let (timers, clock) = TaskEngine::builder().start_virtual().unwrap();
        let inner = timers.clone();
        let task = move || assert!(inner.shutdown().is_empty());
        let id = timers.run_at(tick(1), task).unwrap();
        clock.advance_to(tick(1));
        let ran = !matches!(timers.cancel_and_wait(id), Cancel::Cancelled(()));
        timers.shutdown();
        let ledger = timers.ledger();
        assert_all_ended(ledger);
        assert_eq!(ledger.completed, u64::from(ran));
    });
}

/// The same for a repeating task: the wait returns after it.
#[test]
fn shutdown_from_a_repeating_task() {
    model(|| {
        let (timers, clock) = TaskEngine::builder().start_virtual().unwrap();
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

/// Two threads wait for the workers to end, and both return.
#[test]
fn two_threads_join() {
    model(|| {
        let (timers, _clock) = TaskEngine::builder().start_virtual().unwrap();
        let other = {
            let timers = timers.clone();
            thread::spawn(move || timers.join())
        };
        timers.shutdown();
        timers.join();
        other.join().unwrap();
    });
}

/// A task does not wait for its own end; another thread does.
#[test]
fn cancel_and_wait_from_a_task() {
    model(|| {
        let (timers, clock) = TaskEngine::builder().start_virtual().unwrap();
        let inner = timers.clone();
        let task = move |firing: tickwheel::Firing| {
            let _ = inner.cancel_and_wait(firing.id());
        };
        let beat = Timer::every(Duration::from_millis(1), task);
        let id = timers.run(beat).unwrap();
        clock.advance_to(tick(1));
        let _ = timers.cancel_and_wait(id);
        assert_all_ended(timers.ledger());
        timers.shutdown();
    });
}
