//! Promises 3, 4, 7, 10, 11 and 12 for timers whose holder sets their next
//! deadline. A chain is such a timer: one id, one name, any number of firings.

use super::support::take;
use super::*;
use std::sync::mpsc;
use tickwheel::{
    Cancel, CloseReason, Firing, Ledger, MissedTicks, NotChanged, Refusal, TaskEngine, Time, Timer,
};

const CHAIN: &str = "chain";

/// An engine with a chain whose first firing is due at 1 ms.
fn chain() -> (Engine<u32>, VirtualClock<u32>, TimerId) {
    let (engine, clock) = virtual_engine();
    let timer = Timer::after(MS, 7).rearmable().named(CHAIN).reported();
    let id = engine.schedule(timer).unwrap();
    (engine, clock, id)
}

/// Moves the clock to the chain's next firing, and takes it.
fn take_next(engine: &Engine<u32>, clock: &VirtualClock<u32>) -> Expired<u32> {
    clock.advance(MS);
    engine.queue(0).try_recv().unwrap()
}

/// A task engine with one worker, on a clock that the test moves.
fn tasks() -> (TaskEngine, VirtualClock<tickwheel::Task>) {
    TaskEngine::builder().start_virtual().unwrap()
}

fn completed_and_cancelled(ledger: Ledger) -> (u64, u64) {
    assert!(ledger.is_balanced() && ledger.live == 0, "{ledger:?}");
    (ledger.completed, ledger.cancelled)
}

#[test]
fn promise_03_a_chain_is_one_timer_with_one_ending() {
    let (engine, clock, id) = chain();
    for number in 1..=5 {
        let due = take_next(&engine, &clock);
        assert_eq!((due.id(), due.number(), due.queue()), (id, number, 0));
        assert_eq!((due.tick().0, *due.payload()), (number, 7));
        assert_eq!(due.lateness(), Duration::ZERO);
        assert_eq!(engine.ledger().live, 1);
        if number < 5 {
            due.rearm(MS).unwrap();
        }
    }
    let ledger = engine.ledger();
    assert_eq!(
        (ledger.accepted, completed_and_cancelled(ledger)),
        (1, (1, 0))
    );
    let report = engine.reports().try_recv().unwrap();
    assert_eq!((report.id, report.firings), (id, 5));
    assert_eq!(report.reason, CloseReason::Completed);
}

#[test]
fn promise_03_a_chain_whose_payload_is_kept_is_completed() {
    let (engine, clock, _) = chain();
    take_next(&engine, &clock).rearm(MS).unwrap();
    assert_eq!(take_next(&engine, &clock).into_payload(), 7);
    assert_eq!(completed_and_cancelled(engine.ledger()), (1, 0));
}

#[test]
fn promise_03_a_panic_fails_a_chain_that_is_not_re_armed() {
    let (engine, clock, _) = chain();
    take_next(&engine, &clock).rearm(MS).unwrap();
    let due = take_next(&engine, &clock);
    let worker = std::thread::spawn(move || {
        let _due = due;
        panic!("on purpose");
    });
    worker.join().unwrap_err();
    assert_eq!(engine.ledger().failed, 1);
    assert_eq!(completed_and_cancelled(engine.ledger()), (0, 0));
}

#[test]
fn promise_03_a_plain_one_shot_cannot_be_re_armed() {
    let (engine, clock) = virtual_engine();
    engine.schedule(Timer::after(MS, 7)).unwrap();
    let due = take_next(&engine, &clock);
    assert!(!due.is_cancelled());
    let (why, due) = due.rearm(MS).unwrap_err();
    assert_eq!(why, NotChanged::NotRearmable);
    assert!(!due.is_cancelled());
    assert_eq!((due.number(), due.into_payload()), (1, 7));
    assert_eq!(completed_and_cancelled(engine.ledger()), (1, 0));
}

/// Cancels the chain by its id or by its name. Returns whether the answer
/// says that the chain was cancelled before a worker had it.
fn cancel(engine: &Engine<u32>, id: TimerId, by_name: bool) -> bool {
    if by_name {
        return engine.cancel_by_name(CHAIN, None).ids.len() == 1;
    }
    let answer = engine.cancel(id);
    assert!(matches!(answer, Cancel::Cancelled(7) | Cancel::Running));
    answer.is_cancelled()
}

