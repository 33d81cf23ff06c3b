//! Kafka's hierarchical wheel, the shape of this one. Wheel size 20, a tick of
//! 1 ms, starting at 0; levels are counted from 1 here, as in the articles.

use super::*;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use tickwheel::{Cancel, CloseReason, RecvError, TaskEngine, Timer};

fn kafka() -> Wheel<u64> {
    Wheel::starting_at(Tick(0), 20)
}

fn schedule_at(wheel: &mut Wheel<u64>, deadline: u64) -> TimerId {
    wheel.schedule_at(Tick(deadline), deadline)
}

/// The level, counted from 1, and the index of the slot in which a timer hangs.
fn place<T>(wheel: &Wheel<T>, id: TimerId) -> (usize, usize) {
    let (level, index, _) = slot_of(wheel, id);
    (level + 1, index)
}

/// The first and the last tick of the slot in which a timer hangs, found by
/// trying which deadlines share it.
fn range(wheel: &mut Wheel<u64>, id: TimerId) -> (u64, u64) {
    let (slot, start) = (place(wheel, id), slot_of(wheel, id).2);
    let shares = |wheel: &mut Wheel<u64>, deadline| {
        let other = schedule_at(wheel, deadline);
        let shares = place(wheel, other) == slot;
        wheel.cancel(other);
        shares
    };
    assert!(shares(wheel, start) && !shares(wheel, start - 1));
    let mut last = start;
    while shares(wheel, last + 1) {
        last += 1;
    }
    (start, last)
}

#[test]
fn f1_small_delays() {
    let mut wheel = kafka();
    let two = schedule_at(&mut wheel, 2);
    assert_eq!(place(&wheel, two), (1, 2));
    let twenty = schedule_at(&mut wheel, 20);
    assert_eq!(place(&wheel, twenty), (2, 1));

    assert_eq!(fire(&mut wheel, 2), [(2, 2)]);
    let eight_later = wheel.schedule_after(8, 10);
    assert_eq!(place(&wheel, eight_later), (1, 10));
    // There, 19 later is level 1 slot 1, which is free again. Placement here is
    // aligned to whole turns, so that order survives cascades unsorted: 21 is
    // in the next turn of level 1, and waits in level 2 until that begins.
    let nineteen_later = wheel.schedule_after(19, 21);
    assert_eq!(place(&wheel, nineteen_later), (2, 1));
    assert_eq!(fire(&mut wheel, 20), [(10, 10), (20, 20)]);
    assert_eq!(place(&wheel, nineteen_later), (1, 1));
    assert_eq!(fire(&mut wheel, 21), [(21, 21)]);
}

#[test]
fn f1_the_wheel_is_round() {
    let mut wheel = kafka();
    for turn in 0..50 {
        let deadline = 20 * turn + 1;
        let id = schedule_at(&mut wheel, deadline);
        assert_eq!(place(&wheel, id), (1, 1), "the same slot in each turn");
        assert_eq!(fire(&mut wheel, 20 * (turn + 1)), [(deadline, deadline)]);
    }
}

#[test]
fn f2_350_moves_from_level_2_to_level_1() {
    let mut wheel = kafka();
    let id = schedule_at(&mut wheel, 350);
    assert_eq!(place(&wheel, id), (2, 17));
    assert_eq!(range(&mut wheel, id), (340, 359));
    assert_eq!(fire(&mut wheel, 339), []);
    assert_eq!(place(&wheel, id), (2, 17));
    assert_eq!(fire(&mut wheel, 340), []);
    assert_eq!(place(&wheel, id), (1, 10));
    assert_eq!(fire(&mut wheel, 349), []);
    assert_eq!(fire(&mut wheel, 350), [(350, 350)]);
}

