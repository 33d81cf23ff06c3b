//! Promises 3, 4, 5, 10 and 12 for timers whose holder sets their next deadline. A chain
//! is such a timer: one id, one name, any number of firings. Which firings may be
//! re-armed, and what phase a repeat has then, the oracle compares.

use super::*;

const CHAIN: &str = "chain";

/// An engine with a chain whose first firing is due at 1 ms.
fn chain() -> (Engine<u32>, VirtualClock, TimerId) {
    let (engine, clock) = virtual_engine();
    let id = engine.put(Timer::after(MS, 7).rearmable().named(CHAIN).reported());
    (engine, clock, id)
}

/// Moves the clock to the chain's next firing, and takes it.
fn take_next(engine: &Engine<u32>, clock: &VirtualClock) -> Expired<u32> {
    clock.advance(MS);
    engine.next()
}

/// Re-arms a firing, which is refused. Returns it.
fn refused(due: Expired<u32>, reason: Refusal) -> Expired<u32> {
    let refused = due.rearm(MS).unwrap_err();
    assert_eq!(refused.reason(), reason);
    refused.into_inner()
}

#[test]
fn promise_03_a_chain_is_one_timer_with_one_ending() {
    let (engine, clock, id) = chain();
    for number in 1..=5 {
        let due = take_next(&engine, &clock);
        assert_eq!((due.id(), due.number(), due.queue()), (id, number, 0));
        assert_eq!((due.tick().0, *due.payload()), (number, 7));
        assert_eq!((due.lateness(), due.name()), (Duration::ZERO, Some(CHAIN)));
        assert_eq!(engine.ledger().live, 1);
        if number < 5 {
            due.rearm(MS).unwrap();
        }
    }
    assert_eq!(ends(&engine), [0, 1, 0, 0, 0]);
    let report = engine.reports().try_recv().unwrap();
    assert_eq!((report.id, report.firings), (id, 5));
    assert_eq!(report.reason, CloseReason::Completed);
}

#[test]
fn promise_03_a_plain_one_shot_cannot_be_re_armed() {
    let (engine, clock) = virtual_engine();
    engine.after(MS, 7);
    let due = refused(take_next(&engine, &clock), Refusal::NotRearmable);
    assert!(!due.is_cancelled());
    assert_eq!((due.number(), due.remaining(), due.into_payload()), (1, Some(0), 7));
    assert_eq!(ends(&engine), [0, 1, 0, 0, 0]);
}

#[test]
fn promise_04_a_cancel_reaches_a_chain_that_a_worker_holds() {
    let cancels: [fn(&Engine<u32>, TimerId) -> bool; 4] = [
        |engine, id| engine.cancel(id) == Cancel::Running,
        |engine, id| engine.cancel_many(&[id]) == [(id, Cancel::Running)],
        |engine, id| engine.cancel_by_name(CHAIN, 1) == [(id, Cancel::Running)],
        |engine, id| engine.cancel_all() == [(id, Cancel::Running)],
    ];
    for cancel in cancels {
        let (engine, clock, id) = chain();
        take_next(&engine, &clock).rearm(MS).unwrap();
        let due = take_next(&engine, &clock);
        assert!(!due.is_cancelled());
        assert!(cancel(&engine, id) && due.is_cancelled());
        let due = refused(due, Refusal::Cancelled);
        assert_eq!((due.number(), due.payload()), (2, &7));
        drop(due);
        clock.advance(SECOND);
        assert!(engine.queue(0).is_empty());
        assert_eq!(ends(&engine), [0, 0, 1, 0, 0]);
        let report = engine.reports().try_recv().unwrap();
        assert_eq!(report.reason, CloseReason::Cancelled);
    }
    // Its last firing, too, which completes it all the same.
    let (engine, clock) = virtual_engine();
    let id = engine.put(Timer::every(MS, 7).times(1));
    let due = take_next(&engine, &clock);
    assert_eq!(engine.cancel(id), Cancel::Running);
    drop(refused(due, Refusal::Cancelled));
    assert_eq!(ends(&engine), [0, 1, 0, 0, 0]);
}

#[test]
fn promise_07_a_firing_says_how_many_follow_now() {
    let ((tasks, clock), told) = (virtual_tasks(), told());
    let beat = || {
        let timers = tasks.downgrade();
        told.of(move |firing| {
            let at_first = firing.remaining();
            firing.rearm(MS).unwrap();
            let re_armed = firing.remaining();
            timers.upgrade().unwrap().cancel(firing.id());
            [at_first, re_armed, firing.remaining()].map(|left| left.unwrap_or(u64::MAX))
        })
    };
    tasks.run(Timer::after(MS, beat())).unwrap();
    tasks.run(Timer::every(MS, beat())).unwrap();
    tasks.run(Timer::every(MS, beat()).times(4)).unwrap();
    clock.run_until(at(9));
    assert_eq!(told.all(), [[0, 1, 0], [u64::MAX, u64::MAX, 0], [3, 3, 0]]);
}