#[test]
fn promise_04_a_cancel_reaches_a_chain_that_waits() {
    for by_name in [false, true] {
        for expired in [false, true] {
            let (engine, clock, id) = chain();
            take_next(&engine, &clock).rearm(MS).unwrap();
            clock.advance(if expired { MS } else { Duration::ZERO });
            assert!(cancel(&engine, id, by_name));
            clock.advance(SECOND);
            assert!(payloads(&engine).is_empty());
            assert_eq!(completed_and_cancelled(engine.ledger()), (0, 1));
        }
    }
}

#[test]
fn promise_04_a_cancel_reaches_a_chain_that_a_worker_holds() {
    for by_name in [false, true] {
        let (engine, clock, id) = chain();
        take_next(&engine, &clock).rearm(MS).unwrap();
        let due = take_next(&engine, &clock);
        assert!(!due.is_cancelled());
        assert!(!cancel(&engine, id, by_name));
        assert!(due.is_cancelled());
        let (why, due) = due.rearm(MS).unwrap_err();
        assert_eq!(why, NotChanged::Cancelled);
        assert_eq!((due.number(), due.payload()), (2, &7));
        drop(due);
        clock.advance(SECOND);
        assert!(payloads(&engine).is_empty());
        assert_eq!(completed_and_cancelled(engine.ledger()), (0, 1));
        assert_eq!(engine.cancel_by_name(CHAIN, None).ids.len(), 0);
    }
}

#[test]
fn promise_04_a_cancel_of_all_reaches_a_chain_that_a_worker_holds() {
    let (engine, clock, _) = chain();
    let due = take_next(&engine, &clock);
    for cancelled in [engine.cancel_by_name(CHAIN, 1), engine.cancel_all()] {
        assert_eq!((cancelled.ids.len(), cancelled.running), (0, 1));
    }
    assert!(due.is_cancelled());
    drop(due.rearm(MS).unwrap_err());
    assert_eq!(completed_and_cancelled(engine.ledger()), (0, 1));
    let report = engine.reports().try_recv().unwrap();
    assert_eq!(report.reason, CloseReason::Cancelled);
}

/// What happens inside a task that can reach its own engine.
type Step = fn(&TaskEngine, &Firing);

/// Runs a chain of tasks whose first firing does `step`, and returns the engine
/// and the number of firings.
fn run_chain(step: Step) -> (TaskEngine, usize) {
    let (timers, firings) = run_panicking_chain(step);
    let panics = timers.engine().snapshot().panics;
    assert_eq!(panics, 0, "an assertion of a task fails no test by itself");
    (timers, firings)
}

fn run_panicking_chain(step: Step) -> (TaskEngine, usize) {
    let (timers, clock) = tasks();
    let inner = timers.clone();
    let (tell, told) = mpsc::channel();
    let task = move |firing: Firing| {
        tell.send(()).unwrap();
        step(&inner, &firing);
    };
    timers.run(Timer::after(MS, task).named(CHAIN)).unwrap();
    clock.run_until(Time::START + 9 * MS);
    (timers, told.try_iter().count())
}

#[test]
fn promise_04_a_cancel_voids_the_next_firing_of_a_running_task() {
    let by_id: Step = |timers, firing| {
        firing.rearm(MS).unwrap();
        assert_eq!(timers.cancel(firing.id()), Cancel::Running);
        assert_eq!(timers.cancel_by_name(CHAIN, None), 0, "has no name");
        assert_eq!(firing.rearm(MS), Err(NotChanged::Cancelled));
    };
    let by_name: Step = |timers, firing| {
        firing.rearm(MS).unwrap();
        assert_eq!(timers.cancel_by_name(CHAIN, None), 1);
        assert_eq!(timers.cancel(firing.id()), Cancel::Running);
    };
    let many: Step = |timers, firing| {
        firing.rearm(MS).unwrap();
        let answers = timers.engine().cancel_many(&[firing.id()]);
        assert!(matches!(answers[..], [Cancel::Running]));
        assert!(firing.is_cancelled());
    };
    for step in [by_id, by_name, many] {
        let (timers, firings) = run_chain(step);
        assert_eq!(firings, 1);
        assert_eq!(completed_and_cancelled(timers.ledger()), (0, 1));
    }
}

#[test]
fn promise_04_a_cancelled_task_cannot_be_re_armed() {
    let by_id: Step = |timers, firing| {
        assert!(!firing.is_cancelled());
        assert_eq!(timers.cancel(firing.id()), Cancel::Running);
        assert!(firing.is_cancelled());
        assert_eq!(firing.rearm(MS), Err(NotChanged::Cancelled));
    };
    let by_name: Step = |timers, firing| {
        assert_eq!(
            timers.cancel_by_name(CHAIN, None),
            0,
            "it may end by itself"
        );
        assert!(firing.is_cancelled());
        assert_eq!(firing.rearm(MS), Err(NotChanged::Cancelled));
    };
    for step in [by_id, by_name] {
        let (timers, firings) = run_chain(step);
        assert_eq!(firings, 1);
        assert_eq!(completed_and_cancelled(timers.ledger()), (0, 1));
    }
}

