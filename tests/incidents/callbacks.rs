//! Failures of callbacks that use the engine that called them.

use super::*;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use tickwheel::{Cancel, Firing, TaskEngine, Time, Timer, TimerId};

/// Timers due together were copied into a list and then called one by one. A
/// timer that an earlier one of the list had cancelled or moved was called all
/// the same, and a timer that ended itself was freed twice.
#[test]
fn f06_a_callback_may_cancel_or_rearm_itself_or_a_sibling() {
    let (tasks, clock) = TaskEngine::builder().workers(1).start_virtual().unwrap();
    let ids: Arc<OnceLock<Vec<TimerId>>> = Arc::default();
    let ran = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let ran = Arc::clone(&ran);
        move |tick| ran.lock().unwrap().push((name, tick))
    };
    let (engine, siblings, noted) = (tasks.clone(), Arc::clone(&ids), note("first"));
    let first = move |firing: Firing| {
        let ids = siblings.get().unwrap();
        assert_eq!(engine.cancel(ids[0]), Cancel::Running); // itself
        assert_eq!(engine.cancel(ids[1]), Cancel::Cancelled(()));
        engine.engine().reschedule(ids[2], 5 * MS).unwrap();
        assert!(engine.engine().reschedule(ids[0], MS).is_err());
        noted(firing.tick().0);
    };
    let sibling = |name| {
        let noted = note(name);
        Timer::after(MS, move |firing: Firing| noted(firing.tick().0))
    };
    let started = vec![
        tasks.run(Timer::every(MS, first)).unwrap(),
        tasks.run(sibling("cancelled")).unwrap(),
        tasks.run(sibling("moved")).unwrap(),
        tasks.run(sibling("last")).unwrap(),
    ];
    ids.set(started).unwrap();
    clock.run_until(Time::START + SECOND);
    assert_eq!(
        *ran.lock().unwrap(),
        [("first", 1), ("last", 1), ("moved", 6)]
    );
    let ledger = tasks.ledger();
    assert_eq!((ledger.completed, ledger.cancelled, ledger.live), (2, 2, 0));
    assert_eq!(tasks.engine().snapshot().panics, 0);
}

/// Callbacks ran under the lock that scheduling takes. Here a task may call
/// everything, shutdown included.
///
/// Models: `payload::destructor_cancels_a_timer`, `expiry::last_handle_dropped`.
#[test]
fn f17_submitting_from_inside_a_callback_does_not_deadlock() {
    let builder = TaskEngine::builder().workers(1).max_timers(10_000);
    let tasks = builder.start().unwrap();
    let (done, is_done) = mpsc::channel();
    chain(tasks.clone(), 1_000, done);
    is_done.recv_timeout(PATIENCE).expect("a task is stuck");
    assert!(tasks.ledger().is_balanced());
}

/// Does a little of everything, and then schedules itself; the last one shuts
/// the engine down from within.
fn chain(tasks: TaskEngine, left: u32, done: mpsc::Sender<()>) {
    let inner = tasks.clone();
    let task = move || {
        let far = inner.run_after(HOUR, || ()).unwrap();
        inner.engine().reschedule(far, 2 * HOUR).unwrap();
        assert_eq!(inner.cancel(far), Cancel::Cancelled(()));
        let named = Timer::after(HOUR, |_| ()).named("lease");
        inner.run(named).unwrap();
        assert_eq!(inner.cancel_by_name("lease", None), 1);
        assert_eq!(inner.ledger().live, 1);
        match left {
            0 => {
                inner.shutdown();
                done.send(()).unwrap();
            }
            left => chain(inner, left - 1, done),
        }
    };
    tasks.run_after(Duration::ZERO, task).unwrap();
}
