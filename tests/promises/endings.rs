//! Promises 3, 5, 6, 8 and 12: how timers end, and the account of it.

use super::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use tickwheel::wheel::Advance;
use tickwheel::{Cancel, CloseReason, NotLive, RecvError, Refusal, TaskEngine, Time, Timer};

#[test]
fn promise_03_exactly_one_ending() {
    let (engine, clock) = virtual_engine();
    let mut random = Rng::with_seed(3);
    let mut ids = Vec::new();
    let mut endings = HashSet::new();
    for n in 0..20_000u64 {
        match random.u64(..10) {
            0..=4 => {
                let delay = random.u32(..400) * MS;
                ids.push(engine.schedule(Timer::after(delay, n)).unwrap());
            }
            5..=6 if !ids.is_empty() => {
                let id = ids[random.usize(..ids.len())];
                if let Cancel::Cancelled(payload) = engine.cancel(id) {
                    assert!(endings.insert(payload), "{payload} ended twice");
                }
            }
            7 if !ids.is_empty() => {
                let id = ids[random.usize(..ids.len())];
                let _ = engine.reschedule(id, random.u32(..900) * MS);
            }
            8 => clock.advance(random.u32(..20) * MS),
            _ => {
                if let Ok(expired) = engine.queue(0).try_recv() {
                    let payload = expired.into_payload();
                    assert!(endings.insert(payload), "{payload} ended twice");
                }
            }
        }
        if n % 500 == 0 {
            assert!(engine.ledger().is_balanced(), "{:?}", engine.ledger());
            assert_eq!(engine.ledger().live, engine.live().count() as u64);
        }
    }
    let left = engine.shutdown();
    assert_eq!(left.len() + endings.len(), ids.len());
    let ledger = engine.ledger();
    assert!(ledger.is_balanced());
    let mut wrong = ledger;
    wrong.completed += 1;
    assert!(!wrong.is_balanced());
    assert_eq!((ledger.accepted, ledger.live), (ids.len() as u64, 0));
    assert_eq!(ledger.shut_down, left.len() as u64);
    assert_eq!(ledger.completed + ledger.cancelled, endings.len() as u64);
}

/// What is live is a count: in whichever states timers are, it is what a walk
/// through the storage finds.
#[test]
fn promise_03_the_count_of_live_timers_is_what_a_walk_finds() {
    let (engine, clock) = virtual_engine();
    let mut random = Rng::with_seed(33);
    let (mut ids, mut unstarted, mut lent) = (Vec::new(), Vec::new(), Vec::new());
    let timer = |n: u64| match n % 6 {
        0 => Timer::every(3 * MS, n),
        1 => Timer::every(2 * MS, n).times(2).reported(),
        2 => Timer::after(5 * MS, n).reported().named("lease"),
        3 => Timer::every(4 * MS, n).reported().named("beat"),
        _ => Timer::after(7 * MS, n),
    };
    let check = || {
        let (ledger, found) = (engine.ledger(), engine.live().count() as u64);
        assert_eq!((ledger.live, ledger.is_balanced()), (found, true));
        assert_eq!(engine.snapshot().ledger, ledger);
    };
    for n in 0..4_000u64 {
        match random.u64(..11) {
            0..=3 => ids.push(engine.schedule(timer(n)).unwrap()),
            4 => {
                let created = engine.create(timer(n)).unwrap();
                ids.push(created.id());
                unstarted.push(created);
            }
            5 => match random.u64(..3) {
                0 => drop(unstarted.pop()),
                1 => drop(unstarted.pop().map(|it| it.dismiss())),
                _ => drop(unstarted.pop().map(|it| it.start())),
            },
            6 if !ids.is_empty() => {
                let _ = engine.cancel(ids[random.usize(..ids.len())]);
            }
            7 => clock.advance(random.u32(..5) * MS),
            8 => lent.extend(engine.queue(0).try_iter().take(3)),
            9 if !lent.is_empty() => {
                let firing = lent.swap_remove(random.usize(..lent.len()));
                match random.u64(..2) {
                    0 => drop(firing),
                    _ => drop(firing.into_payload()),
                }
            }
            _ => drop(engine.reports().try_recv()),
        }
        check();
    }
    engine.shutdown();
    check();
    while let Some(firing) = lent.pop() {
        drop(firing);
        check();
    }
    engine.reports().try_iter().for_each(|_| check());
    drop(unstarted);
    check();
    assert_eq!(engine.ledger().live, 0);
}

#[test]
fn promise_03_a_return_completes_a_task_and_a_panic_fails_it() {
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    let (running, is_running) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let slow = move || {
        running.send(()).unwrap();
        may_go_on.recv().unwrap();
    };
    tasks.run_after(MS, slow).unwrap();
    clock.advance(MS);
    is_running.recv().unwrap();
    assert_eq!((tasks.ledger().live, tasks.ledger().completed), (1, 0));
    go_on.send(()).unwrap();
    clock.run_until(tasks.now());
    assert_eq!((tasks.ledger().live, tasks.ledger().completed), (0, 1));

    tasks.run_after(MS, || panic!("on purpose")).unwrap();
    let twice = Timer::every(MS, |_: &tickwheel::Firing| panic!("on purpose")).times(2);
    tasks.run(twice).unwrap();
    clock.run_until(tasks.now() + 10 * MS);
    let ledger = tasks.ledger();
    assert_eq!((ledger.failed, ledger.completed, ledger.live), (2, 1, 0));
    assert_eq!(tasks.engine().snapshot().panics, 3);
    assert!(ledger.is_balanced());
}

