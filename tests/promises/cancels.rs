//! Promise 4: a cancel wins until the timer is taken.

use super::*;

#[test]
fn promise_04_cancel_wins_until_the_task_is_taken() {
    let (engine, clock) = virtual_engine();
    let ids: Vec<_> = (0..5).map(|n| engine.after(MS, n)).collect();
    clock.advance(MS);
    assert_eq!(engine.queue(0).len(), 5);
    let mut seen = Vec::new();
    for expired in engine.queue(0).try_iter() {
        if *expired.payload() == 0 {
            // Behind its canceller in the same batch, and not the next one.
            assert_eq!(engine.cancel(ids[2]), Cancel::Cancelled(2));
            engine.reschedule(ids[3], 5 * MS).unwrap();
        }
        seen.push(expired.into_payload());
    }
    assert_eq!(seen, [0, 1, 4]);
    assert_eq!(engine.cancel(ids[0]), Cancel::Gone);
    assert_eq!(engine.cancel(ids[2]), Cancel::Gone);
    clock.advance(5 * MS);
    assert_eq!(take(&engine, 0), [(6, 3)]);
}

#[test]
fn promise_04_a_running_timer_is_cancelled_and_waited_for() {
    let (engine, clock) = virtual_engine();
    let id = engine.put(Timer::every(MS, "beat").named("beat"));
    clock.advance(MS);
    let expired = engine.next();
    assert_eq!(engine.cancel(id), Cancel::Running);
    assert_eq!(engine.find_by_name("beat").next(), None);
    let gone = Refusal::Cancelled;
    assert_eq!(engine.reschedule(id, MS), Err(gone));
    assert_eq!(parts(engine.replace(id, "other")), Err((gone, "other")));
    let begun = Barrier::new(2);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            begun.wait();
            engine.cancel_and_wait(id)
        });
        begun.wait();
        thread::sleep(20 * MS);
        assert!(!waiter.is_finished(), "did not wait for the running firing");
        drop(expired);
        assert_eq!(waiter.join().unwrap(), Cancel::Running);
    });
    clock.advance(10 * MS);
    assert!(engine.queue(0).is_empty());
    assert_eq!(engine.cancel_and_wait(id), Cancel::Gone);
    assert_eq!(ends(&engine), [0, 0, 1, 0, 0]);
}

#[test]
fn promise_04_every_wait_for_a_firing_returns() {
    // Also of one that was shut down.
    for is_over in [false, true, false, true] {
        let (engine, clock) = virtual_engine();
        let ids = [0, 1].map(|n| engine.every(MS, n));
        clock.advance(MS);
        let firings = take_all(&engine);
        assert_eq!(if is_over { engine.shutdown().len() } else { 2 }, 2);
        let wait = move |n: usize| {
            let _ended = [n, n + 1].map(|n| engine.cancel_and_wait(ids[n % 2]));
            assert_eq!(engine.snapshot().held, 0);
        };
        each_returns_after(wait, || drop(firings));
    }
}

#[test]
fn promise_04_a_task_can_cancel_itself() {
    let (tasks, clock) = virtual_tasks();
    let (inner, told) = (tasks.clone(), told());
    let task = told.of(move |firing| {
        inner.join(); // returns at once
        inner.cancel_and_wait(firing.id())
    });
    tasks.run_every(MS, task).unwrap();
    clock.run_until(at(5));
    assert_eq!(told.all(), [Cancel::Running]);
    assert_eq!(ends(&tasks), [0, 0, 1, 0, 0]);
    tasks.shutdown();
}

