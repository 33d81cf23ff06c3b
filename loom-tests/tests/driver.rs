//! An engine that is driven by its caller's own loop, which sleeps on a
//! descriptor while others file timers.

#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loom::thread;
use tickwheel::wheel::Advance;
use tickwheel::{Driver, Firing, Queue, RecvError, TaskEngine, Timer};
use tickwheel_loom_tests::{Payload, assert_all_ended, builder, model, payload, take_all, tick};

/// Goes round until that many timers have fired.
fn go_round(driver: &Driver<Payload>, queue: &Queue<Payload>, budget: usize, timers: usize) {
    let mut fired = 0;
    while fired < timers {
        driver.wait();
        let _ = driver.process_due(budget);
        fired += take_all(queue).len();
    }
}

/// A deadline that is earlier than what the loop sleeps for re-arms the
/// descriptor.
#[test]
fn an_earlier_deadline() {
    model(|| {
        let (engine, clock) = builder(1).start_driven_model().unwrap();
        let (driver, queue) = (clock.driver(), engine.queue(0));
        let caller = thread::spawn(move || go_round(&driver, &queue, usize::MAX, 2));
        engine.schedule(Timer::at(tick(2), payload(2))).unwrap();
        engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
        clock.pass_to(tick(1));
        clock.pass_to(tick(2));
        caller.join().unwrap();
        assert_all_ended(engine.ledger());
    });
}

/// With a budget that does not suffice the descriptor stays readable, whatever
/// another thread files meanwhile.
#[test]
fn a_budget_of_one() {
    model(|| {
        let (engine, clock) = builder(1).start_driven_model().unwrap();
        for name in 0..2 {
            engine.schedule(Timer::at(tick(1), payload(name))).unwrap();
        }
        let (driver, queue) = (clock.driver(), engine.queue(0));
        let caller = thread::spawn(move || go_round(&driver, &queue, 1, 3));
        clock.pass_to(tick(1));
        engine.schedule(Timer::at(tick(1), payload(2))).unwrap();
        caller.join().unwrap();
        assert_all_ended(engine.ledger());
    });
}

/// A task that is to be told of its cancelling is in the queue when the loop is
/// called for it: the loop looks once.
#[test]
fn a_task_is_told_of_its_cancelling() {
    model(|| {
        let (tasks, clock) = TaskEngine::builder().start_driven_model().unwrap();
        let driver = clock.driver();
        let told = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&told);
        let task = move |_: &Firing| tell.store(true, Ordering::Relaxed);
        let far = Timer::at(tick(9), task).notified();
        let id = tasks.run(far).unwrap();
        let caller = thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                driver.wait();
                let _ = driver.run_due(9);
            }
        });
        tasks.cancel(id).payload().unwrap();
        caller.join().unwrap();
        assert_all_ended(tasks.ledger());
    });
}

/// The last handle goes while a loop goes round: sleep, look, and once more. It
/// ends, whatever it looks at.
fn the_last_handle_goes(is_end: fn(&Driver<Payload>, &Queue<Payload>) -> bool) {
    model(move || {
        let (engine, clock) = builder(1).start_driven_model().unwrap();
        let (driver, queue) = (clock.driver(), engine.queue(0));
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
fn the_last_handle_goes_and_the_engine_says_so() {
    the_last_handle_goes(|driver, _| driver.process_due(9) == Advance::Closed);
}

#[test]
fn the_last_handle_goes_and_the_queue_says_so() {
    the_last_handle_goes(|driver, queue| {
        let _ = driver.process_due(9);
        matches!(queue.try_recv(), Err(RecvError::Closed))
    });
}
