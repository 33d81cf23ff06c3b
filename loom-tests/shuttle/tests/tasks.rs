//! Tasks on the engine's own workers, which call the engine themselves.

#![cfg(shuttle)]

use shuttle::thread;
use tickwheel::{CloseReason, Firing, TaskEngine, Timer};
use tickwheel_shuttle_tests::{End, Payload, Tally, check, join, threads, tick};

const WORKERS: usize = 3;

/// A task that is told of every ending, and runs once: `then` is what it does
/// besides.
fn told(payload: Payload, then: impl FnOnce(&Firing) + Send + 'static) -> impl FnMut(&Firing) {
    let mut once = Some((payload, then));
    move |firing| {
        let (payload, then) = once.take().expect("a one-shot runs once");
        then(firing);
        payload.end(match firing.outcome() {
            CloseReason::Completed => End::Taken,
            CloseReason::Cancelled => End::Cancelled,
            _ => End::ShutDown,
        });
    }
}

/// The engine drops the closures of tasks that it refuses.
fn submit(
    timers: &TaskEngine,
    tally: &Tally,
    at: u64,
    then: impl FnOnce(&Firing) + Send + 'static,
) {
    let task = told(tally.payload(), then);
    let _ = timers.run(Timer::at(tick(at), task).notified());
}

/// Whatever becomes of a task that wants to be told, it runs exactly once:
/// while others submit and cancel, and one task shuts the engine down.
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
        // Firings are given back a moment after their tasks have run.
        while timers.ledger().live > 0 {
            thread::yield_now();
        }
        let ledger = timers.ledger();
        assert!(ledger.is_balanced(), "{ledger:?}");
        let told = ledger.completed + ledger.cancelled + ledger.shut_down;
        let ran = [End::Taken, End::Cancelled, End::ShutDown].map(|end| tally.count(end));
        assert_eq!(told, ran.iter().sum());
        assert_eq!(ledger.completed, ran[0]);
    });
}

fn submit_and_cancel(timers: &TaskEngine, tally: &Tally, n: u64) {
    let (inner, inner_tally) = (timers.clone(), tally.clone());
    // What a task adds that is due already is served on the way.
    submit(timers, tally, 1 + n % 2, move |_| {
        submit(&inner, &inner_tally, 1, |_| {});
    });
    let inner = timers.clone();
    let payload = tally.payload();
    // One that waits for itself does not wait.
    let task = told(payload, move |firing| {
        _ = inner.cancel_and_wait(firing.id())
    });
    if let Ok(id) = timers.run(Timer::at(tick(2), task).notified()) {
        let _ = timers.cancel_and_wait(id);
    }
}
