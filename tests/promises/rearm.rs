//! Promises 3, 4, 5, 7, 10, 11 and 12 for timers whose holder sets their next
//! deadline. A chain is such a timer: one id, one name, any number of firings.

use super::*;

const CHAIN: &str = "chain";

/// An engine with a chain whose first firing is due at 1 ms.
fn chain() -> (Engine<u32>, VirtualClock<u32>, TimerId) {
    let (engine, clock) = virtual_engine();
    let id = engine.put(Timer::after(MS, 7).rearmable().named(CHAIN).reported());
    (engine, clock, id)
}

/// Moves the clock to the chain's next firing, and takes it.
fn take_next(engine: &Engine<u32>, clock: &VirtualClock<u32>) -> Expired<u32> {
    clock.advance(MS);
    engine.next()
}

/// Re-arms a firing, which is refused. Returns it.
fn refused(due: Expired<u32>, reason: NotChanged) -> Expired<u32> {
    let (why, due) = due.rearm(MS).unwrap_err();
    assert_eq!(why, reason);
    due
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
    let due = refused(take_next(&engine, &clock), NotChanged::NotRearmable);
    assert!(!due.is_cancelled());
    assert_eq!((due.number(), due.into_payload()), (1, 7));
    assert_eq!(ends(&engine), [0, 1, 0, 0, 0]);
}

#[test]
fn promise_04_a_cancel_reaches_a_chain_that_a_worker_holds() {
    let cancels: [fn(&Engine<u32>, TimerId); 4] = [
        |engine, id| assert_eq!(engine.cancel(id), Cancel::Running),
        |engine, id| assert_eq!(engine.cancel_many(&[id]), [Cancel::Running]),
        |engine, _| {
            let cancelled = engine.cancel_by_name(CHAIN, 1);
            assert_eq!((cancelled.ids.len(), cancelled.running), (0, 1));
        },
        |engine, _| {
            let cancelled = engine.cancel_all();
            assert_eq!((cancelled.ids.len(), cancelled.running), (0, 1));
        },
    ];
    for cancel in cancels {
        let (engine, clock, id) = chain();
        take_next(&engine, &clock).rearm(MS).unwrap();
        let due = take_next(&engine, &clock);
        assert!(!due.is_cancelled());
        cancel(&engine, id);
        assert!(due.is_cancelled());
        let due = refused(due, NotChanged::Cancelled);
        assert_eq!((due.number(), due.payload()), (2, &7));
        drop(due);
        clock.advance(SECOND);
        assert!(engine.queue(0).is_empty());
        assert_eq!(ends(&engine), [0, 0, 1, 0, 0]);
        assert_eq!(engine.cancel_by_name(CHAIN, None).ids.len(), 0);
        let report = engine.reports().try_recv().unwrap();
        assert_eq!(report.reason, CloseReason::Cancelled);
    }
}

/// What happens inside a task that can reach its own engine.
type Step = fn(&TaskEngine, &Firing);

#[test]
fn promise_04_a_cancel_voids_the_next_firing_of_a_running_task() {
    let steps: [Step; 5] = [
        |timers, firing| {
            firing.rearm(MS).unwrap();
            assert_eq!(timers.cancel(firing.id()), Cancel::Running);
            assert_eq!(timers.cancel_by_name(CHAIN, None), 0, "has no name");
        },
        |timers, firing| {
            firing.rearm(MS).unwrap();
            assert_eq!(timers.cancel_by_name(CHAIN, None), 1);
            assert_eq!(timers.cancel(firing.id()), Cancel::Running);
        },
        |timers, firing| {
            firing.rearm(MS).unwrap();
            let answers = timers.engine().cancel_many(&[firing.id()]);
            assert!(matches!(answers[..], [Cancel::Running]));
        },
        // Nor can one be re-armed that was cancelled before.
        |timers, firing| {
            assert!(!firing.is_cancelled());
            assert_eq!(timers.cancel(firing.id()), Cancel::Running);
        },
        |timers, firing| {
            let cancelled = timers.cancel_by_name(CHAIN, None);
            assert_eq!((cancelled, firing.number()), (0, 1), "it may end by itself");
        },
    ];
    for step in steps {
        let (timers, clock) = virtual_tasks();
        let (inner, told) = (timers.clone(), told());
        let task = told.of(move |firing| {
            step(&inner, firing);
            (firing.is_cancelled(), firing.rearm(MS))
        });
        timers.run(Timer::after(MS, task).named(CHAIN)).unwrap();
        clock.run_until(at(9));
        assert_eq!(told.all(), [(true, Err(NotChanged::Cancelled))]);
        assert_eq!(ends(timers.engine()), [0, 0, 1, 0, 0]);
    }
}