#[test]
fn promise_04_a_notified_chain_learns_of_its_cancel_once() {
    let (timers, clock) = tasks();
    let inner = timers.clone();
    let (tell, told) = mpsc::channel();
    let task = move |firing: Firing| {
        tell.send((firing.number(), firing.outcome())).unwrap();
        if firing.outcome() == CloseReason::Completed {
            firing.rearm(MS).unwrap();
            let _ = (firing.number() == 2).then(|| inner.cancel(firing.id()));
        } else {
            assert!(firing.is_cancelled());
            assert_eq!(firing.rearm(MS), Err(NotChanged::Cancelled));
        }
    };
    timers.run(Timer::after(MS, task).notified()).unwrap();
    clock.run_until(Time::START + 9 * MS);
    let (ran, was_cancelled) = (CloseReason::Completed, CloseReason::Cancelled);
    let told: Vec<_> = told.try_iter().collect();
    assert_eq!(told, [(1, ran), (2, ran), (2, was_cancelled)]);
    assert_eq!(completed_and_cancelled(timers.ledger()), (0, 1));
}

#[test]
fn promise_05_a_firing_whose_task_has_returned_changes_nothing() {
    let (timers, clock) = tasks();
    let (tell, told) = mpsc::channel();
    let stale = mpsc::sync_channel::<Firing>(1);
    let (keep, kept) = stale;
    let task = move |firing: Firing| {
        if let Ok(stale) = kept.try_recv() {
            // The next firing runs, and the stale one does not speak for it.
            tell.send((stale.rearm(MS), stale.is_cancelled())).unwrap();
            assert!(firing.rearm(SECOND).is_ok());
        } else {
            keep.send(firing.clone()).unwrap();
            firing.rearm(MS).unwrap();
        }
        tell.send((Ok(()), false)).unwrap();
    };
    let id = timers.run(Timer::after(MS, task)).unwrap();
    clock.run_until(Time::START + 9 * MS);
    let refused = (Err(NotChanged::Gone), false);
    let told: Vec<_> = told.try_iter().collect();
    assert_eq!(told, [(Ok(()), false), refused, (Ok(()), false)]);
    assert_eq!(
        timers.engine().deadline(id),
        Some(Time::START + SECOND + 2 * MS)
    );
}

#[test]
fn promise_12_a_firing_that_is_kept_keeps_no_engine_running() {
    let (timers, clock) = tasks();
    let (tell, told) = mpsc::channel();
    timers
        .run_every(MS, move |firing| tell.send(firing).unwrap())
        .unwrap();
    clock.advance(MS);
    let firing = told.recv().unwrap();
    let queue = timers.engine().queue(0);
    drop(timers);
    assert!(queue.is_shut_down());
    // The worker may still be about to return it.
    assert!(firing.rearm(MS).is_err());
    assert_eq!(firing.number(), 1);
}

#[test]
fn promise_07_a_re_armed_repeat_has_a_new_phase() {
    let (engine, clock) = virtual_engine();
    let beat = Timer::every(3 * MS, 7).times(4);
    engine.schedule(beat).unwrap();
    clock.advance(3 * MS);
    let due = engine.queue(0).try_recv().unwrap();
    due.rearm(Time::START + 10 * MS).unwrap();
    let mut seen = Vec::new();
    for _ in 0..30 {
        clock.advance(MS);
        seen.extend(take(&engine, 0));
    }
    assert_eq!(seen, [(10, 7), (13, 7), (16, 7)], "four times in all");
    assert_eq!(completed_and_cancelled(engine.ledger()), (1, 0));
}

