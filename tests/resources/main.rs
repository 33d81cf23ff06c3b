//! An engine that is gone leaves nothing behind: no descriptor, no thread, not
//! a byte. Where the system refuses one of these, starting returns an error and
//! leaves nothing behind either.
//!
//! The counts are those of a whole process, so each test runs in a process of
//! its own.

#![cfg(all(target_os = "linux", not(any(loom, shuttle))))]

#[path = "../support/mod.rs"]
mod support;

mod alone;
mod counting;
mod limits;
mod memory;
mod millions;
mod possessions;

use std::sync::mpsc;
use std::time::Duration;

use tickwheel::wheel::Advance;
use tickwheel::{Cancel, Engine, StartError, TaskEngine, Timer, VirtualClock};

use alone::alone;
use limits::{DESCRIPTORS, THREADS, become_nobody, with_limit};
use possessions::{Possessions, leaves_nothing, threads, wait_for_threads};
use support::{HOUR as FAR, MS};

const ENGINES: usize = if cfg!(debug_assertions) { 250 } else { 1_000 };

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
    engine.cancel(id).into_payload().unwrap();
    engine.create(named.clone()).unwrap().start().unwrap();
    drop(engine.create(named).unwrap());
    drop(engine.queue(0).recv().unwrap());
}

/// How many allocations scheduling, postponing and cancelling a timer costs, a
/// thousand times over, when as many have been live before: the least of some
/// counts, because the test's own harness may allocate meanwhile.
fn allocations_of<T: Send + 'static>(timer: impl Fn() -> Timer<T>) -> usize {
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    let round = || {
        let id = engine.schedule(timer()).unwrap();
        engine.reschedule(id, 2 * FAR).unwrap();
        assert!(engine.cancel(id).into_payload().is_some());
    };
    let count = || {
        let before = counting::allocations();
        (0..1_000).for_each(|_| round());
        counting::allocations() - before
    };
    round();
    std::iter::repeat_with(count).take(5).min().unwrap()
}

/// In each of the ways in which timers that have a name end.
fn end_by_name(engine: &Engine<usize>, clock: &VirtualClock, round: usize) {
    // So many that all of the engine's buckets for names are in use.
    let names = (0..200).map(|n| (n, format!("lease {n} of round {round:06}")));
    for (n, name) in names {
        let lease = Timer::after(MS, n).named(name.as_str());
        let id = engine.schedule(lease.clone()).unwrap();
        assert_eq!(engine.cancel(id), Cancel::Cancelled(n));
        engine.schedule(lease.clone()).unwrap();
        assert_eq!(engine.cancel_by_name(&name, 9).len(), 1);
        assert_eq!(engine.create(lease.clone()).unwrap().dismiss(), Some(n));
        engine.schedule(lease.clone()).unwrap();
        let beats = Timer::every(MS, n).times(2).named(name.as_str());
        engine.schedule(beats).unwrap();
        clock.advance(2 * MS);
        engine.queue(0).try_iter().for_each(drop);
        assert_eq!(engine.ledger().live, 0);
    }
}

/// Asserts that the system has refused what an engine is made of.
fn is_refused<E>(started: Result<E, StartError>, what: &str) {
    let refused = format!("{:?}", started.err().expect("started"));
    assert!(refused.starts_with(what), "{refused}");
}

