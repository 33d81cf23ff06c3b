//! Promise 12 to those who hold handles: the last strong handle ends the engine, and a
//! weak one keeps nothing alive. Also the traits that let handles cross threads and
//! panics, which are checked as this file is compiled.

use super::*;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::mpsc;
use tickwheel::wheel::{Geometry, KeyedWheel};
use tickwheel::*;

fn shared<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
fn owned<T: Send + UnwindSafe + RefUnwindSafe>() {}

/// An engine's handles and what they lend, for a payload that no reference may cross a
/// panic.
fn of_payloads<T: Send>() {
    shared::<Engine<T>>();
    shared::<WeakEngine<T>>();
    shared::<Driver<T>>();
    shared::<VirtualClock<T>>();
    shared::<Reports<T>>();
    shared::<Unstarted<T>>();
    shared::<Builder<T>>();
    owned::<Queue<T>>();
}

fn of_values<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {
    shared::<Timer<T>>();
    shared::<Closed<T>>();
    shared::<Refused<T>>();
    shared::<Cancel<T>>();
    shared::<Wheel<T>>();
    shared::<KeyedWheel<u64, T>>();
    shared::<Expired<T>>();
}

#[test]
fn promise_12_handles_may_cross_threads_and_panics() {
    of_payloads::<std::cell::Cell<u32>>();
    of_values::<u32>();
    shared::<TaskEngine>();
    shared::<WeakTaskEngine>();
    shared::<TaskBuilder>();
    shared::<Firing>();
    shared::<Geometry>();
    shared::<Snapshot>();
    shared::<TimerId>();
}

#[test]
fn promise_12_a_weak_handle_keeps_no_engine_alive() {
    let (engine, _clock) = virtual_engine::<u32>();
    let queue = engine.queue(0);
    let weak = engine.downgrade();
    engine.schedule(Timer::after(SECOND, 1)).unwrap();
    drop(engine);
    assert!(queue.is_shut_down());
    assert!(weak.upgrade().is_none() && weak.clone().upgrade().is_none());
}

#[test]
fn promise_12_an_upgraded_handle_keeps_its_engine_alive() {
    let (engine, clock) = virtual_engine::<u32>();
    let weak = engine.downgrade();
    let upgraded = weak.upgrade().unwrap();
    drop(engine);
    assert!(!upgraded.is_shut_down());
    upgraded.schedule(Timer::after(SECOND, 1)).unwrap();
    clock.advance(SECOND);
    assert_eq!(payloads(&upgraded), [1]);
    let queue = upgraded.queue(0);
    drop(upgraded);
    assert!(queue.is_shut_down() && weak.upgrade().is_none());
}

#[test]
fn promise_12_a_handle_to_an_engine_that_was_shut_down_says_so() {
    let (engine, _clock) = virtual_engine::<u32>();
    engine.shutdown();
    let upgraded = engine.downgrade().upgrade().unwrap();
    assert!(upgraded.is_shut_down());
}

#[test]
fn promise_12_a_task_with_a_weak_handle_lets_its_engine_end() {
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    let (tell, told) = mpsc::channel();
    let weak = tasks.downgrade();
    let task = move |_| tell.send(weak.upgrade().is_some()).unwrap();
    tasks.run(Timer::every(SECOND, task)).unwrap();
    clock.run_until(Time::from_secs(2));
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [true, true]);
    drop(tasks);
    // The closure and its sender are dropped.
    assert!(told.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Disconnected));
}