/// A task that is cancelled after it re-armed itself, or shut down in what might have been
/// its last run, learns of it.
#[test]
fn promise_04_a_notified_chain_learns_of_its_end_once() {
    let cancel: Step = |timers, firing| {
        firing.rearm(MS).unwrap();
        if firing.number() == 2 {
            assert_eq!(timers.cancel(firing.id()), Cancel::Running);
        }
    };
    let shut_down: Step = |timers, firing| {
        timers.shutdown();
        let _ = firing.rearm(MS);
    };
    let ran = CloseReason::Completed;
    let cancelled = (
        cancel,
        vec![(1, ran), (2, ran), (2, CloseReason::Cancelled)],
    );
    let shut_down = (shut_down, vec![(1, ran), (1, CloseReason::ShutDown)]);
    for (step, expected) in [cancelled, shut_down] {
        let (timers, clock) = virtual_tasks();
        let (inner, told) = (timers.clone(), told());
        let task = told.of(move |firing| {
            match firing.outcome() {
                CloseReason::Completed => step(&inner, firing),
                _ => assert!(firing.is_cancelled() && firing.rearm(MS).is_err()),
            }
            (firing.number(), firing.outcome())
        });
        timers.run(Timer::after(MS, task).notified()).unwrap();
        clock.run_until(at(9));
        timers.shutdown();
        timers.join();
        assert_eq!(told.all(), expected);
        let [_, _, cancelled, shut_down, _] = ends(timers.engine());
        assert_eq!(cancelled + shut_down, 1);
    }
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
    assert_eq!(told.all(), [(Ok(()), true), (Err(NotChanged::Gone), false)]);
    assert_eq!(timers.engine().deadline(id), Some(at(1_002)));
}

#[test]
fn promise_12_a_firing_that_is_kept_keeps_no_engine_running() {
    let (timers, clock) = virtual_tasks();
    let told = told();
    timers.run_every(MS, told.of(Firing::clone)).unwrap();
    clock.advance(MS);
    let firing = told.next();
    let queue = timers.engine().queue(0);
    drop(timers);
    assert!(queue.is_shut_down());
    // The worker may still be about to return it.
    assert!(firing.rearm(MS).is_err());
    assert_eq!(firing.number(), 1);
}

#[test]
fn promise_07_a_re_armed_repeat_has_a_new_phase() {
    // Re-armed for tick 4, seen then, or at tick 20: every multiple, the next one, or a
    // period on.
    for (missed, seen_at, due) in [
        (MissedTicks::CatchUp, 4, vec![4, 7, 10, 13, 16, 19, 22]),
        (MissedTicks::CatchUp, 20, vec![4, 7, 10, 13, 16, 19, 22]),
        (MissedTicks::Skip, 20, vec![4, 22]),
        (MissedTicks::Delay, 20, vec![4, 23]),
    ] {
        let (engine, clock) = virtual_engine();
        engine.put(Timer::every(3 * MS, 7).missed(missed).times(8));
        clock.advance(3 * MS);
        engine.next().rearm(MS).unwrap();
        let mut seen = Vec::new();
        for now in seen_at..=23 {
            clock.advance_to(at(now));
            seen.extend(take(&engine, 0).iter().map(|&(tick, _)| tick));
        }
        assert_eq!(seen, due, "{missed:?}");
        // Eight times in all.
        assert_eq!(engine.ledger().completed, u64::from(due.len() == 7));
    }
}