#[test]
fn promise_07_a_re_armed_repeat_that_is_late_follows_its_policy() {
    // Re-armed for tick 4, seen at tick 20: every multiple, the next one, or a period on.
    let policies = [
        (MissedTicks::CatchUp, vec![4, 7, 10, 13, 16, 19, 22]),
        (MissedTicks::Skip, vec![4, 22]),
        (MissedTicks::Delay, vec![4, 23]),
    ];
    for (missed, due) in policies {
        let (engine, clock) = virtual_engine();
        let beat = Timer::every(3 * MS, 7).missed(missed);
        engine.schedule(beat).unwrap();
        clock.advance(3 * MS);
        let first = engine.queue(0).try_recv().unwrap();
        first.rearm(MS).unwrap();
        clock.advance(17 * MS);
        let mut seen = take(&engine, 0);
        clock.advance(3 * MS);
        seen.extend(take(&engine, 0));
        let seen: Vec<_> = seen.into_iter().map(|(tick, _)| tick).collect();
        assert_eq!(seen, due, "{missed:?}");
    }
}

/// Time stands still for a paused timer: what was left of the new delay when both the
/// pause and the re-arming had been said is left after the resumption.
#[test]
fn promise_07_a_re_armed_timer_can_be_paused() {
    for pause_first in [false, true] {
        let (engine, clock, id) = chain();
        let due = take_next(&engine, &clock);
        if pause_first {
            engine.pause(id).unwrap();
            clock.advance(SECOND);
        }
        due.rearm(3 * MS).unwrap();
        if !pause_first {
            clock.advance(2 * MS);
            engine.pause(id).unwrap();
        }
        clock.advance(SECOND);
        assert!(payloads(&engine).is_empty());
        engine.resume(id).unwrap();
        let left = if pause_first { 3 } else { 1 };
        clock.advance((left - 1) * MS);
        assert!(payloads(&engine).is_empty());
        assert_eq!(take_next(&engine, &clock).number(), 2);
    }
}

#[test]
fn promise_07_a_pause_of_a_running_task_moves_its_next_firing() {
    let (timers, clock) = tasks();
    let (tell, told) = mpsc::channel();
    let (go, goes) = mpsc::channel();
    let task = move |firing: Firing| {
        if firing.number() == 1 {
            firing.rearm(5 * MS).unwrap();
        }
        tell.send(firing.tick().0).unwrap();
        goes.recv().unwrap();
    };
    let id = timers.run(Timer::after(MS, task)).unwrap();
    clock.advance(MS);
    assert_eq!(told.recv(), Ok(1));
    timers.engine().pause(id).unwrap();
    clock.advance(10 * MS);
    timers.engine().resume(id).unwrap();
    go.send(()).unwrap();
    go.send(()).unwrap();
    clock.run_until(Time::START + SECOND);
    assert_eq!(told.recv(), Ok(16));
    assert_eq!(completed_and_cancelled(timers.ledger()), (1, 0));
}

#[test]
fn promise_07_a_count_that_is_used_up_stays_so() {
    let (engine, clock) = virtual_engine();
    engine.schedule(Timer::every(MS, 7).times(2)).unwrap();
    take_next(&engine, &clock).rearm(MS).unwrap();
    let last = take_next(&engine, &clock);
    assert_eq!(last.number(), 2);
    let (why, last) = last.rearm(MS).unwrap_err();
    assert_eq!(why, NotChanged::UsedUp);
    assert!(!last.is_cancelled());
    drop(last);
    assert_eq!(completed_and_cancelled(engine.ledger()), (1, 0));
}

#[test]
fn promise_07_the_last_word_of_a_task_counts() {
    let (timers, clock) = tasks();
    let (tell, told) = mpsc::channel();
    let task = move |firing: Firing| {
        tell.send(firing.tick().0).unwrap();
        if firing.number() == 1 {
            firing.rearm(Duration::MAX).unwrap();
            firing.rearm(Time::START + 5 * MS).unwrap();
        }
    };
    timers.run(Timer::after(MS, task)).unwrap();
    clock.run_until(Time::START + 9 * MS);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [1, 5]);
    assert_eq!(completed_and_cancelled(timers.ledger()), (1, 0));
}

#[test]
fn promise_09_a_chain_that_is_due_at_once_goes_behind_what_has_expired() {
    let (engine, clock) = virtual_engine();
    engine.schedule(Timer::after(MS, 1).rearmable()).unwrap();
    engine.schedule(Timer::after(MS, 2)).unwrap();
    let first = take_next(&engine, &clock);
    first.rearm(Duration::ZERO).unwrap();
    clock.advance(Duration::ZERO);
    assert_eq!(take(&engine, 0), [(1, 2), (1, 1)]);
}

#[test]
fn promise_10_a_panic_after_rearm_leaves_the_chain_going() {
    let step: Step = |_, firing| {
        if firing.number() < 3 {
            firing.rearm(MS).unwrap();
            panic!("on purpose");
        }
    };
    let (timers, firings) = run_panicking_chain(step);
    assert_eq!((firings, timers.engine().snapshot().panics), (3, 2));
    assert_eq!(completed_and_cancelled(timers.ledger()), (1, 0));
}