#[test]
fn promise_04_a_cancel_voids_the_next_firing_of_a_running_task() {
    let cancels: [fn(&TaskEngine, TimerId) -> bool; 3] = [
        |timers, id| timers.cancel(id) == Cancel::Running,
        |timers, id| timers.cancel_by_name(CHAIN, None) == [(id, Cancel::Running)],
        |timers, id| matches!(timers.cancel_many(&[id])[..], [(_, Cancel::Running)]),
    ];
    // Nor can one be re-armed that was cancelled before.
    for cancel in cancels {
        for (before, again) in [(false, true), (true, true), (false, false)] {
            let (timers, clock) = virtual_tasks();
            let (inner, told) = (timers.clone(), told());
            let task = told.of(move |firing| {
                assert!(!firing.is_cancelled());
                assert!(before || firing.rearm(MS).is_ok());
                assert!(cancel(&inner, firing.id()));
                let refused = !again || firing.rearm(MS) == Err(Refusal::Cancelled);
                (firing.is_cancelled(), refused)
            });
            let timer = Timer::after(MS, task).named(CHAIN).reported();
            // If it knows the answer, it is not notified.
            timers.run(if again { timer.notified() } else { timer }).unwrap();
            clock.run_until(at(9));
            assert_eq!(told.all(), [(true, true)]);
            assert_eq!(timers.snapshot().panics, 0);
            assert_eq!(ends(&timers), [0, 0, 1, 0, 0]);
            let report = timers.reports().try_recv().unwrap();
            assert_eq!(report.deadline, at(if before { 1 } else { 2 }));
        }
    }
}

#[test]
fn promise_10_a_chain_that_was_re_armed_is_told_with_its_next_deadline() {
    let ((tasks, clock), told) = (virtual_tasks(), told());
    let timers = tasks.downgrade();
    let task = told.of(move |firing| {
        firing.rearm(SECOND).unwrap();
        let timers = timers.upgrade().unwrap();
        let found = timers.find(firing.id()).map(|live| live.deadline);
        assert_eq!(timers.deadline(firing.id()), found);
        let closed = timers.shutdown().pop().map(|closed| closed.deadline);
        assert_eq!(firing.rearm(MS), Err(Refusal::ShutDown));
        (found, closed)
    });
    tasks.run(Timer::after(MS, task).tolerance(30 * MS).reported()).unwrap();
    clock.run_until(at(9));
    // 1,001 would do, but within the tolerance others may be due, too.
    assert_eq!(told.all(), [(Some(at(1_024)), Some(at(1_024)))]);
    assert_eq!(tasks.reports().try_recv().unwrap().deadline, at(1_024));
}

#[test]
fn promise_05_a_firing_whose_task_has_returned_changes_nothing() {
    let (timers, clock) = virtual_tasks();
    let (told, (keep, kept)) = (told(), channel::<Firing>());
    let task = told.of(move |firing| match kept.try_recv() {
        Ok(stale) => {
            // The next firing runs, and the stale one does not speak for it.
            let answers = (stale.rearm(MS), stale.is_cancelled());
            firing.rearm(SECOND).unwrap();
            answers
        }
        Err(_) => {
            keep.send(firing.clone()).unwrap();
            (firing.rearm(MS), true)
        }
    });
    let id = timers.run(Timer::after(MS, task)).unwrap();
    clock.run_until(at(9));
    assert_eq!(told.all(), [(Ok(()), true), (Err(Refusal::Gone), false)]);
    assert_eq!(timers.deadline(id), Some(at(1_002)));
}

#[test]
fn promise_12_a_firing_that_is_kept_keeps_no_engine_running() {
    let (timers, clock) = virtual_tasks();
    let told = told();
    timers.run_every(MS, told.of(Firing::clone)).unwrap();
    clock.advance(MS);
    let firing = told.next();
    let queue = timers.queue(0);
    drop(timers);
    assert_eq!(queue.try_recv().err(), Some(RecvError::ShutDown));
    // The worker may still be about to return it.
    assert!(firing.rearm(MS).is_err());
    assert_eq!(firing.number(), 1);
}

#[test]
fn promise_10_a_panic_after_rearm_leaves_the_chain_going() {
    let (timers, clock) = virtual_tasks();
    let told = told();
    let task = told.of(|firing| {
        let is_last = firing.number() == 3;
        assert!(is_last || firing.rearm(MS).is_err(), "on purpose");
    });
    timers.run(Timer::after(MS, task)).unwrap();
    clock.run_until(at(9));
    assert_eq!(told.all().len(), 1);
    assert_eq!(timers.snapshot().panics, 2);
    assert_eq!(ends(&timers), [0, 1, 0, 0, 0]);
}

#[test]
fn promise_12_a_held_chain_ends_as_shut_down_if_it_would_go_on() {
    let (engine, clock, _) = chain();
    let due = take_next(&engine, &clock);
    let end = engine.current_tick();
    assert_eq!(engine.shutdown().len(), 0);
    clock.advance(MS);
    assert!(due.is_cancelled());
    let due = refused(due, Refusal::ShutDown);
    assert_eq!(due.into_payload(), 7);
    assert_eq!(ends(&engine), [0, 0, 0, 1, 0]);
    let report = engine.reports().try_recv().unwrap();
    assert_eq!((report.reason, report.tick), (CloseReason::ShutDown, end));

    // A task that is running, and may or may not have re-armed itself.
    for (rearms, notified) in [(false, false), (true, false), (false, true), (true, true)] {
        let (timers, clock) = virtual_tasks();
        let (inner, told) = (timers.clone(), told());
        let task = told.of(move |firing| {
            assert!(!rearms || firing.rearm(MS).is_ok());
            let closed = inner.shutdown();
            let mine = |it: &Closed<Task>| it.id == firing.id() && it.payload.is_none();
            assert!(closed.iter().all(mine));
            assert!(firing.is_cancelled());
            assert!(!rearms || firing.rearm(MS) == Err(Refusal::ShutDown));
            closed.len()
        });
        let timer = Timer::after(MS, task);
        timers.run(if notified { timer.notified() } else { timer }).unwrap();
        clock.run_until(at(1));
        timers.join();
        assert_eq!(told.all(), [usize::from(rearms)]);
        let (completed, shut_down) = (u64::from(!rearms), u64::from(rearms));
        assert_eq!(ends(&timers), [0, completed, 0, shut_down, 0]);
    }
}