/// Does something when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}

#[test]
fn promise_03_only_a_panic_while_it_is_held_fails_a_firing() {
    let (engine, clock) = virtual_engine();
    let count = || (engine.ledger().completed, engine.ledger().failed);
    let take = || {
        engine.schedule(Timer::every(MS, ()).times(1)).unwrap();
        clock.advance(MS);
        engine.queue(0).recv().unwrap()
    };
    let panic_with = |held| {
        let unwinds = std::panic::AssertUnwindSafe(|| {
            let _held = held;
            panic!("on purpose");
        });
        assert!(std::panic::catch_unwind(unwinds).is_err());
    };
    panic_with(take());
    assert_eq!(count(), (0, 1));

    // Taken and let go of by a destructor, for all that a panic unwinds.
    let unwinds = std::panic::AssertUnwindSafe(|| {
        let _held = OnDrop(|| drop(take()));
        panic!("on purpose");
    });
    assert!(std::panic::catch_unwind(unwinds).is_err());
    assert_eq!(count(), (1, 1));

    // Taken by that, and let go of in the panic of another thread.
    let unwinds = std::panic::AssertUnwindSafe(|| {
        let _held = OnDrop(|| {
            let firing = take();
            let other = thread::scope(|scope| {
                let other = scope.spawn(move || {
                    let _held = firing;
                    panic!("on purpose");
                });
                other.join()
            });
            assert!(other.is_err());
        });
        panic!("on purpose");
    });
    assert!(std::panic::catch_unwind(unwinds).is_err());
    assert_eq!(count(), (1, 2));
}

#[test]
fn promise_05_a_stale_id_is_harmless() {
    let (engine, clock) = virtual_engine();
    let stale = engine.schedule(Timer::after(MS, 0)).unwrap();
    clock.advance(MS);
    assert_eq!(payloads(&engine), [0]);
    for n in 1..100_000u32 {
        let id = engine.schedule(Timer::after(SECOND, n)).unwrap();
        assert_ne!(id, stale);
        if n % 1_000 == 0 {
            assert_eq!(engine.cancel(stale), Cancel::Gone);
            assert_eq!(engine.reschedule(stale, MS), Err(NotLive::Gone));
            assert_eq!(engine.replace(stale, 7), Err((NotLive::Gone, 7)));
            assert_eq!(engine.deadline(stale), None);
        }
        assert_eq!(engine.cancel(id), Cancel::Cancelled(n));
    }

    let (other, _clock) = virtual_engine::<u32>();
    let foreign = other.schedule(Timer::after(SECOND, 1)).unwrap();
    let own = engine.schedule(Timer::after(SECOND, 2)).unwrap();
    assert_eq!(engine.cancel(foreign), Cancel::Gone);
    assert_eq!(other.cancel(own), Cancel::Gone);
    assert_eq!((engine.ledger().live, other.ledger().live), (1, 1));
}

#[test]
fn promise_06_cancel_gives_the_memory_back_at_once() {
    let (engine, _clock) = virtual_engine();
    let payload = Arc::new(());
    let far = Duration::from_secs(86_400 * 365);
    // A thousand entries in all, ever: the bound says so.
    let bounded = Engine::builder()
        .shards(1)
        .max_timers(1_000)
        .start()
        .unwrap();
    for _ in 0..200 {
        let ids: Vec<_> = (0..1_000)
            .map(|_| {
                bounded
                    .schedule(Timer::after(far, payload.clone()))
                    .unwrap()
            })
            .collect();
        for id in ids {
            assert!(bounded.cancel(id).payload().is_some());
        }
        assert_eq!(Arc::strong_count(&payload), 1);
    }
    assert_eq!(bounded.live().count(), 0);
    // And the index of an id, which is the entry, stays small.
    let first = engine.schedule(Timer::after(far, ())).unwrap();
    engine.cancel(first).payload().unwrap();
    let index = |id: tickwheel::TimerId| {
        let text = format!("{id:?}");
        text.split('.').nth(1).unwrap().parse::<u32>().unwrap()
    };
    for _ in 0..100_000 {
        let id = engine.schedule(Timer::after(far, ())).unwrap();
        assert_eq!(index(id), index(first));
        engine.cancel(id).payload().unwrap();
    }
}

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
    let report = engine.reports().recv().unwrap();
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
    let far = Timer::after(SECOND, |_: &tickwheel::Firing| ());
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
        move |firing: &tickwheel::Firing| {
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
        let stuck = move |_: &tickwheel::Firing| {
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
        // Behind for ever: what is ready is never empty.
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
