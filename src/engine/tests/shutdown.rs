//! Shutdowns during which other calls run between two holds of a lock.

use crate::engine::Engine;
use crate::shard::{CELLS_PER_HOLD, CELLS_PER_TIMER};
use crate::tick::Tick;
use crate::timer::{Cancel, Refusal, Timer};
use crate::wheel::Cursor;

use std::collections::HashSet;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const TIMERS: usize = 3 * CELLS_PER_HOLD / CELLS_PER_TIMER;

#[test]
fn a_timer_that_a_walk_has_ended_is_not_the_earliest() {
    let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let [first, second] = [3 * MS, 5 * MS].map(|delay| {
        let id = engine.schedule(Timer::after(delay, ())).unwrap();
        (id, engine.deadline(id))
    });
    let cell = &engine.core.shards[0];
    assert_eq!(engine.core.close(cell), 2);
    assert_eq!(engine.earliest_deadline(), first.1);
    let mut shard = cell.lock();
    let at = shard.wheel.find(first.0).unwrap();
    assert!(shard.close_one(at, Tick(0)).is_some());
    drop(shard);
    assert_eq!(engine.earliest_deadline(), second.1);
}

/// Each timer ends once, whatever other calls do between two holds.
#[test]
fn between_two_holds_timers_are_cancelled_taken_and_moved_and_end_once() {
    let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let timer = |n: usize| match n % 5 {
        0 => Timer::after(MS, n), // expired when the shutdown begins
        1 => Timer::every(500 * MS, n).reported(),
        _ => Timer::after((2 + n as u32 % 3) * MS, n),
    };
    let ids: Vec<_> = (0..TIMERS).map(|n| engine.schedule(timer(n)).unwrap()).collect();
    clock.advance(MS);
    let (core, now) = (&engine.core, engine.current_tick());
    let cell = &core.shards[0];
    assert_eq!(core.close(cell), TIMERS);

    let (mut cursor, mut closed, mut others) = (Cursor::START, Vec::new(), Vec::new());
    let mut holds = 1;
    while !cell.lock().close_some(&mut cursor, now, &mut closed) {
        holds += 1;
        let refused = engine.schedule(Timer::after(MS, 0)).unwrap_err();
        assert_eq!(refused.reason(), Refusal::ShutDown);
        for &id in ids.iter().skip(holds).step_by(11) {
            others.extend(engine.cancel(id).into_payload());
        }
        for &id in ids.iter().skip(holds).step_by(3) {
            let _ = engine.reschedule(id, Duration::ZERO);
        }
        clock.advance(10 * MS);
        engine.shrink();
        let queue = engine.queue(0);
        let taken = queue.try_iter().take(5);
        others.extend(taken.map(|expired| expired.into_payload()));
        assert!(engine.ledger().is_balanced());
        assert_eq!(engine.ledger().live, engine.live().count() as u64);
    }
    assert!(holds > 2 && others.len() > 100, "{holds}");
    let closed = closed.into_iter().filter_map(|closed| closed.payload);
    let all: Vec<usize> = closed.chain(others).collect();
    assert_eq!(all.len(), TIMERS);
    assert_eq!(all.into_iter().collect::<HashSet<_>>().len(), TIMERS);
    assert_eq!(engine.ledger().live, 0);
    assert!(ids.iter().all(|&id| engine.cancel(id) == Cancel::Gone));
}

/// An edge-triggered loop that has heard of the end may have found that timers were left.
#[test]
#[cfg(target_os = "linux")]
fn a_shutdown_that_ends_timers_after_another_calls_the_loop_again() {
    use std::{fs::File, io::Read, os::fd::AsFd};
    let (engine, driver) = Engine::builder().start_driven().unwrap();
    let mut calls = File::from(driver.as_fd().try_clone_to_owned().unwrap());
    let mut is_called = || calls.read(&mut [0; 8]).is_ok();
    engine.schedule(Timer::after(MS, 0)).unwrap();
    // By a thread whose walk has left this timer to us.
    engine.core.alarm.stop(|| ());
    assert!(is_called() && !is_called());
    assert_eq!(engine.shutdown().len(), 1);
    assert!(is_called());
}

#[test]
fn the_last_one_is_found_however_far_behind_it_is() {
    let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let schedule = |n| engine.schedule(Timer::after(Duration::from_secs(9), n)).unwrap();
    let ids: Vec<_> = (0..3 * CELLS_PER_HOLD).map(schedule).collect();
    engine.cancel_many(&ids[..ids.len() - 1]);
    assert_eq!(engine.shutdown().len(), 1);
}
