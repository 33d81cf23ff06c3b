//! Promises 3, 5 and 6: each timer ends exactly once, its id ends with it, and its
//! memory is free at once.

use super::*;
use std::collections::HashSet;
use std::sync::{Arc, mpsc};
use std::thread;
use tickwheel::{Cancel, CloseReason, Firing, NotChanged, TaskEngine, Timer};

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
    // Only a task with a name needs a record.
    for (run, name) in [None, Some("slow")].into_iter().enumerate() {
        let before = run as u64;
        let (running, is_running) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let slow = move |_: Firing| {
            running.send(()).unwrap();
            may_go_on.recv().unwrap();
        };
        let timer = Timer::after(MS, slow);
        let timer = match name {
            Some(name) => timer.named(name),
            None => timer,
        };
        tasks.run(timer).unwrap();
        clock.advance(MS);
        is_running.recv().unwrap();
        let ledger = tasks.ledger();
        assert_eq!((ledger.live, ledger.completed), (1, before));
        go_on.send(()).unwrap();
        clock.run_until(tasks.now());
        let ledger = tasks.ledger();
        assert_eq!((ledger.live, ledger.completed), (0, before + 1));
    }

    tasks.run_after(MS, || panic!("on purpose")).unwrap();
    let twice = Timer::every(MS, |_| panic!("on purpose")).times(2);
    tasks.run(twice).unwrap();
    clock.run_until(tasks.now() + 10 * MS);
    let ledger = tasks.ledger();
    assert_eq!((ledger.failed, ledger.completed, ledger.live), (2, 2, 0));
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
            assert_eq!(engine.reschedule(stale, MS), Err(NotChanged::Gone));
            assert_eq!(engine.replace(stale, 7), Err((NotChanged::Gone, 7)));
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
fn promise_05_a_forged_id_is_harmless() {
    let (engine, clock) = virtual_engine();
    let timers = [0, 1, 2].map(|n| Timer::every(SECOND, n));
    let [id, lent, ended] = timers.map(|timer| engine.schedule(timer).unwrap());
    clock.advance(SECOND);
    let held = engine.queue(0).try_iter().nth(1).unwrap();
    assert_eq!(
        (held.id(), engine.cancel(ended)),
        (lent, Cancel::Cancelled(2))
    );
    let real = [id, lent, ended].map(u128::from);
    let mut forged = 0;
    for number in real
        .iter()
        .flat_map(|real| (0..128).map(move |bit| real ^ 1 << bit))
    {
        let Ok(id) = TimerId::try_from(number) else {
            continue;
        };
        if !real.contains(&number) {
            forged += 1;
            assert_eq!(engine.deadline(id), None);
            assert_eq!(engine.reschedule(id, MS), Err(NotChanged::Gone));
            assert_eq!(engine.replace(id, 7), Err((NotChanged::Gone, 7)));
            assert_eq!(engine.cancel(id), Cancel::Gone);
            assert_eq!(engine.cancel_many(&[id, id]), [Cancel::Gone, Cancel::Gone]);
            assert_eq!(engine.cancel_and_wait(id), Cancel::Gone);
        }
    }
    assert!(forged > 300);
    drop(held);
    let [id, lent, ended] = real.map(|real| TimerId::try_from(real).unwrap());
    assert_eq!(engine.cancel(id), Cancel::Cancelled(0));
    assert_eq!(engine.cancel(lent), Cancel::Cancelled(1));
    assert_eq!(engine.cancel(ended), Cancel::Gone);
}

#[test]
fn promise_06_an_expired_timer_gives_its_room_back() {
    let builder = Engine::builder().shards(1).max_timers(1);
    let (engine, clock) = builder.start_virtual().unwrap();
    let expire = || {
        let id = engine.schedule(Timer::after(MS, "payload")).unwrap();
        clock.advance(MS);
        id
    };
    for _ in 0..3 {
        expire();
        assert_eq!(
            engine.queue(0).try_recv().unwrap().into_payload(),
            "payload"
        );
        assert_eq!(engine.cancel(expire()).payload(), Some("payload"));
    }
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

/// A closure that runs once has every setting of a one-shot, and what it holds is gone
/// when its timer has ended, however it ended.
#[test]
fn promise_03_a_closure_that_runs_once_is_run_or_dropped() {
    let (tasks, clock) = TaskEngine::builder().shards(1).start_virtual().unwrap();
    let held = Arc::new(());
    let once = || {
        let held = Arc::clone(&held);
        Timer::after(MS, move |_| drop(held)).named("once")
    };
    let id = tasks.run_once(once().reported()).unwrap();
    clock.run_until(tasks.now() + MS);
    let report = tasks.engine().reports().try_recv().unwrap();
    assert_eq!((report.id, report.reason), (id, CloseReason::Completed));
    tasks.run_once(once()).unwrap();
    assert_eq!(tasks.cancel_by_name("once", None), 1);
    let repeats = Timer::every(MS, |_| panic!("a closure that runs once")).named("once");
    let refused = tasks.run_once(repeats).unwrap_err();
    assert!(refused.to_string().contains("Timer::after"), "{refused}");
    assert_eq!(tasks.cancel_by_name("once", None), 0);
    assert_eq!(Arc::strong_count(&held), 1);
    assert_eq!(tasks.ledger().accepted, 2);
}

/// Such a closure sees its firing, may be notified of its end, and cannot be re-armed.
#[test]
fn promise_03_a_closure_that_runs_once_sees_its_firing_and_runs_once() {
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    let (tell, told) = mpsc::sync_channel(9);
    let once = || {
        let tell = tell.clone();
        let task = move |firing: Firing| {
            let tell = tell; // moved out: the closure can run only once
            let rearmed = firing.rearm(MS);
            tell.send((firing.outcome(), rearmed)).unwrap();
        };
        Timer::after(MS, task).named("once")
    };
    tasks.run_once(once()).unwrap();
    clock.run_until(tasks.now() + 9 * MS);
    let refused = Err(NotChanged::NotRearmable);
    let told: Vec<_> = told.try_iter().collect();
    assert_eq!(told, [(CloseReason::Completed, refused)]);
    assert_eq!((tasks.ledger().completed, tasks.ledger().live), (1, 0));

    let (tell, told) = mpsc::sync_channel(9);
    let task = move |firing: Firing| tell.send(firing.outcome()).unwrap();
    let id = tasks.run_once(Timer::after(MS, task).notified()).unwrap();
    assert!(tasks.cancel(id).is_cancelled());
    assert_eq!(told.recv().unwrap(), CloseReason::Cancelled);
    assert!(told.recv().is_err(), "the closure is gone");
}
