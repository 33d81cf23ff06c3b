//! Promise 12: shutdown and drain account for every timer.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use tickwheel::{Cancel, CloseReason, RecvError, TaskEngine, Time, Timer};

#[test]
fn promise_12_shutdown_accounts_for_every_timer() {
    let (engine, clock) = virtual_engine();
    let waiting = engine.schedule(Timer::after(SECOND, "waiting")).unwrap();
    let ready = engine.schedule(Timer::after(MS, "ready")).unwrap();
    let running = engine
        .schedule(Timer::every(MS, "running").queue(1))
        .unwrap();
    let last = engine
        .schedule(Timer::every(MS, "last").times(1).queue(1))
        .unwrap();
    clock.advance(MS);
    let queue = engine.queue(1);
    let lent = [queue.recv().unwrap(), queue.recv().unwrap()];
    let left = engine.shutdown();
    let mut seen: Vec<_> = left
        .iter()
        .map(|closed| (closed.id, closed.payload))
        .collect();
    seen.sort();
    let mut expected = [
        (waiting, Some("waiting")),
        (ready, Some("ready")),
        (running, None),
    ];
    expected.sort();
    assert_eq!(seen, expected);
    assert!(
        left.iter()
            .all(|closed| closed.reason == CloseReason::ShutDown)
    );
    assert_eq!(engine.ledger().live, 1); // the last firing ends by itself
    drop(lent);
    assert_eq!(engine.cancel(last), Cancel::Gone);
    let ledger = engine.ledger();
    assert_eq!((ledger.shut_down, ledger.completed, ledger.live), (3, 1, 0));
    assert!(ledger.is_balanced());
    assert!(engine.shutdown().is_empty());
    assert_eq!(engine.queue(0).try_recv().unwrap_err(), RecvError::ShutDown);
}

#[test]
fn promise_12_cancelled_while_running_is_not_shut_down() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::every(MS, "beat")).unwrap();
    clock.advance(MS);
    let running = engine.queue(0).recv().unwrap();
    assert_eq!(engine.cancel(id), Cancel::Running);
    assert_eq!(engine.shutdown(), []);
    assert_eq!(engine.ledger().live, 1);
    drop(running);
    let ledger = engine.ledger();
    assert_eq!((ledger.cancelled, ledger.shut_down, ledger.live), (1, 0, 0));
}

#[test]
fn promise_12_a_drain_fires_the_one_shots_due_by_its_limit() {
    let engine = Engine::builder().start().unwrap();
    engine.schedule(Timer::every(5 * MS, 0)).unwrap();
    for n in 1..=20 {
        engine.schedule(Timer::after(n * MS, n)).unwrap();
    }
    engine.schedule(Timer::after(3_600 * SECOND, 99)).unwrap();
    let queue = engine.queue(0);
    let worker = thread::spawn(move || {
        let mut fired: Vec<u32> = queue.map(|expired| *expired.payload()).collect();
        fired.retain(|&n| n > 0);
        fired
    });
    let begun = std::time::Instant::now();
    let drainer = engine.clone();
    let left = thread::spawn(move || drainer.drain(60 * SECOND));
    while engine.schedule(Timer::after(SECOND, 700)).is_ok() {
        thread::yield_now();
    }
    let mut left: Vec<_> = left.join().unwrap();
    assert!(
        begun.elapsed() < 30 * SECOND,
        "waited for more than one-shots"
    );
    left.retain(|closed| closed.payload != Some(700));
    let mut payloads: Vec<_> = left
        .into_iter()
        .filter_map(|closed| closed.payload)
        .collect();
    payloads.retain(|&payload| payload != 0);
    assert_eq!(payloads, [99]);
    let mut fired = worker.join().unwrap();
    fired.retain(|&n| n != 700);
    assert_eq!(fired, (1..=20).collect::<Vec<_>>());
    assert!(engine.ledger().is_balanced());
}

