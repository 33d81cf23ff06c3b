//! An engine that is gone leaves nothing behind: no descriptor, no thread, not
//! a byte. Where the system refuses one of these, starting returns an error and
//! leaves nothing behind either.
//!
//! The counts are those of a whole process, so each test runs in a process of
//! its own.

#![cfg(all(target_os = "linux", not(loom)))]

#[path = "../support/mod.rs"]
mod support;

mod alone;
mod counting;
mod limits;
mod memory;
mod possessions;

use std::sync::mpsc;
use std::time::Duration;

use tickwheel::wheel::Advance;
use tickwheel::{Cancel, Engine, StartError, TaskEngine, Timer, VirtualClock};

use alone::alone;
use limits::{Limit, become_nobody, with_limit};
use possessions::{leaves_nothing, threads, wait_for_threads};
use support::{HOUR as FAR, MS};

const ENGINES: usize = 1_000;

/// Timers of every kind: due and far, repeating, named, reported, not started.
fn put_to_work(engine: &Engine<String>) {
    let payload = || "something that has to be freed".to_string();
    for n in 1..5 {
        engine.schedule(Timer::after(n * MS, payload())).unwrap();
        engine.schedule(Timer::after(FAR, payload())).unwrap();
    }
    engine.schedule(Timer::every(MS, payload())).unwrap();
    let named = Timer::after(FAR, payload()).named("lease").reported();
    let id = engine.schedule(named.clone()).unwrap();
    engine.schedule(named.clone()).unwrap();
    engine.cancel(id).payload().unwrap();
    engine.create(named.clone()).unwrap().start().unwrap();
    drop(engine.create(named).unwrap());
    drop(engine.queue(0).recv().unwrap());
}

/// How many allocations scheduling, postponing and cancelling a timer costs, a
/// thousand times over, when as many have been live before: the least of some
/// counts, because the test's own harness may allocate meanwhile.
fn allocations_of<T>(engine: &Engine<T>, timer: impl Fn() -> Timer<T>) -> usize {
    let round = || {
        let id = engine.schedule(timer()).unwrap();
        engine.reschedule(id, 2 * FAR).unwrap();
        assert!(engine.cancel(id).payload().is_some());
    };
    let count = || {
        let before = counting::allocations();
        (0..1_000).for_each(|_| round());
        counting::allocations() - before
    };
    round();
    std::iter::repeat_with(count).take(5).min().unwrap()
}

/// What the documentation of `Engine` says of its cost.
#[test]
fn only_a_timer_with_a_name_allocates() {
    alone("only_a_timer_with_a_name_allocates", || {
        let (engine, _clock) = Engine::builder().start_virtual().unwrap();
        let once = || Timer::after(FAR, [7_u8; 64]);
        assert_eq!(allocations_of(&engine, once), 0);
        let dressed = || Timer::every(FAR, [7; 64]).times(3).tolerance(MS);
        assert_eq!(allocations_of(&engine, dressed), 0);
        let name: std::sync::Arc<str> = "lease".into();
        let named = || once().named(std::sync::Arc::clone(&name));
        assert!(allocations_of(&engine, named) >= 1_000);

        let (engine, _clock) = Engine::builder().start_virtual().unwrap();
        let large = || Timer::after(FAR, [7_u8; 4_096]);
        assert_eq!(allocations_of(&engine, large), 0);
    });
}

/// The portable ticker is there for systems without a timerfd: it has none.
#[test]
fn only_the_ticker_of_the_system_has_a_descriptor() {
    alone("only_the_ticker_of_the_system_has_a_descriptor", || {
        let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let before = descriptors();
        let portable = Engine::<()>::builder().portable_ticker().start().unwrap();
        assert_eq!(descriptors(), before);
        let system = Engine::<()>::builder().start().unwrap();
        assert_eq!(descriptors(), before + 1);
        drop((portable, system));
    });
}

/// In each of the ways in which timers that have a name end.
fn end_by_name(engine: &Engine<usize>, clock: &VirtualClock<usize>, round: usize) {
    // So many that all of the engine's buckets for names are in use.
    let names = (0..200).map(|n| (n, format!("lease {n} of round {round:06}")));
    for (n, name) in names {
        let lease = Timer::after(MS, n).named(name.as_str());
        let id = engine.schedule(lease.clone()).unwrap();
        assert_eq!(engine.cancel(id), Cancel::Cancelled(n));
        engine.schedule(lease.clone()).unwrap();
        assert_eq!(engine.cancel_by_name(&name, 9).ids.len(), 1);
        assert_eq!(engine.create(lease.clone()).unwrap().dismiss(), Some(n));
        engine.schedule(lease.clone()).unwrap();
        let beats = Timer::every(MS, n).times(2).named(name.as_str());
        engine.schedule(beats).unwrap();
        clock.advance(2 * MS);
        engine.queue(0).try_iter().for_each(drop);
        assert_eq!(engine.ledger().live, 0);
    }
}

#[test]
fn nothing_is_left_of_ended_timers_and_their_names() {
    let name = "nothing_is_left_of_ended_timers_and_their_names";
    alone(name, || {
        let (engine, clock) = Engine::builder().start_virtual().unwrap();
        // Names that never came before, as those of connections are.
        let mut rounds = 0..;
        leaves_nothing(50, || {
            let round = rounds.next().expect("no end");
            end_by_name(&engine, &clock, round);
        });
    });
}

#[test]
fn nothing_is_left_after_shutdown() {
    alone("nothing_is_left_after_shutdown", || {
        leaves_nothing(ENGINES, || {
            let engine = Engine::builder().start().unwrap();
            put_to_work(&engine);
            assert!(!engine.shutdown().is_empty());
        });
    });
}

