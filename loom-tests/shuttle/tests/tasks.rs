//! Tasks that call the engine on whose workers they run.

#![cfg(shuttle)]

use std::time::Duration;

use shuttle::thread;
use tickwheel::{CloseReason, Firing, StartError, TaskEngine, Timer};
use tickwheel_shuttle_tests::{End, Payload, Tally, check, join, threads, tick};

const WORKERS: usize = 3;

/// Returns a task that runs once, however its timer ends, and calls `then`.
fn runs_once(payload: Payload, then: impl FnOnce(Firing) + Send + 'static) -> impl FnMut(Firing) {
    let mut once = Some((payload, then));
    move |firing| {
        let (payload, then) = once.take().expect("a one-shot runs once");
        let outcome = firing.outcome();
        then(firing);
        payload.end(match outcome {
            CloseReason::Completed => End::Taken,
            CloseReason::Cancelled => End::Cancelled,
            _ => End::ShutDown,
        });
    }
}

/// Submits a task. The engine drops the closure if it refuses the task.
fn submit(timers: &TaskEngine, tally: &Tally, at: u64, then: impl FnOnce(Firing) + Send + 'static) {
    let task = runs_once(tally.payload(), then);
    let _ = timers.run(Timer::at(tick(at), task).notified());
}

/// A task that runs at its end runs exactly once, however it ends, while other threads
/// submit and cancel and one task shuts the engine down.
#[test]
fn a_task_shuts_down() {
    check(|| {
        let tally = Tally::default();
        let builder = TaskEngine::builder().workers(WORKERS);
        let (timers, clock) = builder.start_virtual().unwrap();
        let submitters = threads(3, |n| {
            let (timers, tally) = (timers.clone(), tally.clone());
            move || submit_and_cancel(&timers, &tally, u64::from(n))
        });
        let inner = timers.clone();
        submit(&timers, &tally, 2, move |_| drop(inner.shutdown()));
        let time = thread::spawn(move || clock.run_until(tick(3)));
        join(submitters);
        join([time]);
        timers.shutdown();
        while !tally.is_settled() {
            thread::yield_now();
        }
        // Firings are returned a moment after their tasks have run.
        while timers.ledger().live > 0 {
            thread::yield_now();
        }
        let ledger = timers.ledger();
        assert!(ledger.is_balanced(), "{ledger:?}");
        let ended = ledger.completed + ledger.cancelled + ledger.shut_down;
        let ran = [End::Taken, End::Cancelled, End::ShutDown].map(|end| tally.count(end));
        assert_eq!(ended, ran.iter().sum());
        assert_eq!(ledger.completed, ran[0]);
    });
}

/// Every task ends and every worker ends, while threads and tasks change the number of
/// workers and a task shuts the engine down.
#[test]
fn the_number_of_workers_changes() {
    check(|| {
        let tally = Tally::default();
        let builder = TaskEngine::builder().workers(WORKERS);
        let (timers, clock) = builder.start_virtual().unwrap();
        let inner = timers.clone();
        let beat = Timer::every(Duration::from_millis(1), move |_: Firing| {
            set_workers(&inner, 1);
            inner.shutdown();
        });
        timers.run(beat.notified()).unwrap();
        let changers = threads(3, |n| {
            let (timers, tally) = (timers.clone(), tally.clone());
            move || {
                let inner = timers.clone();
                let change = move |_| set_workers(&inner, 1 + n as usize);
                submit(&timers, &tally, 1, change);
                set_workers(&timers, 3 - n as usize);
            }
        });
        let time = thread::spawn(move || clock.run_until(tick(2)));
        timers.join();
        join(changers);
        join([time]);
        timers.join();
        let ledger = timers.ledger();
        assert!(ledger.is_balanced() && ledger.live == 0, "{ledger:?}");
        assert!(tally.is_settled());
    });
}

/// Changes the number of workers, unless the engine was shut down.
fn set_workers(timers: &TaskEngine, workers: usize) {
    match timers.set_workers(workers) {
        Ok(()) | Err(StartError::ShutDown) => {}
        Err(error) => panic!("{error}"),
    }
}

fn submit_and_cancel(timers: &TaskEngine, tally: &Tally, n: u64) {
    let (inner, inner_tally) = (timers.clone(), tally.clone());
    // A task that is added with a past deadline runs in the same step.
    submit(timers, tally, 1 + n % 2, move |_| {
        submit(&inner, &inner_tally, 1, |_| {});
    });
    let inner = timers.clone();
    let payload = tally.payload();
    // A task that waits for itself does not wait.
    let task = runs_once(payload, move |firing| _ = inner.cancel_and_wait(firing.id()));
    if let Ok(id) = timers.run(Timer::at(tick(2), task).notified()) {
        timers.cancel_and_wait(id);
    }
}