#[test]
fn promise_11_a_chain_takes_one_place() {
    let builder = Engine::builder().shards(1).max_timers(1);
    let (engine, clock) = builder.start_virtual().unwrap();
    engine.schedule(Timer::after(MS, 7).rearmable()).unwrap();
    for _ in 0..3 {
        take_next(&engine, &clock).rearm(MS).unwrap();
        let refused = engine.schedule(Timer::after(MS, 8)).unwrap_err();
        assert_eq!(refused.reason(), Refusal::Full);
    }
    drop(take_next(&engine, &clock));
    engine.schedule(Timer::after(MS, 8)).unwrap();
}

#[test]
fn promise_11_a_re_armed_firing_gives_its_permit_back() {
    let builder = Engine::builder().shards(1).queue_bound(1);
    let (engine, clock) = builder.start_virtual().unwrap();
    engine.schedule(Timer::after(MS, 7).rearmable()).unwrap();
    for _ in 0..3 {
        take_next(&engine, &clock).rearm(MS).unwrap();
    }
}

#[test]
fn promise_12_a_held_chain_ends_as_shut_down_if_it_would_go_on() {
    let (engine, clock, _) = chain();
    let due = take_next(&engine, &clock);
    assert_eq!(engine.shutdown().len(), 0);
    assert!(due.is_cancelled());
    let (why, due) = due.rearm(MS).unwrap_err();
    assert_eq!((why, due.into_payload()), (NotChanged::ShutDown, 7));
    assert_eq!(completed_and_cancelled(engine.ledger()), (0, 0));
    let report = engine.reports().try_recv().unwrap();
    assert_eq!(report.reason, CloseReason::ShutDown);
}

#[test]
fn promise_12_a_re_armed_task_is_shut_down() {
    let step: Step = |timers, firing| {
        firing.rearm(MS).unwrap();
        let closed = timers.shutdown();
        assert_eq!(closed.len(), 1);
        assert_eq!((closed[0].id, closed[0].firings), (firing.id(), 1));
        assert!(closed[0].payload.is_none(), "it is running");
        assert!(firing.is_cancelled());
        assert_eq!(firing.rearm(MS), Err(NotChanged::ShutDown));
    };
    let (timers, firings) = run_chain(step);
    assert_eq!((firings, timers.ledger().shut_down), (1, 1));
    assert_eq!(completed_and_cancelled(timers.ledger()), (0, 0));
}

#[test]
fn promise_12_a_task_that_is_not_re_armed_completes_after_a_shutdown() {
    let step: Step = |timers, firing| {
        assert_eq!(timers.shutdown().len(), 0);
        assert!(firing.is_cancelled());
    };
    let (timers, firings) = run_chain(step);
    assert_eq!(firings, 1);
    timers.join();
    assert_eq!(completed_and_cancelled(timers.ledger()), (1, 0));
}

/// A task that was shut down in what might have been its last run learns of it.
#[test]
fn promise_12_a_notified_chain_learns_of_a_shutdown_once() {
    let (timers, clock) = tasks();
    let (tell, told) = mpsc::channel();
    let inner = timers.clone();
    let task = move |firing: Firing| {
        tell.send(firing.outcome()).unwrap();
        if firing.outcome() == CloseReason::Completed {
            inner.shutdown();
            let _ = firing.rearm(MS);
        }
    };
    timers.run(Timer::after(MS, task).notified()).unwrap();
    clock.run_until(Time::START + MS);
    timers.join();
    let outcomes: Vec<_> = told.try_iter().collect();
    assert_eq!(outcomes, [CloseReason::Completed, CloseReason::ShutDown]);
    assert_eq!(timers.ledger().shut_down, 1);
    assert!(timers.ledger().is_balanced());
}

#[test]
fn promise_15_a_chain_without_delay_holds_up_no_clock() {
    let (tasks, clock) = tasks();
    let (tell, told) = mpsc::channel();
    let again = move |firing: Firing| {
        tell.send(()).unwrap();
        firing.rearm(Duration::ZERO).unwrap();
    };
    tasks.run(Timer::after(Duration::ZERO, again)).unwrap();
    clock.run_until(tasks.now() + 2 * MS);
    assert!((1..=4_000).contains(&told.try_iter().count()));
    assert_eq!(tasks.shutdown().len(), 1);
}
