//! One-shot tasks run while other threads cancel them, wait for them or shut down.

#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tickwheel::{Cancel, TaskEngine};
use tickwheel_loom_tests::{assert_all_ended, task_model, tick};

/// Returns a task that counts its runs.
fn counted(runs: &Arc<AtomicUsize>) -> impl FnOnce() + Send + 'static {
    let runs = Arc::clone(runs);
    move || _ = runs.fetch_add(1, Ordering::Relaxed)
}

fn count(runs: &AtomicUsize) -> usize {
    runs.load(Ordering::Relaxed)
}

/// Ends the engine, and checks that its tasks ran as often as its ledger says.
fn end(timers: &TaskEngine, ran: usize) {
    timers.shutdown();
    timers.join();
    let ledger = timers.ledger();
    assert_all_ended(ledger);
    assert_eq!(ledger.completed, ran as u64);
}

/// A task is cancelled while a worker takes it, runs it and returns it: the task runs, or
/// the cancel says that it never will.
#[test]
fn cancel_beside_a_worker() {
    task_model(1, |timers, clock| {
        let runs = Arc::default();
        let id = timers.run_at(tick(1), counted(&runs)).unwrap();
        clock.advance_to(tick(1));
        let cancelled = timers.cancel(id);
        timers.shutdown();
        timers.join();
        let expected = usize::from(cancelled != Cancel::Cancelled(()));
        assert_eq!(count(&runs), expected);
        end(&timers, expected);
    });
}

/// A thread waits for a task, behind which the worker finds another one: the task has run
/// when the wait ends, and the wait ends.
#[test]
fn cancel_and_wait_beside_a_worker() {
    task_model(1, |timers, clock| {
        let (first, second) = (Arc::default(), Arc::default());
        let id = timers.run_at(tick(1), counted(&first)).unwrap();
        timers.run_at(tick(1), counted(&second)).unwrap();
        clock.advance_to(tick(1));
        let cancelled = timers.cancel_and_wait(id);
        let ran = usize::from(cancelled != Cancel::Cancelled(()));
        assert_eq!(count(&first), ran);
        let left = timers.shutdown().len();
        timers.join();
        assert_eq!(count(&second) + left, 1);
        end(&timers, ran + count(&second));
    });
}
