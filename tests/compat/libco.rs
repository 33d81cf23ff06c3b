//! E. libco's one flat wheel of 60,000 slots of 1 ms.

use super::*;
use tickwheel::wheel::Geometry;

const TURN: u64 = 60_000;

fn flat() -> Wheel<u64> {
    let geometry = Geometry::new(TURN as usize).unwrap();
    Wheel::with_geometry(Tick(0), geometry.max_levels(1).unwrap())
}

#[test]
fn e1_one_level_of_60_000_slots() {
    let mut wheel = flat();
    let geometry = wheel.geometry();
    assert_eq!((geometry.levels(), geometry.size()), (1, 60_000));
    // Whatever is within reach has the slot of its own tick.
    for deadline in [1, 2, 30_000, 59_999] {
        let id = wheel.schedule_at(Tick(deadline), deadline);
        assert_eq!(slot_of(&wheel, id), (0, deadline as usize, deadline));
    }
}

#[test]
fn e1_a_deadline_beyond_the_range_waits_behind_the_farthest_slot() {
    for seconds in [61, 600, 3_600, 86_400] {
        let deadline = seconds * 1_000;
        let mut wheel = flat();
        let id = wheel.schedule_at(Tick(deadline), deadline);
        // It is looked at when the turn with its deadline begins, and not in those before.
        let turn = deadline / TURN * TURN;
        assert_eq!(slot_of(&wheel, id), (1, 0, turn));
        assert_eq!(wheel.next_wakeup(), Some(Tick(turn)));
        if turn < deadline {
            assert_eq!(fire(&mut wheel, turn), []);
            assert_eq!(slot_of(&wheel, id), (0, (deadline % TURN) as usize, deadline));
        }
        assert_eq!(fire(&mut wheel, deadline - 1), []);
        assert_eq!(fire(&mut wheel, deadline).len(), 1);
    }
}

#[test]
fn e2_a_jump_of_more_than_a_turn_visits_each_slot_once() {
    let mut wheel = flat();
    let mut schedule = |deadline| {
        wheel.schedule_at(Tick(deadline), deadline);
        (deadline, deadline)
    };
    let expected: Vec<_> = (7..TURN).step_by(100).map(&mut schedule).collect();
    let waiting = (100 * TURN..100 * TURN + 500).map(&mut schedule).count();
    // So far that visiting every slot of every turn would never end.
    schedule(1 << 60);
    let (mut fired, mut calls) = (Vec::new(), 1);
    while wheel.advance(Tick(10 * TURN), 1, |wheel, due| {
        fired.push((wheel.now().0, due.payload));
    }) == Advance::More
    {
        calls += 1;
    }
    assert_eq!(fired, expected);
    assert_eq!((wheel.now(), wheel.len()), (Tick(10 * TURN), waiting + 1));
    // Once each, and not what waits in the farthest slot in each of ten turns.
    assert!(calls <= fired.len() + wheel.len() + 1, "{calls} calls");
    // Everything that is due, even from beyond the range.
    assert_eq!(fire(&mut wheel, (1 << 60) - 1).len(), waiting);
    assert_eq!(fire(&mut wheel, 1 << 60), [(1 << 60, 1 << 60)]);
}

#[test]
fn e3_a_timer_for_a_tick_whose_slot_was_taken_still_fires() {
    let mut wheel = flat();
    wheel.schedule_at(Tick(500), 0);
    let mut seen = Vec::new();
    let _ = wheel.advance(Tick(500), usize::MAX, |wheel, expired| {
        if expired.payload < 2 {
            wheel.schedule_at(Tick(500), expired.payload + 1);
        }
        seen.push((wheel.now().0, expired.payload));
    });
    assert_eq!(seen, [(500, 0)]);
    // In the next pass, and once in each.
    assert_eq!(wheel.next_wakeup(), Some(Tick(500)));
    assert_eq!(fire(&mut wheel, 500), [(500, 1)]);
}

#[cfg(target_os = "linux")]
#[test]
fn e4_readiness_and_timeout_unlink_each_other() {
    use crate::epoll::{Epoll, Trigger};
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    let (epoll, mut wheel) = (Epoll::new(), Wheel::new(64));
    let [early, in_time, late] = [0, 1, 2].map(|n| {
        let (near, far) = UnixStream::pair().unwrap();
        epoll.add(&near, n, Trigger::Level);
        (near, far, wheel.schedule_after(100, n))
    });
    // What is ready comes before what has expired, and its time-out is gone at once.
    for (n, (near, mut far, timeout), left) in [(0, early, 2), (1, in_time, 1)] {
        far.write_all(b"x").unwrap();
        assert_eq!(epoll.wait(Some(Duration::ZERO)), [n]);
        drop(near);
        assert_eq!((wheel.cancel(timeout), wheel.len()), (Some(n), left));
    }
    assert_eq!(fire(&mut wheel, 100), [(100, 2)]);
    // The time-out has unlinked the descriptor: its other end is closed.
    let (near, mut far, _) = late;
    drop(near);
    assert!(far.write_all(b"x").is_err());
    assert!(epoll.wait(Some(Duration::ZERO)).is_empty());
}

#[test]
fn e_better_cancel_any_timer_in_constant_time() {
    // All in the farthest slot.
    assert_cancels_in_constant_time(flat, 10 * TURN);
}

#[test]
fn e_better_no_wake_up_each_millisecond() {
    let flat = Engine::builder().wheel_size(60_000).max_levels(1);
    let engine = flat.start().unwrap();
    engine.schedule(Timer::after(200 * MS, "t")).unwrap();
    assert!(engine.queue(0).recv_timeout(PATIENCE).is_ok());
    assert!(engine.snapshot().wakeups < 20);
}

#[test]
fn e_better_no_coroutine_or_thread_for_each_timer() {
    let (tasks, clock) = TaskEngine::builder().workers(1).start_virtual().unwrap();
    let (tell, told) = mpsc::channel();
    for n in 0..1_000 {
        let tell = tell.clone();
        let say_where = move || tell.send(thread::current().id()).unwrap();
        tasks.run_after(n % 10 * MS, say_where).unwrap();
    }
    clock.run_until(Time::from_secs(1));
    let threads: Vec<_> = told.try_iter().collect();
    assert_eq!(threads, [threads[0]; 1_000]);
}