#[test]
fn f3_450_moves_from_level_3_down_to_level_1() {
    let mut wheel = kafka();
    let deadlines = [446, 450, 455, 473];
    let ids = deadlines.map(|deadline| schedule_at(&mut wheel, deadline));
    for id in ids {
        assert_eq!(place(&wheel, id), (3, 1));
    }
    let id = ids[1];
    assert_eq!(range(&mut wheel, id), (400, 799));
    assert_eq!(fire(&mut wheel, 399), []);
    assert_eq!(place(&wheel, id), (3, 1));
    assert_eq!(fire(&mut wheel, 400), []);
    assert_eq!(place(&wheel, id), (2, 2));
    assert_eq!(range(&mut wheel, id), (440, 459));
    assert_eq!(fire(&mut wheel, 439), []);
    assert_eq!(place(&wheel, id), (2, 2));
    assert_eq!(fire(&mut wheel, 440), []);
    assert_eq!(place(&wheel, id), (1, 10));
    assert_eq!(fire(&mut wheel, 449), [(446, 446)]);
    assert_eq!(fire(&mut wheel, 450), [(450, 450)]);
    assert_eq!(fire(&mut wheel, 800), [(455, 455), (473, 473)]);
}

#[test]
fn f4_levels_begin_where_the_one_below_ends() {
    let mut wheel = kafka();
    let id = schedule_at(&mut wheel, 399);
    assert_eq!(place(&wheel, id), (2, 19));
    let id = schedule_at(&mut wheel, 400);
    assert_eq!(place(&wheel, id), (3, 1));
    assert!(wheel.slots().all(|slot| slot.level < 3));
    let id = schedule_at(&mut wheel, 8_000);
    assert_eq!(place(&wheel, id), (4, 1), "a level that was not there");
    let all = [399, 400, 8_000].map(|deadline| (deadline, deadline));
    assert_eq!(fire(&mut wheel, 8_000), all);
}

#[test]
fn f5_a_delay_of_zero_or_less_fires_at_once() {
    let mut wheel = kafka();
    assert_eq!(fire(&mut wheel, 50), []);
    wheel.schedule_after(0, 0);
    schedule_at(&mut wheel, 13);
    assert_eq!(fire(&mut wheel, 50), [(50, 0), (50, 13)]);

    let (engine, clock) = virtual_engine();
    clock.advance(Duration::from_micros(50_300));
    engine.schedule(Timer::after(Duration::ZERO, 0)).unwrap();
    engine
        .schedule(Timer::at(Time::from_millis(13), 13))
        .unwrap();
    clock.advance(Duration::ZERO);
    // At once, and each reported with the tick that was asked for.
    assert_eq!(take(&engine, 0), [(50, 0), (13, 13)]);
}

#[test]
fn f5_scheduling_again_moves_a_timer_and_the_count_stays() {
    let mut wheel = kafka();
    let id = schedule_at(&mut wheel, 10);
    schedule_at(&mut wheel, 15);
    // Later, earlier, past the wheel's levels and back.
    for deadline in [300, 5, 9_000, 12] {
        assert!(wheel.reschedule(id, Tick(deadline)));
        assert_eq!((wheel.len(), wheel.deadline(id)), (2, Some(Tick(deadline))));
    }
    assert_eq!(fire(&mut wheel, 10_000), [(12, 10), (15, 15)]);
}

#[test]
fn f5_cancel_is_idempotent_and_lowers_the_count_at_once() {
    let mut wheel = kafka();
    let far = schedule_at(&mut wheel, u64::MAX);
    let near = schedule_at(&mut wheel, 3);
    assert_eq!(wheel.len(), 2);
    assert_eq!(wheel.cancel(far), Some(u64::MAX));
    assert_eq!(wheel.len(), 1);
    assert_eq!(wheel.cancel(far), None);
    assert_eq!(wheel.len(), 1);
    assert_eq!(wheel.cancel(near), Some(3));
    assert!(wheel.is_empty());
    assert_eq!(wheel.slots().count(), 0);
}

#[test]
fn f5_cancel_takes_constant_time() {
    assert_cancels_in_constant_time(kafka, 450);
}

