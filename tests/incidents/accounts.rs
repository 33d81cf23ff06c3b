//! Failures of memory and identity, and of queues that fill up.

use super::*;
use std::sync::{Arc, mpsc};
use tickwheel::{Cancel, NotChanged, RecvError, TaskEngine, Timer};

/// Threads that owned a part of the timers went, and what they had scheduled
/// went with them, or could no longer be cancelled.
#[test]
fn f07_what_a_thread_has_scheduled_outlives_it() {
    let engine = Engine::builder().shards(8).start().unwrap();
    let mut cancelled = 0;
    for round in 0..50 {
        let schedule = |delay| engine.schedule(Timer::after(delay, round)).unwrap();
        let ids: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (schedule(MS), schedule(HOUR))))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        for (_, far) in ids {
            assert_eq!(engine.cancel(far), Cancel::Cancelled(round));
            cancelled += 1;
        }
    }
    let queue = engine.queue(0);
    for _ in 0..cancelled {
        queue.recv_timeout(PATIENCE).unwrap();
    }
    let ledger = engine.ledger();
    assert_eq!((ledger.completed, ledger.cancelled), (200, 200));
    assert_eq!((ledger.live, engine.live().count()), (0, 0));
}

/// Cancelling only marked a timer, which stayed in memory until its deadline:
/// an hour of requests that were answered at once was an hour of memory.
#[test]
fn f08_cancelled_far_timers_do_not_stay_in_memory() {
    let builder = Engine::builder().shards(1).max_timers(10);
    let (engine, _clock) = builder.start_virtual().unwrap();
    let payload = Arc::new(());
    for _ in 0..10_000 {
        let ids: Vec<_> = (0..10)
            .map(|_| engine.schedule(Timer::after(YEAR, Arc::clone(&payload))))
            .collect();
        for id in ids {
            assert!(engine.cancel(id.unwrap()).payload().is_some());
        }
    }
    assert_eq!(Arc::strong_count(&payload), 1);
    assert_eq!(engine.live().count(), 0);
}

/// A handle was kept after its timer had fired; the storage had a new tenant,
/// and that was cancelled instead.
#[test]
fn f10_a_stale_id_does_not_reach_somebody_elses_timer() {
    let (engine, clock) = virtual_engine();
    let mut stale = Vec::new();
    for n in 0..1_000 {
        stale.push(engine.schedule(Timer::after(MS, n)).unwrap());
        clock.advance(MS);
        assert_eq!(take(&engine, 0).len(), 1);
    }
    let tenant = engine.schedule(Timer::after(HOUR, 7)).unwrap();
    for id in stale {
        assert_eq!(engine.cancel(id), Cancel::Gone);
        assert_eq!(engine.cancel_and_wait(id), Cancel::Gone);
        assert_eq!(engine.reschedule(id, MS), Err(NotChanged::Gone));
        assert_eq!(engine.replace(id, 8), Err((NotChanged::Gone, 8)));
        assert_eq!(engine.deadline(id), None);
    }
    assert_eq!(engine.cancel(tenant), Cancel::Cancelled(7));
}

/// Callbacks ran in the thread that turned the wheel: one that waited for a
/// database held up every timer of the process.
#[test]
fn f13_a_blocked_task_does_not_hold_up_all_others() {
    let tasks = TaskEngine::builder().workers(2).start().unwrap();
    let (running, is_running) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let blocked = move || {
        running.send(()).unwrap();
        let _ = released.recv();
    };
    tasks.run_after(Duration::ZERO, blocked).unwrap();
    is_running.recv_timeout(PATIENCE).unwrap();
    let (ran, has_run) = mpsc::channel();
    for n in 0..100 {
        let ran = ran.clone();
        let task = move || ran.send(n).unwrap();
        tasks.run_after(n % 5 * MS, task).unwrap();
    }
    for _ in 0..100 {
        has_run.recv_timeout(PATIENCE).unwrap();
    }
    // The last of them has still to return.
    wait_until(|| tasks.ledger().live == 1);
    drop(release);
}

/// One consumer stopped taking. Its queue filled up, the filling thread
/// blocked, and the timers of every other consumer waited behind it.
#[test]
fn f14_a_full_queue_does_not_starve_the_timers_behind_it() {
    let builder = Engine::builder().shards(1).queues(2).queue_bound(1);
    let (engine, clock) = builder.start_virtual().unwrap();
    let stuck: Vec<_> = (0..10_000)
        .map(|n| engine.schedule(Timer::after(MS, n)).unwrap())
        .collect();
    let behind = Timer::after(2 * MS, 10_000).queue(1);
    engine.schedule(behind).unwrap();
    clock.advance(MS);
    let queue = engine.queue(0);
    let first = queue.try_recv().unwrap();
    assert_eq!(queue.try_recv().unwrap_err(), RecvError::Empty);
    clock.advance(MS);
    assert_eq!(engine.queue(1).try_recv().unwrap().into_payload(), 10_000);
    // What is stuck is live, and can be cancelled; nothing was dropped.
    assert_eq!(engine.cancel(stuck[1]), Cancel::Cancelled(1));
    assert_eq!((first.into_payload(), queue.len()), (0, 9_998));
    assert_eq!(take(&engine, 0).len(), 9_998);
    assert!(engine.ledger().is_balanced());
}
