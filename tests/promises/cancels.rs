//! Promise 4: a cancel wins until the timer is taken.

use super::*;
use std::sync::mpsc;
use std::thread;
use tickwheel::{Cancel, CloseReason, Firing, NotChanged, TaskEngine, Timer};

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
    for expired in queue.try_iter() {
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
fn promise_04_a_running_timer_is_cancelled_and_waited_for() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::every(MS, "beat")).unwrap();
    clock.advance(MS);
    let expired = engine.queue(0).recv().unwrap();
    assert_eq!(engine.cancel(id), Cancel::Running);
    assert_eq!(engine.reschedule(id, MS), Err(NotChanged::Cancelled));
    assert_eq!(
        engine.replace(id, "other"),
        Err((NotChanged::Cancelled, "other"))
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
fn promise_04_every_wait_for_a_firing_returns() {
    let (engine, clock) = virtual_engine();
    for _ in 0..3 {
        let ids = [0, 1].map(|n| engine.schedule(Timer::every(MS, n)).unwrap());
        clock.advance(MS);
        let firings = take_all(&engine);
        let (tell, told) = mpsc::channel();
        for waiter in 0..8 {
            let (engine, tell) = (engine.clone(), tell.clone());
            thread::spawn(move || {
                tell.send(()).unwrap();
                let _ = engine.cancel_and_wait(ids[waiter % 2]);
                tell.send(()).unwrap();
            });
        }
        // Each is about to wait, and most do when this has slept.
        (0..8).for_each(|_| told.recv().unwrap());
        thread::sleep(20 * MS);
        drop(firings);
        for _ in 0..8 {
            assert_eq!(told.recv_timeout(20 * SECOND), Ok(()), "one is left");
        }
    }
}

#[test]
fn promise_04_a_task_can_cancel_itself() {
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    let inner = tasks.clone();
    let task = move |firing: tickwheel::Firing| {
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

/// What a task answers for itself, asked by `ask` on a worker of a real engine.
fn answer_of_a_task(
    ask: impl Fn(&TaskEngine, Firing) -> Cancel<()> + Send + 'static,
) -> Option<Cancel<()>> {
    let (tell, told) = mpsc::channel();
    let tasks = TaskEngine::builder().start().unwrap();
    let inner = tasks.clone();
    let task = move |firing: Firing| tell.send(ask(&inner, firing)).unwrap();
    tasks.run_every(MS, task).unwrap();
    let answer = told.recv_timeout(20 * SECOND).ok();
    tasks.shutdown();
    answer
}

#[test]
fn promise_04_a_task_that_drove_others_can_cancel_itself() {
    let (others, driver) = TaskEngine::builder().start_driven().unwrap();
    let answer = answer_of_a_task(move |tasks, firing| {
        others.run_after(Duration::ZERO, || ()).unwrap();
        let _ = driver.run_due(1);
        assert_eq!(others.ledger().completed, 1);
        tasks.cancel_and_wait(firing.id())
    });
    assert_eq!(answer, Some(Cancel::Running), "it waits for itself");
}

#[test]
fn promise_04_a_task_inside_of_another_does_not_wait_for_that() {
    let (others, driver) = TaskEngine::builder().start_driven().unwrap();
    let answer = answer_of_a_task(move |tasks, firing| {
        let (outer, id) = (tasks.clone(), firing.id());
        let (tell, told) = mpsc::channel();
        let innermost = move |firing: Firing| {
            let own = outer.cancel_and_wait(firing.id());
            assert_eq!(own, Cancel::Gone, "of another engine");
            tell.send(outer.cancel_and_wait(id)).unwrap();
        };
        let innermost = Timer::after(Duration::ZERO, innermost);
        others.run(innermost).unwrap();
        let _ = driver.run_due(1);
        told.recv().unwrap()
    });
    assert_eq!(answer, Some(Cancel::Running), "it waits for what it is in");
}

#[test]
fn promise_04_a_task_yet_to_be_notified_is_not_gone() {
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    let (tell, told) = mpsc::channel();
    let notified = |delay| {
        let tell = tell.clone();
        let task = move |firing: Firing| tell.send((firing.id(), firing.outcome())).unwrap();
        Timer::after(delay, task).notified()
    };
    let schedule = |delay| tasks.run(notified(delay)).unwrap();
    let was_told = |id| {
        let outcome = (id, CloseReason::Cancelled);
        assert_eq!(told.recv_timeout(20 * SECOND), Ok(outcome));
    };
    let engine = tasks.engine();
    let id = schedule(SECOND);
    let answer = engine.cancel(id);
    assert!(matches!(answer, Cancel::Notified), "{answer:?}");
    assert!(answer.is_cancelled() && answer.payload().is_none());
    was_told(id);
    let id = schedule(SECOND);
    assert!(matches!(
        engine.cancel_many(&[id, id])[..],
        [Cancel::Notified, _]
    ));
    was_told(id);
    let id = schedule(SECOND);
    assert!(matches!(engine.cancel_and_wait(id), Cancel::Notified));
    was_told(id);
    let id = schedule(SECOND);
    assert_eq!(tasks.cancel(id), Cancel::Cancelled(()));
    was_told(id);
    assert!(matches!(engine.cancel(id), Cancel::Gone));

    let unstarted = tasks.create(notified(SECOND)).unwrap();
    let id = unstarted.id();
    assert!(matches!(engine.cancel(id), Cancel::Notified));
    assert!(!engine.cancel(id).is_cancelled());
    unstarted.start().unwrap();
    was_told(id);
    clock.run_until(tasks.now() + 2 * SECOND);
    assert!(told.try_recv().is_err());
    assert_eq!((tasks.ledger().cancelled, tasks.ledger().live), (5, 0));
}

#[test]
fn promise_04_a_task_that_was_not_started_is_cancelled_once() {
    let (tasks, _clock) = TaskEngine::builder().start_virtual().unwrap();
    let task = Timer::after(MS, |_| ());
    let unstarted = tasks.create(task).unwrap();
    assert_eq!(tasks.cancel(unstarted.id()), Cancel::Cancelled(()));
    assert_eq!(tasks.cancel(unstarted.id()), Cancel::Gone);
    assert!(unstarted.dismiss().is_none());
}

#[test]
fn promise_04_cancelling_many_answers_like_cancelling_each() {
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

/// Whatever state a timer is in, cancelling all does for it what its id would do.
#[test]
fn promise_04_cancelling_all_cancels_what_an_id_could_cancel_and_nothing_later() {
    let (engine, clock) = Engine::builder().shards(2).start_virtual().unwrap();
    let schedule = |timer: Timer<&'static str>| engine.schedule(timer).unwrap();
    schedule(Timer::every(MS, "runs").named("beat"));
    schedule(Timer::every(MS, "runs for the last time").times(1));
    schedule(Timer::after(2 * MS, "expired"));
    clock.advance(MS);
    let running = take_all(&engine);
    assert_eq!(running.len(), 2);
    clock.advance(MS);
    schedule(Timer::after(SECOND, "far"));
    schedule(Timer::every(SECOND, "repeats").named("beat").reported());
    thread::scope(|scope| {
        let elsewhere = || schedule(Timer::after(Duration::MAX, "elsewhere"));
        scope.spawn(elsewhere).join().unwrap();
    });
    let unstarted = engine.create(Timer::after(SECOND, "unstarted")).unwrap();
    let paused = schedule(Timer::after(SECOND, "paused"));
    engine.pause(paused).unwrap();
    let given_up = engine.create(Timer::after(SECOND, "given up")).unwrap();
    assert_eq!(given_up.dismiss(), Some("given up"));

    let mut cancelled = engine.cancel_all();
    cancelled.payloads.sort_unstable();
    let payloads = [
        "elsewhere",
        "expired",
        "far",
        "paused",
        "repeats",
        "unstarted",
    ];
    assert_eq!(cancelled.payloads, payloads);
    assert_eq!(cancelled.ids.len(), payloads.len() + 1, "and one that runs");
    let has_ended = |id: TimerId| cancelled.ids.contains(&id);
    assert!(has_ended(paused) && has_ended(running[0].id()));
    assert!(!has_ended(running[1].id()), "it may end by itself");
    let again = engine.cancel_all();
    assert_eq!((again.ids.len(), again.payloads.len()), (0, 0));
    assert_eq!(engine.cancel_by_name("beat", None).ids.len(), 0);

    // The engine goes on: only the last firing completes.
    assert!(unstarted.start().is_ok());
    let later = schedule(Timer::after(MS, "later"));
    drop(running);
    clock.advance(SECOND);
    assert_eq!(take_all(&engine).len(), 1);
    assert_eq!(engine.cancel(later), Cancel::Gone);
    let ledger = engine.ledger();
    assert!(ledger.is_balanced());
    let ended = (ledger.live, ledger.completed, ledger.cancelled);
    assert_eq!(ended, (0, 2, 7));
    let report = engine.reports().try_recv().unwrap();
    assert_eq!(report.reason, CloseReason::Cancelled);
}

/// A task that runs at its end does so, and one that is running ends with this run.
#[test]
fn promise_04_cancelling_all_tasks_notifies_those_that_ask_for_it() {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let (tell, told) = mpsc::channel();
    let task = move |firing: Firing| tell.send(firing.outcome()).unwrap();
    tasks.run(Timer::after(SECOND, task).notified()).unwrap();
    let here = tasks.clone();
    let cancels_all = move |_: Firing| assert_eq!(here.cancel_all(), 2);
    tasks.run(Timer::every(MS, cancels_all)).unwrap();
    while tasks.ledger().live > 0 {
        let _ = driver.run_due(2);
    }
    let _ = driver.run_due(2);
    assert_eq!(
        told.try_iter().collect::<Vec<_>>(),
        [CloseReason::Cancelled]
    );
    assert_eq!(tasks.engine().snapshot().panics, 0);
    assert_eq!(tasks.ledger().cancelled, 2);
}
