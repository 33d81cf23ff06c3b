//! Promise 8: closed timers are reported on request, with their names. Of one that has
//! repeated, compat shows in `g4` that it is expired and then closed, with the same tick.

use super::*;

type Report<T> = (TimerId, usize, u64, u64, CloseReason, Option<T>);

/// The next report: id, queue, tick, firings, reason and payload.
fn report<T>(engine: &Engine<T>) -> Report<T> {
    let it = engine.reports().try_recv().unwrap();
    (it.id, it.queue, it.tick.0, it.firings, it.reason, it.payload)
}

#[test]
fn promise_08_closed_timers_are_reported() {
    let (engine, clock) = virtual_engine();
    let once = engine.put(Timer::after(MS, "once").reported());
    let cancelled = engine.put(Timer::after(SECOND, "cancelled").reported());
    let left = engine.put(Timer::after(SECOND, "left").reported());
    engine.after(MS, "unreported");
    let closed = engine.reports();
    assert_eq!(closed.try_recv(), Err(RecvError::Empty));

    clock.advance(MS);
    assert_eq!(payloads(&engine), ["once", "unreported"]);
    assert!(!closed.is_empty());
    let expected = (once, 0, 1, 1, CloseReason::Completed, None);
    assert_eq!(report(&engine), expected);
    clock.advance_to(at(4));
    assert_eq!(engine.cancel(cancelled), Cancel::Cancelled("cancelled"));
    let expected = (cancelled, 0, 4, 0, CloseReason::Cancelled, None);
    assert_eq!(report(&engine), expected);
    let unstarted = engine.create(Timer::after(SECOND, "unstarted").reported()).unwrap();
    assert_eq!(engine.cancel(unstarted.id()), Cancel::Cancelled("unstarted"));
    let expected = (unstarted.start().unwrap(), 0, 4, 0, CloseReason::Cancelled, None);
    assert_eq!(report(&engine), expected);

    let list = engine.shutdown();
    let list: Vec<_> = list.into_iter().map(|it| (it.id, it.payload)).collect();
    assert_eq!(list, [(left, Some("left"))]);
    let expected = (left, 0, 4, 0, CloseReason::ShutDown, None);
    assert_eq!(report(&engine), expected);
    assert_eq!(closed.recv(), Err(RecvError::ShutDown));
    assert_eq!(engine.reports().next(), None);
}

#[test]
fn promise_08_a_timer_that_ends_while_it_runs_is_reported_on_return_with_the_tick_of_its_end() {
    let (engine, clock) = virtual_engine();
    let run = || {
        let id = engine.put(Timer::every(MS, "beat").reported());
        clock.advance(MS);
        (id, engine.next())
    };
    let (id, running) = run();
    clock.advance_to(at(4));
    assert_eq!(engine.cancel(id), Cancel::Running);
    clock.advance_to(at(6));
    drop(running);
    let expected = (id, 0, 4, 1, CloseReason::Cancelled, Some("beat"));
    assert_eq!(report(&engine), expected);

    let (id, running) = run();
    clock.advance_to(at(9));
    assert_eq!(running.into_payload(), "beat");
    assert_eq!(report(&engine), (id, 0, 9, 1, CloseReason::Cancelled, None));

    // One that fails ends at its due tick.
    let last = engine.put(Timer::every(MS, "last").times(1).reported());
    clock.advance(MS);
    let firing = engine.next();
    clock.advance(MS);
    assert!(panics(move || panic!("on purpose: {firing:?}")));
    let expected = (last, 0, 10, 1, CloseReason::Failed, Some("last"));
    assert_eq!(report(&engine), expected);

    let (id, running) = run();
    clock.advance_to(at(12));
    assert_eq!(engine.shutdown()[0].payload, None);
    clock.advance(MS);
    drop(running);
    let expected = (id, 0, 12, 1, CloseReason::ShutDown, Some("beat"));
    assert_eq!(report(&engine), expected);
    assert_eq!(ends(&engine), [0, 0, 2, 1, 1]);
}

#[test]
fn promise_08_readers_wait_for_the_report_of_a_held_firing() {
    let builder = Engine::builder().shards(4).queues(2);
    let (engine, clock) = builder.start_virtual().unwrap();
    let schedule = |timer: Timer<&'static str>| engine.put(timer.reported());
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
    let mut cancelled = firings.iter().filter(|it| *it.payload() == "cancelled");
    let cancelled = cancelled.next().unwrap().id();
    assert_eq!(engine.cancel(cancelled), Cancel::Running);
    assert_eq!(engine.shutdown().len(), 3);
    assert_eq!(engine.drain(Duration::ZERO).len(), 0);
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
}

#[test]
fn promise_08_a_reader_sleeps_until_the_last_report_has_come() {
    let engine = Engine::builder().start().unwrap();
    engine.put(Timer::every(MS, "beat").reported());
    let firing = engine.queue(0).recv().unwrap();
    let (reports, told) = (engine.reports(), told());
    let tell = told.tell();
    thread::spawn(move || {
        tell.send(0).unwrap();
        tell.send(reports.count()).unwrap();
    });
    told.next();
    assert_eq!(engine.shutdown().len(), 1);
    drop(engine);
    assert!(told.1.recv_timeout(20 * MS).is_err(), "has not waited");
    drop(firing);
    assert_eq!(told.next(), 1);
}

