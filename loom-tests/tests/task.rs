//! One-shot tasks run while other threads cancel them, wait for them or shut down.

#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tickwheel::{Cancel, TaskEngine};
use tickwheel_loom_tests::{assert_all_ended, task_model, tick};

/// The number of times that a task has run to its end.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn task(&self) -> impl FnOnce() + Send + 'static {
        let Runs(runs) = self.clone();
        move || {
            runs.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
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
        let runs = Runs::default();
        let id = timers.run_at(tick(1), runs.task()).unwrap();
        clock.advance_to(tick(1));
        let cancelled = timers.cancel(id);
        timers.shutdown();
        timers.join();
        let expected = usize::from(cancelled != Cancel::Cancelled(()));
        assert_eq!(runs.count(), expected);
        end(&timers, expected);
    });
}

/// A thread waits for a task, behind which the worker finds another one: the task has run
/// when the wait ends, and the wait ends.
#[test]
fn cancel_and_wait_beside_a_worker() {
    task_model(1, |timers, clock| {
        let (first, second) = (Runs::default(), Runs::default());
        let id = timers.run_at(tick(1), first.task()).unwrap();
        timers.run_at(tick(1), second.task()).unwrap();
        clock.advance_to(tick(1));
        let cancelled = timers.cancel_and_wait(id);
        let ran = usize::from(cancelled != Cancel::Cancelled(()));
        assert_eq!(first.count(), ran);
        let left = timers.shutdown().len();
        timers.join();
        assert_eq!(second.count() + left, 1);
        end(&timers, ran + second.count());
    });
}