#[test]
fn promise_12_a_task_engine_drains_and_joins_its_workers() {
    let builder = TaskEngine::builder().workers(3);
    let (tasks, _clock) = builder.start_virtual().unwrap();
    let held = Arc::new(AtomicBool::new(false));
    let (early, late) = (Arc::clone(&held), Arc::clone(&held));
    let slow = move || {
        thread::sleep(50 * MS);
        early.store(true, Ordering::Relaxed);
    };
    tasks.run_after(MS, slow).unwrap();
    tasks.run_after(SECOND, || drop(late)).unwrap();
    let left = tasks.drain(10 * MS);
    assert_eq!((left.len(), left[0].reason), (1, CloseReason::ShutDown));
    drop(left);
    tasks.join();
    let held = Arc::into_inner(held).expect("a worker is still at work");
    assert!(held.into_inner(), "what was due did not run");
    assert_eq!((tasks.ledger().completed, tasks.ledger().shut_down), (1, 1));
}

#[test]
fn promise_12_a_reported_task_is_dropped_when_it_has_run() {
    let (tasks, clock) = TaskEngine::builder().workers(2).start_virtual().unwrap();
    let held = Arc::new(());
    let task = || {
        let mine = Arc::clone(&held);
        move |firing: tickwheel::Firing| {
            assert!(Arc::strong_count(&mine) > 1);
            assert_eq!(firing.outcome(), CloseReason::Completed);
            assert_ne!(firing.number(), 3, "on purpose");
        }
    };
    let run = |timer: Timer<_>| tasks.run(timer.reported()).unwrap();
    run(Timer::after(MS, task()));
    run(Timer::every(MS, task()).times(2));
    run(Timer::every(MS, task()).times(3));
    clock.run_until(tasks.now() + 5 * MS);
    assert_eq!(Arc::strong_count(&held), 1, "in an unread report");

    // Cancelled, and shut down, while they run.
    let (running, runs) = mpsc::channel();
    let stuck = || {
        let (mine, running) = (Arc::clone(&held), running.clone());
        let (end, ended) = mpsc::channel::<()>();
        let stuck = move |_| {
            running.send(()).unwrap();
            assert!(ended.recv().is_err());
            assert!(Arc::strong_count(&mine) > 1);
        };
        let stuck = Timer::every(MS, stuck).reported();
        (tasks.run(stuck).unwrap(), end)
    };
    let two = [stuck(), stuck()];
    clock.advance(MS);
    (0..2).for_each(|_| runs.recv().unwrap());
    assert_eq!(tasks.cancel(two[0].0), Cancel::Running);
    assert_eq!(tasks.shutdown().len(), 1);
    drop(two);
    tasks.join();
    assert_eq!(Arc::strong_count(&held), 1, "in an unread report");

    let reasons = tasks.engine().reports().map(|closed| {
        assert!(closed.payload.is_none());
        closed.reason
    });
    let mut reasons: Vec<_> = reasons.map(|reason| format!("{reason:?}")).collect();
    reasons.sort();
    let expected = ["Cancelled", "Completed", "Completed", "Failed", "ShutDown"];
    assert_eq!(reasons, expected);
}

#[test]
fn promise_12_every_join_returns() {
    for _ in 0..3 {
        let tasks = TaskEngine::builder().workers(2).start().unwrap();
        let (end, ended) = mpsc::channel::<()>();
        let slow = move || assert!(ended.recv().is_err());
        tasks.run_after(Duration::ZERO, slow).unwrap();
        let (tell, told) = mpsc::channel();
        for _ in 0..8 {
            let (tasks, tell) = (tasks.clone(), tell.clone());
            thread::spawn(move || {
                tell.send(()).unwrap();
                tasks.join();
                tell.send(()).unwrap();
            });
        }
        // Each is about to wait, and most do when this has slept.
        (0..8).for_each(|_| told.recv().unwrap());
        tasks.shutdown();
        thread::sleep(20 * MS);
        drop(end);
        for _ in 0..8 {
            assert_eq!(told.recv_timeout(20 * SECOND), Ok(()), "one is left");
        }
    }
}