#[test]
fn promise_07_a_count_that_is_used_up_stays_so() {
    let (engine, clock) = virtual_engine();
    engine.put(Timer::every(MS, 7).times(2));
    take_next(&engine, &clock).rearm(MS).unwrap();
    let last = refused(take_next(&engine, &clock), NotChanged::UsedUp);
    assert_eq!((last.number(), last.is_cancelled()), (2, false));
    drop(last);
    assert_eq!(ends(&engine), [0, 1, 0, 0, 0]);
}

#[test]
fn promise_07_the_last_word_of_a_task_counts() {
    let (timers, clock) = virtual_tasks();
    let told = told();
    let task = told.of(|firing| {
        if firing.number() == 1 {
            firing.rearm(Duration::MAX).unwrap();
            firing.rearm(at(5)).unwrap();
        }
        firing.tick().0
    });
    timers.run(Timer::after(MS, task)).unwrap();
    clock.run_until(at(9));
    assert_eq!(told.all(), [1, 5]);
    assert_eq!(ends(timers.engine()), [0, 1, 0, 0, 0]);
}

#[test]
fn promise_10_a_panic_after_rearm_leaves_the_chain_going() {
    let (timers, clock) = virtual_tasks();
    let told = told();
    let task = told.of(|firing| {
        assert!(
            firing.number() == 3 || firing.rearm(MS).is_err(),
            "on purpose"
        );
        firing.number()
    });
    timers.run(Timer::after(MS, task)).unwrap();
    clock.run_until(at(9));
    assert_eq!(
        (told.all(), timers.engine().snapshot().panics),
        (vec![3], 2)
    );
    assert_eq!(ends(timers.engine()), [0, 1, 0, 0, 0]);
}

#[test]
fn promise_11_a_chain_takes_one_place_and_gives_its_permit_back() {
    let bounded = Engine::builder().shards(1).max_timers(1).queue_bound(1);
    let (engine, clock) = bounded.start_virtual().unwrap();
    engine.put(Timer::after(MS, 7).rearmable());
    for _ in 0..3 {
        take_next(&engine, &clock).rearm(MS).unwrap();
        let refused = engine.schedule(Timer::after(MS, 8)).unwrap_err();
        assert_eq!(refused.reason(), Refusal::Full);
    }
    drop(take_next(&engine, &clock));
    engine.after(MS, 8);
}

/// Runs a chain whose first firing does `step`, which shuts the engine down. Returns how
/// it ended.
fn shut_down_within(step: Step) -> [u64; 5] {
    let (timers, clock) = virtual_tasks();
    let (inner, told) = (timers.clone(), told());
    let task = told.of(move |firing| step(&inner, firing));
    timers.run(Timer::after(MS, task)).unwrap();
    clock.run_until(at(9));
    timers.join();
    assert_eq!(told.all().len(), 1, "it has panicked");
    ends(timers.engine())
}

#[test]
fn promise_12_a_held_chain_ends_as_shut_down_if_it_would_go_on() {
    let (engine, clock, _) = chain();
    let due = take_next(&engine, &clock);
    assert_eq!(engine.shutdown().len(), 0);
    assert!(due.is_cancelled());
    let due = refused(due, NotChanged::ShutDown);
    assert_eq!(due.into_payload(), 7);
    assert_eq!(ends(&engine), [0, 0, 0, 1, 0]);
    let report = engine.reports().try_recv().unwrap();
    assert_eq!(report.reason, CloseReason::ShutDown);

    let re_armed: Step = |timers, firing| {
        firing.rearm(MS).unwrap();
        let closed = timers.shutdown();
        assert_eq!(closed.len(), 1);
        assert_eq!((closed[0].id, closed[0].firings), (firing.id(), 1));
        assert!(closed[0].payload.is_none(), "it is running");
        assert!(firing.is_cancelled());
        assert_eq!(firing.rearm(MS), Err(NotChanged::ShutDown));
    };
    assert_eq!(shut_down_within(re_armed), [0, 0, 0, 1, 0]);
    // One that is not re-armed completes.
    let last: Step = |timers, firing| {
        assert_eq!(timers.shutdown().len(), 0);
        assert!(firing.is_cancelled());
    };
    assert_eq!(shut_down_within(last), [0, 1, 0, 0, 0]);
}
