//! The number of a task engine's workers changes while it runs.

#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use loom::thread;
use tickwheel::{CloseReason, Firing, StartError, TaskEngine, Timer};
use tickwheel_loom_tests::{assert_all_ended, task_model, tick};

fn end(timers: &TaskEngine) {
    timers.shutdown();
    timers.join();
    assert_all_ended(timers.ledger());
}

/// One of two workers leaves while a timer expires: the clock finds that the other one,
/// or the leaving one, has run the task.
#[test]
fn one_leaves_while_a_timer_expires() {
    task_model(2, |timers, clock| {
        timers.run_at(tick(1), || ()).unwrap();
        timers.set_workers(1).unwrap();
        clock.run_until(tick(1));
        assert_eq!(timers.ledger().completed, 1);
        end(&timers);
    });
}

/// A notified task runs in one of two workers, of which one is to leave, and shuts the
/// engine down: the task runs once more.
#[test]
fn one_is_to_leave_and_shutdown() {
    task_model(2, |timers, clock| {
        let (inner, told) = (timers.clone(), Arc::new(AtomicUsize::new(0)));
        let tell = Arc::clone(&told);
        let task = move |firing: Firing| match firing.outcome() {
            CloseReason::ShutDown => drop(tell.fetch_add(1, Ordering::Relaxed)),
            _ => {
                inner.set_workers(1).unwrap();
                inner.shutdown();
            }
        };
        let beat = Timer::every(Duration::from_millis(1), task);
        timers.run(beat.notified()).unwrap();
        clock.advance_to(tick(1));
        timers.join();
        assert_all_ended(timers.ledger());
        assert_eq!(told.load(Ordering::Relaxed), 1);
    });
}

/// A thread adds a worker while the engine is shut down: the thread is refused, or the
/// worker ends.
#[test]
fn one_is_added_beside_a_shutdown() {
    task_model(1, |timers, _clock| {
        let adds = {
            let timers = timers.clone();
            thread::spawn(move || match timers.set_workers(2) {
                Ok(()) => 2,
                Err(StartError::ShutDown) => 1,
                Err(error) => panic!("{error}"),
            })
        };
        end(&timers);
        assert_eq!(adds.join().unwrap(), timers.workers());
        timers.join();
    });
}
