//! A user's program: attempts that are repeated until one succeeds or they are stopped.

#![cfg(loom)]

#[path = "../programs/retry.rs"]
mod retry;

use std::time::Duration;

use crate::threads::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::threads::sync::{Arc, mpsc};
use crate::threads::thread::{self, JoinHandle};
use tickwheel::wheel::Advance;
use tickwheel::{Driver, Task};
use tickwheel_loom_tests::{assert_all_ended, driven_task_model, tick};

const TICK: Duration = Duration::from_millis(1);

/// The program's own loop: sleeps until a task is due, and runs it.
fn run_loop(driver: Driver<Task>) -> JoinHandle<()> {
    thread::spawn(move || {
        while driver.process_due(9) != Advance::ShutDown {
            driver.wait();
        }
    })
}

/// A chain is stopped while an attempt is due, running or past: once the call has
/// returned, no attempt runs, whatever time passes.
#[test]
fn a_chain_is_stopped_beside_its_attempts() {
    driven_task_model(|timers, driver, clock| {
        let caller = run_loop(driver);
        let [stopped, late] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (seen, noted) = (Arc::clone(&stopped), Arc::clone(&late));
        // A panic would stay in the task.
        let fails = move |_| {
            thread::yield_now();
            noted.fetch_or(seen.load(Ordering::SeqCst), Ordering::SeqCst);
            false
        };
        let chain = retry::start(&timers, tick(1), TICK, fails).unwrap();
        clock.pass_to(tick(1));
        retry::stop(&timers, chain);
        stopped.store(true, Ordering::SeqCst);
        clock.pass_to(tick(3));
        timers.shutdown();
        caller.join().unwrap();
        assert!(!late.load(Ordering::SeqCst), "an attempt of a stopped chain");
        assert_all_ended(timers.ledger());
    });
}

/// A chain ends with its first success.
#[test]
fn a_chain_ends_with_a_success() {
    driven_task_model(|timers, driver, clock| {
        let caller = run_loop(driver);
        let attempts = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&attempts);
        let (succeed, wait) = mpsc::channel();
        let second = move |number| {
            counted.fetch_add(1, Ordering::SeqCst);
            if number == 2 {
                succeed.send(()).unwrap();
            }
            number >= 2
        };
        retry::start(&timers, tick(1), Duration::ZERO, second).unwrap();
        clock.pass_to(tick(1));
        wait.recv().unwrap();
        timers.shutdown();
        caller.join().unwrap();
        assert_eq!(attempts.load(Ordering::SeqCst), 2);
    });
}