#[test]
fn nothing_is_left_after_the_last_handle_was_dropped() {
    alone("nothing_is_left_after_the_last_handle_was_dropped", || {
        leaves_nothing(ENGINES, || {
            let engine = Engine::builder().start().unwrap();
            put_to_work(&engine);
        });
    });
}

#[test]
fn nothing_is_left_of_a_portable_ticker() {
    alone("nothing_is_left_of_a_portable_ticker", || {
        leaves_nothing(ENGINES, || {
            let engine = Engine::builder().portable_ticker().start().unwrap();
            put_to_work(&engine);
        });
    });
}

#[test]
fn nothing_is_left_of_a_task_engine() {
    alone("nothing_is_left_of_a_task_engine", || {
        leaves_nothing(ENGINES, || {
            let tasks = TaskEngine::builder().workers(2).start().unwrap();
            let (tell, told) = mpsc::channel();
            tasks.run_after(FAR, || ()).unwrap();
            tasks.run_every(MS, |_| ()).unwrap();
            tasks
                .run_after(Duration::ZERO, move || tell.send(()).unwrap())
                .unwrap();
            told.recv().unwrap();
            tasks.shutdown();
        });
    });
}

#[test]
fn nothing_is_left_when_a_task_drops_the_last_handle() {
    alone("nothing_is_left_when_a_task_drops_the_last_handle", || {
        leaves_nothing(ENGINES, || {
            let tasks = TaskEngine::builder().workers(2).start().unwrap();
            tasks.run_after(FAR, || ()).unwrap();
            let (tell, told) = mpsc::channel::<()>();
            let last = tasks.clone();
            tasks
                .run_after(MS, move || {
                    drop(last);
                    drop(tell);
                })
                .unwrap();
            drop(tasks);
            assert!(told.recv().is_err(), "the task has run, or was dropped");
        });
    });
}

#[test]
fn nothing_is_left_of_a_driven_engine() {
    alone("nothing_is_left_of_a_driven_engine", || {
        leaves_nothing(ENGINES, || {
            let (engine, driver) = Engine::builder().start_driven().unwrap();
            engine
                .schedule(Timer::after(Duration::ZERO, "due".to_string()))
                .unwrap();
            assert_eq!(driver.process_due(100), Advance::Done);
            put_to_work(&engine);
        });
    });
}

#[test]
fn nothing_is_left_of_a_virtual_clock() {
    alone("nothing_is_left_of_a_virtual_clock", || {
        leaves_nothing(ENGINES, || {
            let (tasks, clock) = TaskEngine::builder().workers(2).start_virtual().unwrap();
            tasks.run_every(MS, |_| ()).unwrap();
            clock.run_until(tasks.now() + 5 * MS);
        });
    });
}

#[test]
fn without_descriptors_starting_fails_and_leaves_nothing() {
    alone(
        "without_descriptors_starting_fails_and_leaves_nothing",
        || {
            leaves_nothing(ENGINES, || {
                with_limit(Limit::Descriptors, 0, || {
                    let started = Engine::<()>::builder().start();
                    assert!(matches!(started, Err(StartError::Alarm(_))));
                    let started = Engine::<()>::builder().start_driven();
                    assert!(matches!(started, Err(StartError::Alarm(_))));
                    let started = TaskEngine::builder().start();
                    assert!(matches!(started, Err(StartError::Alarm(_))));
                });
            });
            assert!(Engine::<()>::builder().start().is_ok());
        },
    );
}

#[test]
fn without_threads_starting_fails_and_leaves_nothing() {
    alone("without_threads_starting_fails_and_leaves_nothing", || {
        become_nobody();
        leaves_nothing(ENGINES, || {
            with_limit(Limit::Threads, 0, || {
                let started = Engine::<()>::builder().start();
                assert!(matches!(started, Err(StartError::Thread(_))));
                let started = TaskEngine::builder().start();
                assert!(matches!(started, Err(StartError::Thread(_))));
                let started = TaskEngine::builder().start_virtual();
                assert!(matches!(started, Err(StartError::Thread(_))));
            });
        });
        assert!(Engine::<()>::builder().start().is_ok());
    });
}

#[test]
fn too_few_threads_for_the_workers_leave_nothing() {
    let name = "too_few_threads_for_the_workers_leave_nothing";
    alone(name, || {
        if !become_nobody() {
            return; // other threads of this user count, too
        }
        let before = threads();
        leaves_nothing(100, || {
            // The ticker and one worker, and then no more.
            with_limit(Limit::Threads, before as u64 + 2, || {
                let started = TaskEngine::builder().workers(3).start();
                assert!(matches!(started, Err(StartError::Thread(_))));
            });
            wait_for_threads(before);
        });
    });
}

#[test]
fn workers_that_the_system_refuses_leave_the_others() {
    let name = "workers_that_the_system_refuses_leave_the_others";
    alone(name, || {
        if !become_nobody() {
            return; // other threads of this user count, too
        }
        let before = threads();
        leaves_nothing(100, || {
            let tasks = TaskEngine::builder().start().unwrap();
            with_limit(Limit::Threads, before as u64 + 4, || {
                let refused = tasks.set_workers(9);
                assert!(matches!(refused, Err(StartError::Thread(_))));
            });
            // The ticker is the fourth thread.
            assert_eq!(tasks.workers(), 3);
            tasks.set_workers(4).unwrap();
            tasks.shutdown();
            tasks.join();
            drop(tasks);
            wait_for_threads(before);
        });
    });
}