/// Nor does one that drove others wait for itself.
#[test]
fn promise_04_a_task_inside_of_another_does_not_wait_for_that() {
    let (others, driver) = driven_tasks();
    let tasks = TaskEngine::builder().start().unwrap();
    let (outer, told) = (tasks.clone(), told());
    let task = told.of(move |firing| {
        let (inner, id, told) = (outer.clone(), firing.id(), self::told());
        let innermost = told.of(move |firing| {
            let own = inner.cancel_and_wait(firing.id());
            assert_eq!(own, Cancel::Gone, "of another engine");
            inner.cancel_and_wait(id)
        });
        others.run(Timer::after(Duration::ZERO, innermost)).unwrap();
        let _ = driver.process_due(1);
        [told.next(), outer.cancel_and_wait(id)]
    });
    tasks.run_every(MS, task).unwrap();
    assert_eq!(told.next(), [Cancel::Running; 2]);
    tasks.shutdown();
}

#[test]
fn promise_04_a_task_yet_to_be_notified_is_not_gone() {
    let (tasks, clock) = virtual_tasks();
    let (engine, told) = (&tasks, told());
    let notified = || {
        let task = told.of(|firing| (firing.id(), firing.outcome()));
        Timer::after(SECOND, task).notified()
    };
    let cancels: [fn(&TaskEngine, TimerId) -> bool; 6] = [
        |tasks, id| matches!(Engine::cancel(tasks, id), it @ Cancel::Notified if it.is_cancelled()),
        |tasks, id| matches!(Engine::cancel_many(tasks, &[id, id])[..], [(_, Cancel::Notified), _]),
        |tasks, id| matches!(Engine::cancel_and_wait(tasks, id), Cancel::Notified),
        |tasks, id| tasks.cancel(id) == Cancel::Cancelled(()),
        |tasks, id| tasks.cancel_all() == [(id, Cancel::Cancelled(()))],
        |tasks, id| tasks.cancel_many(&[id]) == [(id, Cancel::Cancelled(()))],
    ];
    for (n, cancel) in cancels.into_iter().enumerate() {
        let id = tasks.run(notified()).unwrap();
        assert!(cancel(&tasks, id), "{n}");
        assert_eq!(told.next(), (id, CloseReason::Cancelled));
        clock.run_until(tasks.now());
        assert!(matches!(engine.cancel(id), Cancel::Gone));
    }
    let unstarted = tasks.create(notified()).unwrap();
    let id = unstarted.id();
    assert!(engine.cancel(id).is_cancelled() && !engine.cancel(id).is_cancelled());
    unstarted.start().unwrap();
    assert_eq!(told.next(), (id, CloseReason::Cancelled));
    clock.run_until(at(2_000));
    assert_eq!(ends(engine), [0, 0, 7, 0, 0]);
}

#[test]
fn promise_04_cancelling_many_answers_like_cancelling_each() {
    let (engine, clock) = Engine::builder().shards(2).start_virtual().unwrap();
    let (other, _) = virtual_engine();
    let fired = engine.after(MS, "fired");
    let runs = engine.every(MS, "runs");
    let far = engine.after(SECOND, "far");
    let schedule = || engine.after(SECOND, "elsewhere");
    // The thread that scheduled it has ended.
    let elsewhere = thread::scope(|scope| scope.spawn(schedule).join().unwrap());
    let foreign = other.after(SECOND, "foreign");
    clock.advance(MS);
    let taken = take_all(&engine);
    let waits = engine.after(Duration::ZERO, "waits");
    clock.advance(Duration::ZERO);
    let ids = [fired, runs, far, foreign, elsewhere, far, waits];
    let (ran, gone) = (Cancel::Running, || Cancel::Gone);
    let [far, elsewhere, waits] = ["far", "elsewhere", "waits"].map(Cancel::Cancelled);
    let expected = [gone(), ran, far, gone(), elsewhere, gone(), waits];
    assert!(ids.into_iter().zip(expected).eq(engine.cancel_many(&ids)));
    drop(taken);
    assert_eq!((engine.ledger().live, other.ledger().live), (0, 1));
    assert!(engine.cancel_many(&[]).is_empty());
    let ids: Vec<_> = (0..1_000).map(|_| engine.after(SECOND, "many")).collect();
    assert!(engine.cancel_many(&ids).iter().all(|(_, answer)| answer.is_cancelled()));
}
