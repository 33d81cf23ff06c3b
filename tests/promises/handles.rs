//! Promise 12 to those who hold handles: the last strong handle ends the engine, and a
//! weak one keeps nothing alive. Also the traits that let handles cross threads and
//! panics, which are checked as this file is compiled.

use super::*;
use std::panic::{RefUnwindSafe, UnwindSafe};
use tickwheel::wheel::{Geometry, KeyedWheel};

fn shared<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {}
fn owned<T: Send + UnwindSafe + RefUnwindSafe>() {}
fn sent(_: impl Send + Unpin) {}

/// An engine's handles and what they lend, for a payload that no reference may cross a
/// panic.
fn of_payloads<T: Send + 'static>() {
    shared::<(Engine<T>, WeakEngine<Engine<T>>, Driver<T>, VirtualClock)>();
    shared::<(Unstarted<T>, Builder<Engine<T>>)>();
    owned::<(Queue<T>, Reports<T>)>();
    let _ = |queue: &mut Queue<T>, reports: &mut Reports<T>| {
        sent(queue.recv_async());
        sent(reports.recv_async());
    };
}

fn of_values<T: Send + Sync + UnwindSafe + RefUnwindSafe>() {
    shared::<(Timer<T>, Closed<T>, Refused<T>, Cancel<T>, Expired<T>)>();
    shared::<(Wheel<T>, KeyedWheel<u64, T>)>();
}

#[test]
fn promise_12_handles_may_cross_threads_and_panics() {
    of_payloads::<std::cell::Cell<u32>>();
    of_values::<u32>();
    shared::<(TaskEngine, WeakEngine<TaskEngine>, Builder<TaskEngine>, Firing)>();
    shared::<(Geometry, stats::Snapshot, TimerId)>();
}

#[test]
fn promise_12_the_last_strong_handle_ends_the_engine() {
    let (engine, clock) = virtual_engine();
    let (queue, weak) = (engine.queue(0), engine.downgrade());
    let upgraded = weak.upgrade().unwrap();
    drop(engine.clone());
    drop(engine);
    assert!(!upgraded.is_shut_down());
    upgraded.after(SECOND, 1);
    clock.advance(SECOND);
    assert_eq!(payloads(&upgraded), [1]);
    drop(upgraded);
    assert_eq!(queue.try_recv().err(), Some(RecvError::ShutDown));
    assert!(weak.upgrade().is_none() && weak.clone().upgrade().is_none());

    let (engine, _clock) = virtual_engine::<u32>();
    engine.shutdown();
    assert!(engine.is_shut_down());
    assert!(engine.downgrade().upgrade().unwrap().is_shut_down());
}
