//! Promise 4: who cancels a timer before it is taken has cancelled it.

use super::*;
use std::sync::mpsc;
use std::thread;
use tickwheel::{Cancel, NotLive, TaskEngine, Timer};

#[test]
fn promise_04_cancel_wins_until_the_task_is_taken() {
    let (engine, clock) = virtual_engine();
    let ids: Vec<_> = (0..4)
        .map(|n| engine.schedule(Timer::after(MS, n)).unwrap())
        .collect();
    clock.advance(MS);
    assert_eq!(engine.queue(0).len(), 4);
    let queue = engine.queue(0);
    let mut seen = Vec::new();
    for expired in queue.recv_batch(4).unwrap() {
        if *expired.payload() == 0 {
            // Behind its canceller in the same batch, and not the next one.
            assert_eq!(engine.cancel(ids[2]), Cancel::Cancelled(2));
        }
        seen.push(expired.into_payload());
    }
    assert_eq!(seen, [0, 1, 3]);
    assert_eq!(engine.cancel(ids[0]), Cancel::Gone);
    assert_eq!(engine.cancel(ids[2]), Cancel::Gone);
}

#[test]
fn promise_04_a_running_timer_does_not_fire_again_and_can_be_waited_for() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::every(MS, "beat")).unwrap();
    clock.advance(MS);
    let expired = engine.queue(0).recv().unwrap();
    assert_eq!(engine.cancel(id), Cancel::Running);
    assert_eq!(engine.reschedule(id, MS), Err(NotLive::Running));
    assert_eq!(
        engine.replace(id, "other"),
        Err((NotLive::Running, "other"))
    );
    thread::scope(|scope| {
        let (begun, has_begun) = mpsc::channel();
        let engine = &engine;
        let waiter = scope.spawn(move || {
            begun.send(()).unwrap();
            engine.cancel_and_wait(id)
        });
        has_begun.recv().unwrap();
        thread::sleep(20 * MS);
        assert!(!waiter.is_finished(), "did not wait for the running firing");
        drop(expired);
        assert_eq!(waiter.join().unwrap(), Cancel::Running);
    });
    clock.advance(10 * MS);
    assert!(engine.queue(0).is_empty());
    assert_eq!(engine.cancel_and_wait(id), Cancel::Gone);
    assert_eq!(engine.ledger().cancelled, 1);
}

#[test]
fn promise_04_a_task_can_cancel_itself_without_waiting_for_itself() {
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    let inner = tasks.clone();
    let task = move |firing: &tickwheel::Firing| {
        assert!(matches!(
            inner.cancel_and_wait(firing.id()),
            Cancel::Running
        ));
    };
    tasks.run_every(MS, task).unwrap();
    clock.run_until(tasks.now() + 5 * MS);
    assert_eq!(
        (tasks.ledger().cancelled, tasks.engine().snapshot().panics),
        (1, 0)
    );
    tasks.shutdown();
}

#[test]
fn promise_04_a_task_that_was_not_started_is_cancelled_once() {
    let (tasks, _clock) = TaskEngine::builder().start_virtual().unwrap();
    let task = Timer::after(MS, |_: &tickwheel::Firing| ());
    let unstarted = tasks.create(task).unwrap();
    assert_eq!(tasks.cancel(unstarted.id()), Cancel::Cancelled(()));
    assert_eq!(tasks.cancel(unstarted.id()), Cancel::Gone);
    assert!(unstarted.dismiss().is_none());
}

#[test]
fn promise_04_cancelling_many_answers_for_each_as_cancelling_one_does() {
    let (engine, clock) = Engine::builder().shards(2).start_virtual().unwrap();
    let (other, _) = virtual_engine();
    let schedule = |delay, name| engine.schedule(Timer::after(delay, name)).unwrap();
    let fired = schedule(MS, "fired");
    let expired = schedule(2 * MS, "expired");
    let runs = engine
        .schedule(Timer::every(3 * MS, "runs").queue(0))
        .unwrap();
    let far = schedule(SECOND, "far");
    let elsewhere = thread::scope(|scope| {
        let elsewhere = scope.spawn(|| schedule(SECOND, "elsewhere"));
        elsewhere.join().unwrap()
    });
    let foreign = other.schedule(Timer::after(SECOND, "foreign")).unwrap();
    clock.advance(MS);
    assert_eq!(payloads(&engine), ["fired"]);
    clock.advance(2 * MS);
    let mut waiting = take_all(&engine);
    let running = waiting.pop().unwrap();
    assert_eq!((waiting.len(), running.id()), (1, runs));

    let again = schedule(Duration::ZERO, "again");
    let ids = [fired, expired, runs, far, foreign, elsewhere, far, again];
    assert_eq!(
        engine.cancel_many(&ids),
        [
            Cancel::Gone,
            Cancel::Gone,
            Cancel::Running,
            Cancel::Cancelled("far"),
            Cancel::Gone,
            Cancel::Cancelled("elsewhere"),
            Cancel::Gone,
            Cancel::Cancelled("again"),
        ]
    );
    drop(running);
    assert_eq!((engine.ledger().live, other.ledger().live), (0, 1));
    assert!(engine.ledger().is_balanced() && engine.cancel_many(&[]).is_empty());
    let ids: Vec<_> = (0..1_000).map(|_| schedule(SECOND, "many")).collect();
    let cancelled = engine.cancel_many(&ids).into_iter();
    assert_eq!(cancelled.filter_map(Cancel::payload).count(), 1_000);
}
