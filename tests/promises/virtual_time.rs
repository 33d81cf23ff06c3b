//! Promise 15 to those who own the clock: it waits for the workers that it is to
//! expect, and for no call that waits for it.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;
use tickwheel::wheel::Advance;
use tickwheel::{NotChanged, Task, TaskEngine, Time, Timer};

/// The complaint of a `run_until` that panics.
fn refusal<T>(clock: &VirtualClock<T>) -> Option<String> {
    let run = AssertUnwindSafe(|| clock.run_until(clock.now() + SECOND));
    let thrown = catch_unwind(run).err()?;
    thrown.downcast().ok().map(|complaint| *complaint)
}

#[test]
fn promise_15_run_until_waits_for_workers_that_have_not_come() {
    let (engine, clock) = Engine::builder().queues(2).start_virtual().unwrap();
    for queue in 0..2 {
        for seconds in 1..=3 {
            let timer = Timer::after(seconds * SECOND, ()).queue(queue);
            engine.schedule(timer).unwrap();
        }
        clock.expect_workers(queue, 1);
    }
    let (begin, may_begin) = mpsc::channel::<()>();
    let (tell, moved) = mpsc::channel();
    let worker = |queue| {
        let (engine, queue) = (engine.clone(), engine.queue(queue));
        move || queue.map(|_| engine.now()).collect::<Vec<_>>()
    };
    let punctual = thread::spawn(worker(0));
    let late = worker(1);
    let late = thread::spawn(move || {
        let _ = may_begin.recv();
        late()
    });
    let owner = thread::spawn(move || {
        clock.run_until(Time::from_secs(3));
        tell.send(()).unwrap();
    });
    // The clock stands still however long the worker is held. (A clock that does not
    // wait is found sooner.)
    let too_soon = moved.recv_timeout(20 * MS).is_ok() || engine.now() > Time::START;
    drop(begin);
    owner.join().unwrap();
    engine.shutdown();
    for worker in [punctual, late] {
        assert_eq!(worker.join().unwrap(), [1, 2, 3].map(Time::from_secs));
    }
    assert!(!too_soon, "the clock moved without a worker");
}

#[test]
fn promise_15_run_until_ends_at_a_shutdown_although_a_worker_is_missing() {
    let (engine, clock) = Engine::<()>::builder().start_virtual().unwrap();
    clock.expect_workers(0, 1);
    engine.shutdown();
    clock.run_until(Time::from_secs(3));
    assert_eq!(clock.now(), Time::from_secs(3));
}

#[test]
#[should_panic(expected = "no queue 1: this engine has 1")]
fn promise_15_a_queue_that_does_not_exist_has_no_workers_to_expect() {
    let (_engine, clock) = Engine::<()>::builder().start_virtual().unwrap();
    clock.expect_workers(1, 1);
}

#[test]
fn promise_15_run_until_does_not_wait_for_the_thread_that_calls_it() {
    let (engine, clock) = virtual_engine();
    let queue = engine.queue(0);
    engine.schedule(Timer::after(MS, ())).unwrap();
    clock.advance(MS);
    // From now on this thread is a worker, and a busy one.
    drop(queue.recv().unwrap());
    let complaint = refusal(&clock).unwrap();
    assert!(complaint.contains("would wait for itself"), "{complaint}");
    clock.advance(MS);
    drop(queue);
    assert_eq!(refusal(&clock), None);
}

/// A handle that has waited in vain may go to another thread, whose work the clock
/// then awaits.
#[test]
fn promise_15_run_until_waits_for_a_handle_that_has_moved_to_another_thread() {
    let (engine, clock) = virtual_engine();
    let queue = engine.queue(0);
    assert!(queue.recv_timeout(Duration::ZERO).is_err());
    engine.schedule(Timer::after(MS, ())).unwrap();
    let worker = thread::spawn(move || queue.count());
    clock.run_until(Time::START + MS);
    assert_eq!(engine.ledger().completed, 1);
    engine.shutdown();
    assert_eq!(worker.join().unwrap(), 1);
}

/// Calls `call` from within a task. Returns its answer, after another task has run.
fn within_a_task<R: Send + 'static>(
    call: impl FnOnce(&VirtualClock<Task>) -> R + Send + 'static,
) -> R {
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    let clock = Arc::new(clock);
    let inner = Arc::clone(&clock);
    let (tell, told) = mpsc::channel();
    tasks
        .run_after(MS, move || tell.send(call(&inner)).unwrap())
        .unwrap();
    let (ran, has_run) = mpsc::channel();
    tasks
        .run_after(2 * MS, move || ran.send(()).unwrap())
        .unwrap();
    clock.advance(MS);
    let answer = told.recv_timeout(PATIENCE).unwrap();
    clock.advance(MS);
    has_run.recv_timeout(PATIENCE).unwrap();
    tasks.shutdown();
    answer
}

#[test]
fn promise_15_run_until_within_a_task_is_refused_and_advance_is_not() {
    let complaint = within_a_task(refusal).unwrap();
    assert!(complaint.contains("call `advance`"), "{complaint}");
    let now = within_a_task(|clock| {
        clock.advance(9 * MS);
        clock.now()
    });
    assert_eq!(now, Time::from_millis(10));
}

#[test]
fn promise_02_a_virtual_clock_moves_timers_within_its_budget() {
    let (engine, clock) = virtual_engine();
    for n in 0..10 {
        engine.schedule(Timer::after(5 * MS, n)).unwrap();
    }
    let next = |by| (clock.advance_within(by, 4), engine.queue(0).len());
    assert_eq!(next(4 * MS), (Advance::Done, 0));
    assert_eq!(next(3 * MS), (Advance::More, 4));
    assert_eq!(clock.now(), Time::from_millis(7), "however much is left");
    assert_eq!(next(Duration::ZERO), (Advance::More, 8));
    assert_eq!(next(Duration::ZERO), (Advance::Done, 10));
    assert_eq!(payloads(&engine), (0..10).collect::<Vec<_>>());
    engine.shutdown();
    assert_eq!(next(MS), (Advance::ShutDown, 0));
}

#[test]
fn promise_02_a_timer_that_comes_back_without_a_delay_prolongs_no_advance() {
    let (engine, clock) = virtual_engine();
    engine.schedule(Timer::after(Duration::ZERO, 0)).unwrap();
    for advance in 0..5 {
        assert_eq!(clock.advance_within(Duration::ZERO, 9), Advance::Done);
        assert_eq!(payloads(&engine), [advance]);
        engine
            .schedule(Timer::after(Duration::ZERO, advance + 1))
            .unwrap();
    }
}

#[test]
fn promise_03_a_timer_that_is_not_started_has_no_deadline_to_move() {
    let (engine, clock) = virtual_engine();
    let unstarted = engine.create(Timer::after(5 * MS, 1)).unwrap();
    let id = unstarted.id();
    assert_eq!(engine.deadline(id), None);
    assert_eq!(engine.reschedule(id, 9 * MS), Err(NotChanged::Unstarted));
    assert_eq!(engine.replace(id, 2), Err((NotChanged::Unstarted, 2)));
    clock.advance(MS);
    unstarted.start().unwrap();
    assert_eq!(engine.deadline(id), Some(Time::from_millis(6)));
    clock.advance(5 * MS);
    assert_eq!(payloads(&engine), [1]);
}
