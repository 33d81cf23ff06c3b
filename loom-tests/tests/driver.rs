//! The caller's own loop drives an engine. It sleeps on a descriptor while other
//! threads schedule.

#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loom::thread;
use tickwheel::wheel::Advance;
use tickwheel::{Driver, Engine, Queue, RecvError, Task, Timer};
use tickwheel_loom_tests::{
    Payload, assert_all_ended, beside, driven_model, driven_task_model, payload, take_all, tick,
};

/// Waits and processes due timers until `timers` of them have fired.
fn run_loop(driver: &Driver<Payload>, queue: &Queue<Payload>, budget: usize, timers: usize) {
    let mut fired = 0;
    while fired < timers {
        driver.wait();
        let _ = driver.process_due(budget);
        fired += take_all(queue).len();
    }
}

/// A deadline before the one that the loop sleeps for re-arms the descriptor.
#[test]
fn an_earlier_deadline() {
    driven_model(|engine, driver, clock| {
        let queue = engine.queue(0);
        let caller = thread::spawn(move || run_loop(&driver, &queue, usize::MAX, 2));
        engine.schedule(Timer::at(tick(2), payload(2))).unwrap();
        engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
        clock.pass_to(tick(1));
        clock.pass_to(tick(2));
        caller.join().unwrap();
        assert_all_ended(engine.ledger());
    });
}

/// If the budget does not suffice, the descriptor stays readable, whatever another
/// thread schedules meanwhile.
#[test]
fn a_budget_of_one() {
    driven_model(|engine, driver, clock| {
        for name in 0..2 {
            engine.schedule(Timer::at(tick(1), payload(name))).unwrap();
        }
        let queue = engine.queue(0);
        let caller = thread::spawn(move || run_loop(&driver, &queue, 1, 3));
        clock.pass_to(tick(1));
        engine.schedule(Timer::at(tick(1), payload(2))).unwrap();
        caller.join().unwrap();
        assert_all_ended(engine.ledger());
    });
}

fn run_until(ran: &AtomicBool, driver: &Driver<Task>) {
    while !ran.load(Ordering::Relaxed) {
        driver.wait();
        let _ = driver.process_due(9);
    }
}

/// A cancelled task that runs at its end is in the queue before the loop is woken:
/// the loop checks only once.
#[test]
fn notified_task_is_cancelled() {
    driven_task_model(|tasks, driver, _| {
        let ran = Arc::new(AtomicBool::new(false));
        let runs = Arc::clone(&ran);
        let task = move |_| runs.store(true, Ordering::Relaxed);
        let far = Timer::at(tick(9), task).notified();
        let id = tasks.run(far).unwrap();
        let caller = thread::spawn(move || run_until(&ran, &driver));
        tasks.cancel(id).into_payload().unwrap();
        caller.join().unwrap();
        assert_all_ended(tasks.ledger());
    });
}

/// Another timer is due when a task is cancelled that runs at its end. The loop may serve
/// that timer once the task is ready but before its bell rings, and is called again.
#[test]
fn notified_task_is_cancelled_at_a_due_tick() {
    driven_task_model(|tasks, driver, clock| {
        let ran = Arc::new(AtomicBool::new(false));
        let runs = Arc::clone(&ran);
        let task = move |_| runs.store(true, Ordering::Relaxed);
        let id = tasks.run(Timer::at(tick(9), task).notified()).unwrap();
        tasks.run_at(tick(1), || {}).unwrap();
        let caller = thread::spawn(move || run_until(&ran, &driver));
        clock.pass_to(tick(1));
        tasks.cancel(id).into_payload().unwrap();
        caller.join().unwrap();
    });
}

/// Two loops share a driver and its descriptor. One of them takes the timer and ends the
/// engine, and both learn of the end.
#[test]
fn two_threads_share_a_driver() {
    fn run_loop(engine: &Engine<Payload>, driver: &Driver<Payload>) -> usize {
        let mut taken = 0;
        while driver.process_due(9) != Advance::ShutDown {
            let some = take_all(&engine.queue(0)).len();
            if some > 0 {
                engine.shutdown();
            }
            taken += some;
            driver.wait();
        }
        taken
    }
    driven_model(|engine, driver, clock| {
        let driver = loom::sync::Arc::new(driver);
        engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        let shared = loom::sync::Arc::clone(&driver);
        let other = beside(&engine, move |engine| run_loop(engine, &shared));
        clock.pass_to(tick(1));
        let taken = run_loop(&engine, &driver);
        assert_eq!(taken + other.join().unwrap(), 1);
        assert_all_ended(engine.ledger());
    });
}

/// A timer is scheduled beside a shutdown. Its deadline does not take the end from the loop.
#[test]
fn an_earlier_deadline_beside_a_shutdown() {
    driven_model(|engine, driver, _| {
        let submitter = beside(&engine, |engine| {
            drop(engine.schedule(Timer::at(tick(1), payload(1))));
        });
        let ender = beside(&engine, |engine| drop(engine.shutdown()));
        while driver.process_due(9) != Advance::ShutDown {
            driver.wait();
        }
        submitter.join().unwrap();
        ender.join().unwrap();
    });
}

/// The last handle is dropped while a loop sleeps and checks in turn. The loop ends,
/// whichever answer it checks.
fn last_handle_dropped(is_end: fn(&Driver<Payload>, &Queue<Payload>) -> bool) {
    driven_model(move |engine, driver, _| {
        let queue = engine.queue(0);
        let caller = thread::spawn(move || {
            while !is_end(&driver, &queue) {
                driver.wait();
            }
        });
        drop(engine);
        caller.join().unwrap();
    });
}

#[test]
fn last_handle_dropped_seen_by_the_driver() {
    last_handle_dropped(|driver, _| driver.process_due(9) == Advance::ShutDown);
}

#[test]
fn last_handle_dropped_seen_by_the_queue() {
    last_handle_dropped(|driver, queue| {
        let _ = driver.process_due(9);
        matches!(queue.try_recv(), Err(RecvError::ShutDown))
    });
}