alone! {
    /// What the documentation of `Engine` says of its cost.
    fn only_a_timer_with_a_name_allocates() {
        let once = || Timer::after(FAR, [7_u8; 64]);
        assert_eq!(allocations_of(once), 0);
        let dressed = || Timer::every(FAR, [7_u8; 64]).times(3).tolerance(MS);
        assert_eq!(allocations_of(dressed), 0);
        assert!(allocations_of(|| once().named("lease")) >= 1_000);
    }

    /// The portable ticker is there for systems without a timerfd: it has none.
    fn only_the_ticker_of_the_system_has_a_descriptor() {
        let descriptors = || Possessions::now().descriptors;
        let before = descriptors();
        let portable = Engine::<()>::builder().portable_ticker().start().unwrap();
        assert_eq!(descriptors(), before);
        let system = Engine::<()>::builder().start().unwrap();
        assert_eq!(descriptors(), before + 1);
        drop((portable, system));
    }

    fn nothing_is_left_of_ended_timers_and_their_names() {
        let (engine, clock) = Engine::builder().start_virtual().unwrap();
        // Names that never came before, as those of connections are.
        let mut rounds = 0..;
        leaves_nothing(50, || end_by_name(&engine, &clock, rounds.next().expect("no end")));
    }

    fn nothing_is_left_after_shutdown() {
        leaves_nothing(ENGINES, || {
            let engine = Engine::builder().start().unwrap();
            put_to_work(&engine);
            assert!(!engine.shutdown().is_empty());
        });
    }

    fn nothing_is_left_after_the_last_handle_was_dropped() {
        leaves_nothing(ENGINES, || put_to_work(&Engine::builder().start().unwrap()));
    }

    fn nothing_is_left_of_a_portable_ticker() {
        let start = || Engine::builder().portable_ticker().start().unwrap();
        leaves_nothing(ENGINES, || put_to_work(&start()));
    }

    fn nothing_is_left_of_a_task_engine() {
        leaves_nothing(ENGINES, || {
            let tasks = TaskEngine::builder().workers(2).start().unwrap();
            let (tell, told) = mpsc::channel();
            tasks.run_after(FAR, || ()).unwrap();
            tasks.run_every(MS, |_| ()).unwrap();
            let tells = move || tell.send(()).unwrap();
            tasks.run_after(Duration::ZERO, tells).unwrap();
            told.recv().unwrap();
            tasks.shutdown();
        });
    }

    fn nothing_is_left_when_a_task_drops_the_last_handle() {
        leaves_nothing(ENGINES, || {
            let tasks = TaskEngine::builder().workers(2).start().unwrap();
            tasks.run_after(FAR, || ()).unwrap();
            let (tell, told) = mpsc::channel::<()>();
            let last = tasks.clone();
            tasks.run_after(MS, move || drop((last, tell))).unwrap();
            drop(tasks);
            assert!(told.recv().is_err(), "the task has run, or was dropped");
        });
    }

    fn nothing_is_left_of_a_driven_engine() {
        leaves_nothing(ENGINES, || {
            let (engine, driver) = Engine::builder().start_driven().unwrap();
            let due = Timer::after(Duration::ZERO, "due".to_string());
            engine.schedule(due).unwrap();
            assert_eq!(driver.process_due(100), Advance::Done);
            put_to_work(&engine);
        });
    }

    fn nothing_is_left_of_a_virtual_clock() {
        leaves_nothing(ENGINES, || {
            let (tasks, clock) = TaskEngine::builder().workers(2).start_virtual().unwrap();
            tasks.run_every(MS, |_| ()).unwrap();
            clock.run_until(tasks.now() + 5 * MS);
        });
    }

    fn without_descriptors_starting_fails_and_leaves_nothing() {
        leaves_nothing(ENGINES, || {
            with_limit(DESCRIPTORS, 0, || {
                is_refused(Engine::<()>::builder().start(), "Alarm");
                is_refused(Engine::<()>::builder().start_driven(), "Alarm");
                is_refused(TaskEngine::builder().start(), "Alarm");
            });
        });
        assert!(Engine::<()>::builder().start().is_ok());
    }

    fn without_threads_starting_fails_and_leaves_nothing() {
        if !become_nobody() {
            return; // other threads of this user count, too
        }
        let before = threads();
        leaves_nothing(100, || {
            // The ticker and one worker, and then no more; or none at all.
            with_limit(THREADS, before as u64 + 2, || {
                is_refused(TaskEngine::builder().workers(3).start(), "Thread");
            });
            with_limit(THREADS, 0, || {
                is_refused(Engine::<()>::builder().start(), "Thread");
                is_refused(TaskEngine::builder().start_virtual(), "Thread");
            });
            wait_for_threads(before);
        });
    }

    fn workers_that_the_system_refuses_leave_the_others() {
        if !become_nobody() {
            return; // other threads of this user count, too
        }
        let before = threads();
        leaves_nothing(100, || {
            let tasks = TaskEngine::builder().start().unwrap();
            with_limit(THREADS, before as u64 + 4, || {
                is_refused(tasks.set_workers(9), "Thread");
            });
            // The ticker is the fourth thread.
            assert_eq!(tasks.workers(), 3);
            tasks.set_workers(4).unwrap();
            tasks.shutdown();
            tasks.join();
            drop(tasks);
            wait_for_threads(before);
        });
    }
}
