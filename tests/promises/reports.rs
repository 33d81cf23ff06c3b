//! Promise 8: closed timers are reported on request.

use super::*;
use std::sync::mpsc;
use std::thread;
use tickwheel::wheel::Advance;
use tickwheel::{Cancel, CloseReason, RecvError, Refusal, TaskEngine, Time, Timer};

#[test]
fn promise_08_closed_timers_are_reported() {
    let (engine, clock) = virtual_engine();
    let once = engine
        .schedule(Timer::after(MS, "once").reported())
        .unwrap();
    let twice = Timer::every(2 * MS, "twice").times(2).queue(1).reported();
    let twice = engine.schedule(twice).unwrap();
    let cancelled = engine
        .schedule(Timer::after(SECOND, "cancelled").reported())
        .unwrap();
    let left = engine
        .schedule(Timer::after(SECOND, "left").reported())
        .unwrap();
    engine.schedule(Timer::after(MS, "unreported")).unwrap();
    let closed = engine.reports();
    assert_eq!(closed.try_recv(), Err(RecvError::Empty));

    clock.advance(MS);
    assert_eq!(payloads(&engine), ["once", "unreported"]);
    assert!(!closed.is_empty());
    let report = closed.recv().unwrap();
    assert_eq!(
        (report.id, report.queue, report.tick.0, report.firings),
        (once, 0, 1, 1)
    );
    assert_eq!(
        (report.reason, report.payload),
        (CloseReason::Completed, None)
    );

    for tick in [2, 4] {
        clock.advance_to(Time::START + tick * MS);
        assert!(closed.is_empty());
        assert_eq!(engine.queue(1).recv().unwrap().tick().0, u64::from(tick));
    }
    // The last firing is in both results, with the same tick.
    let report = closed.recv().unwrap();
    assert_eq!(
        (report.id, report.queue, report.tick.0, report.firings),
        (twice, 1, 4, 2)
    );
    assert_eq!(
        (report.reason, report.payload),
        (CloseReason::Completed, Some("twice"))
    );

    assert_eq!(engine.cancel(cancelled), Cancel::Cancelled("cancelled"));
    let report = closed.try_iter().next().unwrap();
    assert_eq!(
        (report.id, report.tick.0, report.firings),
        (cancelled, 4, 0)
    );
    assert_eq!(
        (report.reason, report.payload),
        (CloseReason::Cancelled, None)
    );

    let list = engine.shutdown();
    assert_eq!(
        (list.len(), list[0].id, list[0].payload),
        (1, left, Some("left"))
    );
    let mut rest = engine.reports();
    let report = rest.next().unwrap();
    assert_eq!(
        (report.id, report.reason, report.payload),
        (left, CloseReason::ShutDown, None)
    );
    assert_eq!(
        (rest.next(), closed.recv()),
        (None, Err(RecvError::ShutDown))
    );
}

#[test]
fn promise_08_cancelled_before_its_start_ends_at_its_start() {
    let (engine, clock) = virtual_engine();
    let unstarted = engine.create(Timer::after(MS, "never").reported()).unwrap();
    assert_eq!(engine.cancel(unstarted.id()), Cancel::Cancelled("never"));
    clock.advance(7 * MS);
    unstarted.start().unwrap();
    let report = engine.reports().recv().unwrap();
    assert_eq!((report.reason, report.tick.0), (CloseReason::Cancelled, 7));
}

#[test]
fn promise_08_cancelled_while_running_ends_at_that_tick() {
    let (engine, clock) = virtual_engine();
    let run = |name| {
        let id = engine.schedule(Timer::every(MS, name).reported()).unwrap();
        clock.advance(MS);
        (id, engine.queue(0).recv().unwrap())
    };
    let end_of = |name| {
        let report = engine.reports().recv().unwrap();
        assert_eq!(report.reason, CloseReason::Cancelled, "{name}");
        report.tick.0
    };
    let (id, running) = run("cancelled");
    clock.advance_to(Time::START + 4 * MS);
    assert_eq!(engine.cancel(id), Cancel::Running);
    clock.advance_to(Time::START + 6 * MS);
    drop(running);
    assert_eq!(end_of("cancelled"), 4);

    let (_, running) = run("kept");
    clock.advance_to(Time::START + 9 * MS);
    assert_eq!(running.into_payload(), "kept");
    assert_eq!(end_of("kept"), 9);
}

#[test]
fn promise_08_shut_down_while_running_is_reported_on_return() {
    let (engine, clock) = virtual_engine();
    let beat = Timer::every(MS, "beat").reported();
    let id = engine.schedule(beat).unwrap();
    clock.advance(MS);
    let running = engine.queue(0).recv().unwrap();
    clock.advance(MS);
    assert_eq!(engine.shutdown()[0].payload, None);
    clock.advance(MS);
    drop(running);
    let report = engine.reports().try_recv().unwrap();
    assert_eq!((report.id, report.firings, report.tick.0), (id, 1, 2));
    assert_eq!(
        (report.reason, report.payload),
        (CloseReason::ShutDown, Some("beat"))
    );
    assert!(engine.ledger().is_balanced());
}