#[test]
fn promise_12_a_drain_waits_for_no_unread_report() {
    // The fastest of a few: a busy machine may hold one up.
    let fastest = (0..5).map(|_| {
        let (engine, clock) = virtual_engine();
        for n in 0..3 {
            engine.schedule(Timer::after(MS, n).reported()).unwrap();
        }
        clock.advance(MS);
        assert_eq!(payloads(&engine), [0, 1, 2]);
        assert_eq!(engine.reports().len(), 3);
        let begun = std::time::Instant::now();
        assert_eq!(engine.drain(MS), []);
        begun.elapsed()
    });
    let fastest = fastest.min().unwrap();
    assert!(fastest < SECOND / 2, "waited for {fastest:?}");
}

#[test]
fn promise_12_a_drain_does_not_wait_for_timers_that_catch_up() {
    let builder = Engine::builder().shards(1);
    let engine = builder.tick(Duration::from_nanos(100)).start().unwrap();
    for _ in 0..2 {
        // It is behind for ever: the ready list is never empty.
        let beat = Timer::every(Duration::from_nanos(1), "beat");
        engine.schedule(beat).unwrap();
    }
    engine.schedule(Timer::after(MS, "once")).unwrap();
    let queue = engine.queue(0);
    let worker = thread::spawn(move || {
        thread::sleep(50 * MS); // the drain has looked, and waits
        queue.filter(|fired| *fired.payload() == "once").count()
    });
    let begun = std::time::Instant::now();
    assert_eq!(engine.drain(60 * SECOND).len(), 2);
    assert!(begun.elapsed() < 30 * SECOND, "waited for what repeats");
    assert_eq!(worker.join().unwrap(), 1);
}

#[test]
fn promise_12_a_drain_waits_for_nothing_that_never_comes() {
    let engine = Engine::builder().start().unwrap();
    engine
        .schedule(Timer::after(Duration::MAX, "never"))
        .unwrap();
    assert_eq!(engine.drain(Duration::MAX).len(), 1);

    // The drain's limit is in the middle of a tick, and so is the deadline.
    let builder = Engine::builder().start_at(Time::START + MS / 2);
    let (engine, _clock) = builder.start_virtual().unwrap();
    engine.schedule(Timer::after(MS, "due")).unwrap();
    let queue = engine.queue(0);
    let worker = thread::spawn(move || queue.map(Expired::into_payload).collect::<Vec<_>>());
    assert_eq!(engine.drain(MS), []);
    assert_eq!(worker.join().unwrap(), ["due"]);
}

#[test]
fn promise_12_dropping_the_last_handle_neither_waits_nor_leaks() {
    let (release, released) = mpsc::channel::<()>();
    let tasks = TaskEngine::builder().start().unwrap();
    let (running, is_running) = mpsc::channel();
    let stuck = move || {
        running.send(()).unwrap();
        let _ = released.recv();
    };
    tasks.run_after(Duration::ZERO, stuck).unwrap();
    let alive = Arc::new(());
    let held = alive.clone();
    tasks.run_after(SECOND * 3_600, move || drop(held)).unwrap();
    is_running.recv().unwrap();
    let begun = std::time::Instant::now();
    drop(tasks);
    assert!(begun.elapsed() < 5 * SECOND, "waited for a running task");
    assert_eq!(Arc::strong_count(&alive), 1);
    drop(release);

    let before = threads_named_tickwheel();
    for _ in 0..50 {
        let engine = Engine::builder().start().unwrap();
        engine.schedule(Timer::after(SECOND, ())).unwrap();
    }
    let deadline = std::time::Instant::now() + 20 * SECOND;
    while threads_named_tickwheel() > before + 20 {
        assert!(std::time::Instant::now() < deadline, "threads were leaked");
        thread::sleep(10 * MS);
    }
}

/// Ticker threads of this process; none where the system does not tell.
fn threads_named_tickwheel() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return 0;
    };
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        .filter(|name| name.starts_with("tickwheel-tick"))
        .count()
}
