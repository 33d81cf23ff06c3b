//! Closures that run once, as the payloads of repeating timers: they came back from one
//! timer, and the caller gave them to another.

use super::*;
use crate::CloseReason;

const PERIOD: Duration = Duration::from_millis(1);

/// Returns a task that runs once, from a timer that was cancelled.
fn cancelled(timers: &TaskEngine, task: impl FnOnce() + Send + 'static) -> Task {
    let id = timers.run_after(LATER, task).unwrap();
    Engine::cancel(timers, id).into_payload().unwrap()
}

/// Checks that the task runs once and completes its timer.
#[track_caller]
fn assert_completes(here: &Here, schedule: impl FnOnce()) {
    let (ran, completed) = (RUNS.get(), here.timers.ledger().completed);
    schedule();
    here.run();
    let ledger = here.timers.ledger();
    assert_eq!(RUNS.get() - ran, 1);
    assert_eq!((ledger.completed - completed, ledger.live), (1, 0));
}

#[test]
fn a_task_that_runs_once_ends_a_timer_that_repeats() {
    let here = Here::new(8);
    let engine = &*here.timers;
    let beat = |task| Timer::every(PERIOD, task).starting(NOW);

    let task = cancelled(&here.timers, || add(&RUNS));
    assert_completes(&here, || _ = engine.schedule(beat(task)).unwrap());

    let told = Timer::after(LATER, |_| add(&RUNS));
    let id = here.timers.run_once(told).unwrap();
    let task = engine.cancel(id).into_payload().unwrap();
    assert_completes(&here, || _ = engine.schedule(beat(task)).unwrap());

    let task = cancelled(&here.timers, || add(&RUNS));
    assert_completes(&here, || {
        let each = Timer::every(PERIOD, |_| ()).starting(NOW);
        let each = here.timers.run(each).unwrap();
        drop(engine.replace(each, task).unwrap());
    });

    let other = TaskEngine::builder().start().unwrap();
    other.run_after(LATER, || add(&RUNS)).unwrap();
    let task = other.shutdown().pop().unwrap().payload.unwrap();
    assert_completes(&here, || _ = engine.schedule(beat(task)).unwrap());
}

#[test]
fn a_task_that_panics_in_its_only_run_fails_a_timer_that_repeats() {
    let here = Here::new(8);
    let task = cancelled(&here.timers, || panic!("on purpose"));
    let beat = Timer::every(PERIOD, task).starting(NOW).reported();
    here.timers.schedule(beat).unwrap();
    here.run();
    assert_eq!(here.timers.ledger().failed, 1);
    let closed = here.timers.reports().try_recv().unwrap();
    assert_eq!((closed.reason, closed.firings), (CloseReason::Failed, 1));
    assert!(closed.payload.is_none());
}

#[test]
fn a_task_that_came_back_fails_when_it_panics() {
    let here = Here::new(8);
    let task = cancelled(&here.timers, || panic!("on purpose"));
    here.timers.schedule(Timer::after(Duration::ZERO, task)).unwrap();
    here.run();
    assert_eq!(here.timers.ledger().failed, 1);
}