#[test]
fn promise_08_readers_wait_for_tasks_to_be_notified() {
    let (tasks, driver) = driven_tasks();
    let far = Timer::after(SECOND, |_| ()).notified().reported();
    tasks.run(far.clone()).unwrap();
    let cancelled = tasks.run(far.clone()).unwrap();
    assert!(tasks.cancel(cancelled).is_cancelled());
    // Of those that were not started there is nothing to say.
    let unstarted = tasks.create(far.clone()).unwrap();
    let dismissed = tasks.create(far).unwrap();
    assert!(tasks.cancel(dismissed.id()).is_cancelled());
    tasks.shutdown();
    drop(dismissed);
    let closed = tasks.reports();
    assert_eq!(closed.try_recv().unwrap_err(), RecvError::Empty);
    assert!(unstarted.start().is_err());
    while driver.process_due(1) == Advance::More {}
    assert!(closed.map(|it| it.firings).eq([0, 0]));
}

#[test]
fn promise_08_cancelling_inside_a_sorted_slot_is_reported() {
    let (engine, driver) = Engine::builder().shards(1).start_driven().unwrap();
    let now = engine.now();
    let schedule = |delay| engine.put(Timer::at(now + delay * MS, ()).reported());
    // Older timers come into the slot of younger ones, which has to be sorted.
    let moved: Vec<_> = (0..64).map(|_| schedule(40)).collect();
    let all: Vec<_> = (0..64).map(|_| schedule(60)).chain(moved).collect();
    for &id in &all {
        engine.reschedule(id, now + 60 * MS).unwrap();
    }
    for (time, budget) in [(50 * MS, usize::MAX), (61 * MS, 96)] {
        thread::sleep(now + time - engine.now());
        let _ = driver.process_due(budget);
    }
    let cancelled = all.iter().filter(|&&id| engine.cancel(id) != Cancel::Gone);
    assert_eq!(cancelled.count(), 128);
    assert_eq!(driver.process_due(usize::MAX), Advance::Done);
    assert_eq!(engine.queue(0).try_recv().err(), Some(RecvError::Empty));
    assert_eq!(engine.reports().len(), 128);
}

#[test]
fn promise_08_an_unread_report_counts_against_the_bound() {
    let bounded = Engine::builder().shards(1).max_timers(2);
    let (engine, clock) = bounded.start_virtual().unwrap();
    (0..2).for_each(|n| _ = engine.put(Timer::after(MS, n).reported()));
    clock.advance(MS);
    assert_eq!(payloads(&engine), [0, 1]);
    assert_eq!(engine.ledger().live, 0);
    let refused = engine.schedule(Timer::after(MS, 2)).unwrap_err();
    assert_eq!(refused.reason(), Refusal::Full);
    engine.reports().recv().unwrap();
    engine.put(refused.into_inner());
}

#[test]
fn promise_08_a_report_carries_the_name_however_its_timer_ended() {
    let (engine, clock) = virtual_engine();
    let put = |timer: Timer<u32>, name| engine.put(timer.named(name).reported());
    put(Timer::after(MS, 0), "completed");
    put(Timer::after(SECOND, 0), "cancelled by name");
    put(Timer::every(MS, 0), "runs");
    let cancelled = put(Timer::after(SECOND, 0), "cancelled");
    clock.advance(MS);
    let mut taken = take_all(&engine);
    let names: Vec<_> = taken.iter().map(Expired::name).collect();
    assert_eq!(names, [Some("completed"), Some("runs")]);
    let running = taken.pop();
    drop(taken);
    let by_name = engine.cancel_by_name("cancelled by name", None);
    assert_eq!(by_name.len(), 1);
    assert!(engine.cancel(cancelled).is_cancelled());
    // The name of a timer that has ended leads to later timers alone.
    let again = put(Timer::after(SECOND, 0), "cancelled");
    assert!(engine.find_by_name("cancelled").eq([again]));
    let names = |closed: &mut dyn Iterator<Item = Closed<u32>>| {
        let mut names: Vec<_> = closed.filter_map(|it| it.name).collect();
        names.sort();
        names.join(", ")
    };
    assert_eq!(names(&mut engine.shutdown().into_iter()), "cancelled, runs");
    drop(running);
    let all = "cancelled, cancelled, cancelled by name, completed, runs";
    assert_eq!(names(&mut engine.reports()), all);
}

/// A report and the list of a shutdown tell when a timer was due, and so does a walk.
#[test]
fn promise_08_a_timer_that_has_ended_tells_when_it_was_due() {
    let (engine, clock) = virtual_engine();
    let put = |timer: Timer<&'static str>| engine.put(timer.reported());
    let unstarted = engine.create(Timer::after(60 * MS, "unstarted").reported()).unwrap();
    let cancelled = put(Timer::after(40 * MS, "cancelled"));
    put(Timer::every(3 * MS, "counted").times(2));
    let held = put(Timer::every(7 * MS, "held"));
    engine.after(50 * MS, "plain");
    put(Timer::every(20 * MS, "repeats"));
    put(Timer::after(30 * MS, "notified"));
    let due = |id| engine.find(id).unwrap().deadline;
    assert_eq!((due(cancelled), due(held)), (at(40), at(7)));
    clock.advance_to(at(3));
    take(&engine, 0);
    clock.advance_to(at(6));
    take(&engine, 0);
    engine.cancel(cancelled);
    clock.advance_to(at(8));
    let firing = engine.next();
    assert_eq!(due(held), at(7));
    engine.cancel(held);
    drop(firing);
    engine.cancel(unstarted.id());
    unstarted.start().unwrap();
    let reports: Vec<_> = engine.reports().try_iter().collect();
    let reports = reports.iter().map(|it| (it.reason, it.deadline));
    let (completed, cancelled) = (CloseReason::Completed, CloseReason::Cancelled);
    let all = [(completed, at(6)), (cancelled, at(40)), (cancelled, at(7)), (cancelled, at(68))];
    assert!(reports.eq(all));
    let mut left: Vec<_> = engine.shutdown().iter().map(|it| it.deadline).collect();
    left.sort_unstable();
    assert_eq!(left, [at(20), at(30), at(50)]);
}