#[test]
fn promise_08_readers_wait_for_the_report_of_a_held_firing() {
    let builder = Engine::builder().shards(4).queues(2);
    let (engine, clock) = builder.start_virtual().unwrap();
    let schedule = |timer: Timer<&'static str>| engine.schedule(timer.reported()).unwrap();
    schedule(Timer::every(MS, "cancelled"));
    schedule(Timer::every(MS, "abandoned"));
    schedule(Timer::every(MS, "last").times(1));
    thread::scope(|scope| {
        // In another shard.
        scope.spawn(|| schedule(Timer::every(MS, "elsewhere")));
        scope.spawn(|| schedule(Timer::after(SECOND, "waits")));
    });
    clock.advance(MS);
    let mut firings = take_all(&engine);
    assert_eq!(firings.len(), 4);
    for firing in &firings {
        if *firing.payload() == "cancelled" {
            assert_eq!(engine.cancel(firing.id()), Cancel::Running);
        }
    }
    assert_eq!(engine.shutdown().len(), 3);
    let closed = engine.reports();
    assert_eq!(closed.recv().unwrap().reason, CloseReason::ShutDown);
    let mut reported = Vec::new();
    while let Some(firing) = firings.pop() {
        assert_eq!(closed.try_recv(), Err(RecvError::Empty));
        assert_eq!(closed.recv_timeout(MS), Err(RecvError::Empty));
        drop(firing);
        reported.extend(closed.recv().unwrap().payload);
    }
    reported.sort_unstable();
    assert_eq!(reported, ["abandoned", "cancelled", "elsewhere", "last"]);
    assert_eq!(closed.try_recv(), Err(RecvError::ShutDown));
    assert_eq!(engine.reports().count(), 0);
}

#[test]
fn promise_08_a_reader_sleeps_until_the_last_report_has_come() {
    let engine = Engine::builder().start().unwrap();
    engine
        .schedule(Timer::every(MS, "beat").reported())
        .unwrap();
    let firing = engine.queue(0).recv().unwrap();
    let reports = engine.reports();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        tell.send(0).unwrap();
        tell.send(reports.count()).unwrap();
    });
    told.recv().unwrap();
    assert_eq!(engine.shutdown().len(), 1);
    drop(engine);
    assert!(told.recv_timeout(20 * MS).is_err(), "has not waited");
    drop(firing);
    assert_eq!(told.recv_timeout(20 * SECOND), Ok(1));
}

#[test]
fn promise_08_readers_wait_for_tasks_to_be_notified() {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let far = Timer::after(SECOND, |_| ());
    let notified = || far.clone().notified().reported();
    tasks.run(notified()).unwrap();
    let cancelled = tasks.run(notified()).unwrap();
    assert!(tasks.cancel(cancelled).is_cancelled());
    // Of those that were not started there is nothing to say.
    let unstarted = tasks.create(notified()).unwrap();
    let dismissed = tasks.create(notified()).unwrap();
    assert!(tasks.cancel(dismissed.id()).is_cancelled());
    tasks.shutdown();
    drop(dismissed);
    let closed = tasks.engine().reports();
    assert_eq!(closed.try_recv().unwrap_err(), RecvError::Empty);
    assert!(unstarted.start().is_err());
    while driver.run_due(1) == Advance::More {}
    assert_eq!(closed.count(), 2);
}

#[test]
fn promise_08_cancelling_inside_a_sorted_slot_is_reported() {
    let (engine, driver) = Engine::builder().shards(1).start_driven().unwrap();
    let now = engine.now();
    let schedule = |delay| {
        let timer = Timer::at(now + delay, ()).reported();
        engine.schedule(timer).unwrap()
    };
    // Older timers come into the slot of younger ones, which has to be sorted.
    let moved: Vec<_> = (0..64).map(|_| schedule(40 * MS)).collect();
    let all: Vec<_> = (0..64).map(|_| schedule(60 * MS)).chain(moved).collect();
    for &id in &all {
        engine.reschedule(id, now + 60 * MS).unwrap();
    }
    for (time, budget) in [(50 * MS, usize::MAX), (61 * MS, 96)] {
        thread::sleep(now + time - engine.now());
        let _ = driver.process_due(budget);
    }
    let cancelled = all.iter().map(|&id| engine.cancel(id));
    assert_eq!(
        cancelled.filter(|answer| *answer != Cancel::Gone).count(),
        128
    );

    assert_eq!(driver.process_due(usize::MAX), Advance::Done);
    assert_eq!(engine.queue(0).try_recv().err(), Some(RecvError::Empty));
    assert_eq!(engine.reports().len(), 128);
}

#[test]
fn promise_08_an_unread_report_counts_against_the_bound() {
    let builder = Engine::builder().shards(1).max_timers(2);
    let (engine, clock) = builder.start_virtual().unwrap();
    for n in 0..2 {
        engine.schedule(Timer::after(MS, n).reported()).unwrap();
    }
    clock.advance(MS);
    assert_eq!(payloads(&engine), [0, 1]);
    assert_eq!(engine.ledger().live, 0);
    let refused = engine.schedule(Timer::after(MS, 2)).unwrap_err();
    assert_eq!(refused.reason(), Refusal::Full);
    engine.reports().recv().unwrap();
    engine.schedule(refused.into_timer()).unwrap();
}