#[test]
fn f6_empty_stretches_cost_nothing() {
    let mut wheel = kafka();
    let deadlines = [2, 350, 446, 450, 8_000, 10_u64.pow(18)];
    for deadline in deadlines {
        schedule_at(&mut wheel, deadline);
    }
    // The clock stands only where a slot that holds something begins.
    let mut fired = Vec::new();
    let mut stops = 0;
    while let Some(next) = wheel.next_wakeup() {
        let starts: BTreeSet<Tick> = wheel.slots().map(|slot| slot.start).collect();
        assert_eq!(starts.first(), Some(&next));
        assert!(wheel.pop_due(Tick(next.0 - 1)).is_none());
        fired.extend(fire(&mut wheel, next.0));
        stops += 1;
    }
    assert!(fired.iter().map(|&(deadline, _)| deadline).eq(deadlines));
    // 10^18 passes through at most each of its 14 levels.
    assert!(stops < 24, "{stops} stops for six timers");

    // And in one jump over the same stretches, only the timers are touched.
    let mut wheel = Wheel::new(20);
    schedule_at(&mut wheel, 10_u64.pow(18));
    let mut count = 0;
    let touched = entries_touched(&mut wheel, 10_u64.pow(18), |_, _| count += 1);
    assert_eq!(count, 1);
    assert!(touched < 20, "{touched} touched");
    assert_eq!(entries_touched(&mut wheel, u64::MAX, |_, _| ()), 1);
}

#[test]
fn f7_closing_never_runs_what_is_pending() {
    let (engine, clock) = virtual_engine();
    engine.schedule(Timer::after(MS, "due")).unwrap();
    engine.schedule(Timer::after(SECOND, "pending")).unwrap();
    clock.advance(MS);
    let closed = engine.shutdown();
    let reasons: Vec<_> = closed.iter().map(|c| (c.payload, c.reason)).collect();
    assert_eq!(closed.len(), 2);
    assert!(reasons.contains(&(Some("due"), CloseReason::ShutDown)));
    assert!(reasons.contains(&(Some("pending"), CloseReason::ShutDown)));
    clock.advance(10 * SECOND);
    assert_eq!(engine.queue(0).try_recv().unwrap_err(), RecvError::ShutDown);

    // Closures are dropped unrun, however the engine is closed.
    for by_dropping in [true, false] {
        let tasks = TaskEngine::builder().start().unwrap();
        let (tell, told) = mpsc::channel();
        tasks
            .run_after(20 * MS, move || tell.send(()).unwrap())
            .unwrap();
        match by_dropping {
            true => drop(tasks),
            false => drop(tasks.shutdown()),
        }
        let never = told.recv_timeout(PATIENCE);
        assert_eq!(never, Err(mpsc::RecvTimeoutError::Disconnected));
    }
}

