//! F. Kafka's hierarchical wheel, the shape of this one. Wheel size 20, a tick of
//! 1 ms, starting at 0; levels are counted from 1 here, as in the articles.

use super::*;
use std::collections::BTreeSet;
use tickwheel::{Expired, RecvError};

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

/// The first and the last tick of the slot in which a timer hangs, found by trying which
/// deadlines share it.
fn range(wheel: &mut Wheel<u64>, id: TimerId) -> (u64, u64) {
    let slot = slot_of(wheel, id);
    let mut shares = |&deadline: &u64| {
        let other = schedule_at(wheel, deadline);
        let shares = slot_of(wheel, other) == slot;
        wheel.cancel(other);
        shares
    };
    assert!(!shares(&(slot.2 - 1)));
    let shared = (slot.2..).take_while(shares);
    (slot.2, shared.last().unwrap())
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

/// Moves to each of these ticks and asserts where the timer hangs by then, while nothing
/// fires.
fn assert_places(wheel: &mut Wheel<u64>, id: TimerId, places: &[(u64, (usize, usize))]) {
    for &(now, expected) in places {
        assert_eq!(fire(wheel, now), []);
        assert_eq!(place(wheel, id), expected, "at {now}");
    }
}

#[test]
fn f2_350_moves_from_level_2_to_level_1() {
    let mut wheel = kafka();
    let id = schedule_at(&mut wheel, 350);
    assert_places(&mut wheel, id, &[(0, (2, 17))]);
    assert_eq!(range(&mut wheel, id), (340, 359));
    let places = [(339, (2, 17)), (340, (1, 10)), (349, (1, 10))];
    assert_places(&mut wheel, id, &places);
    assert_eq!(fire(&mut wheel, 350), [(350, 350)]);
}

#[test]
fn f3_450_moves_from_level_3_down_to_level_1() {
    let mut wheel = kafka();
    let deadlines = [446, 450, 455, 473];
    let ids = deadlines.map(|deadline| schedule_at(&mut wheel, deadline));
    assert!(ids.iter().all(|&id| place(&wheel, id) == (3, 1)));
    let id = ids[1];
    assert_eq!(range(&mut wheel, id), (400, 799));
    assert_places(&mut wheel, id, &[(399, (3, 1)), (400, (2, 2))]);
    assert_eq!(range(&mut wheel, id), (440, 459));
    assert_places(&mut wheel, id, &[(439, (2, 2)), (440, (1, 10))]);
    assert_eq!(fire(&mut wheel, 449), [(446, 446)]);
    assert_eq!(fire(&mut wheel, 450), [(450, 450)]);
}

#[test]
fn f4_levels_begin_where_the_one_below_ends() {
    let mut wheel = kafka();
    for (deadline, expected) in [(399, (2, 19)), (400, (3, 1)), (8_000, (4, 1))] {
        assert!(wheel.slots().all(|slot| slot.level < 3), "too many levels");
        let id = schedule_at(&mut wheel, deadline);
        assert_eq!(place(&wheel, id), expected);
    }
    assert_eq!(fire(&mut wheel, 8_000).len(), 3);
}

#[test]
fn f5_a_delay_of_zero_or_less_fires_at_once() {
    let mut wheel = kafka();
    assert_eq!(fire(&mut wheel, 50), []);
    wheel.schedule_after(0, 0);
    schedule_at(&mut wheel, 13);
    // By deadline, whatever has been reached.
    assert_eq!(fire(&mut wheel, 50), [(50, 13), (50, 0)]);
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
    schedule_at(&mut wheel, 3);
    assert_eq!((wheel.cancel(far), wheel.len()), (Some(u64::MAX), 1));
    assert_eq!((wheel.cancel(far), wheel.len()), (None, 1));
    assert_eq!(wheel.slots().count(), 1);
}

#[test]
fn f5_cancel_takes_constant_time() {
    assert_cancels_in_constant_time(kafka, 450);
}

#[test]
fn f6_empty_stretches_cost_nothing() {
    let mut wheel = kafka();
    let deadlines = [2, 350, 446, 450, 8_000, 10_u64.pow(18)];
    let _ids = deadlines.map(|deadline| schedule_at(&mut wheel, deadline));
    // The clock stands only where a slot that holds something begins.
    let (mut fired, mut stops) = (Vec::new(), 0);
    while let Some(next) = wheel.next_wakeup() {
        assert_eq!(wheel.slots().map(|slot| slot.start).min(), Some(next));
        assert_eq!(fire(&mut wheel, next.0 - 1), []);
        fired.extend(fire(&mut wheel, next.0));
        stops += 1;
    }
    assert!(fired.iter().map(|&(deadline, _)| deadline).eq(deadlines));
    // 10^18 passes through at most each of its 14 levels.
    assert!(stops < 24, "{stops} stops for six timers");
}

#[test]
fn f7_closing_never_runs_what_is_pending() {
    let (engine, clock) = virtual_engine();
    engine.schedule(Timer::after(MS, "due")).unwrap();
    engine.schedule(Timer::after(SECOND, "pending")).unwrap();
    clock.advance(MS);
    let mut closed: Vec<_> = engine.shutdown().into_iter().map(|c| c.payload).collect();
    closed.sort();
    assert_eq!(closed, [Some("due"), Some("pending")]);
    clock.advance(10 * SECOND);
    assert_eq!(engine.queue(0).try_recv().unwrap_err(), RecvError::ShutDown);
}

#[test]
fn f8_a_request_completes_or_expires_and_never_both() {
    const REQUESTS: u64 = 10_000;
    let engine = Engine::builder().start().unwrap();
    let queue = engine.queue(0);
    let expire = move || queue.map(Expired::into_payload).collect::<Vec<_>>();
    let expiring = thread::spawn(expire);
    let mut random = Rng::with_seed(1);
    let (mut waiting, mut completed) = (Vec::new(), Vec::new());
    for request in 0..REQUESTS {
        let timeout = Duration::from_micros(random.u64(..2_000));
        let timer = Timer::after(timeout, request);
        waiting.push(engine.schedule(timer).unwrap());
        // Answers come in batches, at times at which the time-outs come, too.
        if request % 500 == 499 {
            thread::sleep(MS);
            let answered = waiting.drain(..).map(|timeout| engine.cancel(timeout));
            completed.extend(answered.filter_map(Cancel::into_payload));
        }
    }
    assert!(engine.drain(PATIENCE).is_empty());
    let expired = expiring.join().unwrap();
    assert!(!expired.is_empty());
    let mut ended = [completed, expired].concat();
    ended.sort_unstable();
    assert!(ended.into_iter().eq(0..REQUESTS));
}

#[test]
fn f_better_submitters_share_no_lock() {
    // Each thread files into a wheel of its own, behind a lock of its own. An
    // id reads TimerId(wheel.entry.sequence).
    let engine = Engine::builder().shards(64).start().unwrap();
    let all_here = std::sync::Barrier::new(4);
    let submit = || {
        all_here.wait();
        let schedule = |_| engine.schedule(Timer::after(SECOND, "t")).unwrap();
        let ids = [(); 100].map(schedule).map(|id| format!("{id:?}"));
        all_here.wait();
        ids.map(|id| id.split('.').next().unwrap().to_owned())
    };
    let wheels = thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(submit));
        threads.map(|thread| BTreeSet::from(thread.join().unwrap()))
    });
    assert!(wheels.iter().all(|of_one_thread| of_one_thread.len() == 1));
    assert_eq!(wheels.iter().flatten().collect::<BTreeSet<_>>().len(), 4);
}

/// That an engine's ticker does not wake for them, promise 13 shows.
#[test]
fn f_better_no_wake_up_for_slots_of_cancelled_timers() {
    let mut wheel = kafka();
    let ids = [5, 350, 450, 9_000].map(|deadline| schedule_at(&mut wheel, deadline));
    let then = [Some(340), Some(400), Some(8_000), None];
    for (id, next) in ids.into_iter().zip(then) {
        wheel.cancel(id);
        assert_eq!(wheel.next_wakeup(), next.map(Tick));
    }
}