#[test]
fn f8_a_request_completes_or_expires_and_never_both() {
    const THREADS: usize = 2;
    const REQUESTS: usize = 10_000;
    let engine = Engine::builder().start().unwrap();
    // How often each request ended.
    let endings: Vec<AtomicU32> = (0..REQUESTS).map(|_| AtomicU32::new(0)).collect();
    let end = |request: usize| endings[request].fetch_add(1, Ordering::Relaxed);
    let (completed, expired) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let (end, expired, completed) = (&end, &expired, &completed);
        let queue = engine.queue(0);
        scope.spawn(move || {
            for request in queue {
                end(request.into_payload());
                expired.fetch_add(1, Ordering::Relaxed);
            }
        });
        // An answer comes when a thousand more requests have been made: some
        // milliseconds later, which is also when the time-outs come. One
        // request in a hundred can be sure of its answer.
        let clients: Vec<_> = (0..THREADS)
            .map(|thread| {
                let engine = &engine;
                scope.spawn(move || {
                    let mut random = Rng::with_seed(thread as u64 + 1);
                    let mut pending = VecDeque::new();
                    for request in (thread..REQUESTS).step_by(THREADS) {
                        let timeout = match request % 100 < THREADS {
                            true => 3_600 * SECOND,
                            false => Duration::from_micros(random.u64(..8_000)),
                        };
                        let timer = Timer::after(timeout, request);
                        pending.push_back((request, engine.schedule(timer).unwrap()));
                        if pending.len() > 1_000 {
                            answer(engine, pending.pop_front(), end, completed);
                        }
                        if request % 500 < THREADS {
                            thread::sleep(MS);
                        }
                    }
                    while !pending.is_empty() {
                        answer(engine, pending.pop_front(), end, completed);
                    }
                })
            })
            .collect();
        clients
            .into_iter()
            .for_each(|client| client.join().unwrap());
        assert!(engine.drain(SECOND).is_empty());
    });
    let once = |ended: &AtomicU32| ended.load(Ordering::Relaxed) == 1;
    assert!(endings.iter().all(once));
    let (completed, expired) = (completed.into_inner(), expired.into_inner());
    assert!(completed > 0 && expired > 0, "there was no race");
    let ledger = engine.ledger();
    assert!(ledger.is_balanced());
    assert_eq!(ledger.cancelled, completed as u64);
    assert_eq!(ledger.completed, expired as u64);
}

/// The answer to a request has come: it is completed, unless it has expired.
fn answer(
    engine: &Engine<usize>,
    pending: Option<(usize, TimerId)>,
    end: impl Fn(usize) -> u32,
    completed: &AtomicUsize,
) {
    let Some((request, timeout)) = pending else {
        return;
    };
    if engine.cancel(timeout) == Cancel::Cancelled(request) {
        end(request);
        completed.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn f_better_submitters_share_no_lock() {
    // Each thread files into a wheel of its own, behind a lock of its own. An
    // id reads TimerId(wheel.entry.sequence).
    let engine = Engine::builder().shards(64).start().unwrap();
    let wheel_of = |id: TimerId| format!("{id:?}").split('.').next().unwrap().to_owned();
    let all_here = std::sync::Barrier::new(4);
    let wheels: Vec<BTreeSet<String>> = thread::scope(|scope| {
        let submit = || {
            all_here.wait();
            let schedule = |_| engine.schedule(Timer::after(SECOND, ())).unwrap();
            let wheels = (0..100).map(schedule).map(wheel_of).collect();
            all_here.wait();
            wheels
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(submit)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(wheels.iter().all(|of_one_thread| of_one_thread.len() == 1));
    let different: BTreeSet<_> = wheels.iter().flatten().collect();
    assert_eq!(different.len(), 4);
}

#[test]
fn f_better_no_wake_up_for_slots_of_cancelled_timers() {
    let mut wheel = kafka();
    let ids = [5, 350, 450].map(|deadline| schedule_at(&mut wheel, deadline));
    schedule_at(&mut wheel, 9_000);
    for (id, next) in ids.into_iter().zip([340, 400, 8_000]) {
        wheel.cancel(id);
        assert_eq!(wheel.next_wakeup(), Some(Tick(next)));
    }
    let mut wheel = kafka();
    let id = schedule_at(&mut wheel, 5);
    wheel.cancel(id);
    assert_eq!(wheel.next_wakeup(), None);

    // The engine lets an alarm that is already set ring once, and then sees
    // that none of the other slots needs one.
    let engine = Engine::builder().start().unwrap();
    let before = engine.snapshot().wakeups;
    let delays = (0..100).map(|n| 50 * MS + n * MS);
    let ids: Vec<_> = delays
        .map(|delay| engine.schedule(Timer::after(delay, ())).unwrap())
        .collect();
    for id in ids {
        assert_eq!(engine.cancel(id), Cancel::Cancelled(()));
    }
    thread::sleep(250 * MS);
    let wakeups = engine.snapshot().wakeups - before;
    assert!(wakeups < 20, "{wakeups} wake-ups for 100 cancelled timers");
}
