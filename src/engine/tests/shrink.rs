//! Shrinking during walks, and while other threads use the engine.

use crate::shard::walk::TRIMMED_PER_HOLD;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::{Cancel, Engine, Time, Timer, TimerId, VirtualClock};

const COUNT: u64 = 4_000;

/// Returns an engine of one shard in which only the oldest timers are left, and its clock.
fn with_the_oldest() -> (Engine<u64>, HashSet<TimerId>, VirtualClock) {
    let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let at = |n| Timer::at(Time::from_millis(1 + n * 7_919 % COUNT), n);
    let ids: Vec<_> = (0..COUNT).map(|n| engine.schedule(at(n)).unwrap()).collect();
    let (stay, gone) = ids.split_at(COUNT as usize / 4);
    gone.iter().for_each(|&id| _ = engine.cancel(id));
    (engine, stay.iter().copied().collect(), clock)
}

fn bytes(engine: &Engine<u64>) -> usize {
    engine.core.shards[0].lock().wheel.entries.bytes()
}

#[test]
fn who_walks_meanwhile_sees_each_timer_once() {
    let (engine, stay, _clock) = with_the_oldest();
    let before = bytes(&engine);
    let mut walk = engine.live();
    let mut seen: Vec<TimerId> = walk.by_ref().take(10).map(|timer| timer.id).collect();
    engine.shrink();
    assert!(bytes(&engine) < before / 2);
    seen.extend(walk.map(|timer| timer.id));
    assert_eq!(seen.len(), stay.len());
    assert_eq!(seen.into_iter().collect::<HashSet<_>>(), stay);
}

#[test]
fn after_a_shutdown_a_shard_keeps_no_more_than_reports_need() {
    let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let new = bytes(&engine);
    let schedule = |timer| engine.schedule(timer).unwrap();
    let reported = schedule(Timer::at(Time::MAX, 0).reported());
    (1..COUNT).for_each(|n| _ = schedule(Timer::at(Time::from_millis(n % 100), n)));
    assert_eq!(engine.shutdown().len() as u64, COUNT);
    engine.shrink();
    assert!(bytes(&engine) <= new + 1_024);
    assert_eq!(engine.reports().recv().unwrap().id, reported);
}

#[test]
fn a_shard_that_becomes_empty_gives_its_memory_back_by_itself() {
    let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let new = bytes(&engine);
    let fill = || -> Vec<_> {
        let at = |n| engine.now() + Duration::from_millis(1 + n % 100);
        (0..10_000).map(|n| engine.schedule(Timer::at(at(n), n)).unwrap()).collect()
    };
    fill();
    assert!(bytes(&engine) > 10 * new);
    clock.advance(Duration::from_millis(100));
    assert!(engine.snapshot().memory > bytes(&engine), "and hints");
    assert_eq!(engine.queue(0).try_iter().count(), 10_000);
    let memory = engine.snapshot().memory;
    assert!(memory <= new, "{memory} and {new} when new");
    fill().iter().for_each(|&id| _ = engine.cancel(id));
    assert!(bytes(&engine) <= new, "{} after the last cancel", bytes(&engine));
    let named = |n: u64| Timer::after(Duration::from_secs(n), n).named(n.to_string());
    (0..10_000).for_each(|n| _ = engine.schedule(named(n)).unwrap());
    engine.cancel_all();
    let memory = engine.snapshot().memory;
    assert!(memory <= new, "{memory} after the last one with a record");
}

/// Schedules and cancels at random, and checks that each timer still has
/// its payload. Returns the number of cancelled timers.
fn use_meanwhile(engine: &Engine<u64>, seed: u64) -> u64 {
    let (mut random, mut live, mut cancelled) = (seed, Vec::new(), 0);
    for step in 0..30_000u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005) + 1;
        // A thousand steps mostly cancel; the next thousand mostly schedule.
        let schedules = (random >> 40) % 4 < 1 + 2 * (step / 1_000 % 2);
        if schedules || live.is_empty() {
            let due = engine.now() + Duration::from_millis(random >> 33 & 0xFFFF);
            let id = engine.schedule(Timer::at(due, random)).unwrap();
            live.push((id, random));
        } else {
            let (id, payload) = live.swap_remove(random as usize % live.len());
            match engine.cancel(id) {
                Cancel::Cancelled(found) => assert_eq!(found, payload),
                other => assert_eq!(other, Cancel::Gone),
            }
            cancelled += u64::from(engine.deadline(id).is_none());
        }
    }
    cancelled
}

#[test]
fn others_use_the_engine_meanwhile() {
    let (engine, clock) = Engine::builder().shards(2).start_virtual().unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let users: Vec<_> = (1..4)
            .map(|seed| {
                let engine = &engine;
                scope.spawn(move || use_meanwhile(engine, seed))
            })
            .collect();
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                engine.shrink();
                clock.advance(Duration::from_millis(3));
                engine.queue(0).try_iter().for_each(drop);
            }
        });
        let ended: Vec<_> = users.into_iter().map(|user| user.join()).collect();
        over.store(true, Ordering::Relaxed);
        let cancelled = |ended: thread::Result<u64>| ended.is_ok_and(|n| n > 0);
        assert!(ended.into_iter().all(cancelled));
    });
    let ledger = engine.ledger();
    let ended = ledger.completed + ledger.cancelled;
    assert_eq!(ledger.accepted, ledger.live + ended);
    assert_eq!(engine.live().count() as u64, ledger.live);
    // Ready timers are not on any list that the wheel knows of.
    engine.queue(0).try_iter().for_each(drop);
    let shards = engine.core.shards.iter();
    shards.for_each(|cell| cell.lock().wheel.assert_consistent());
}

#[test]
fn a_hold_of_the_lock_touches_a_bounded_number_of_cells() {
    let (engine, ..) = with_the_oldest();
    let mut holds = 0;
    engine.core.walk(&engine.core.shards[0], |shard| {
        holds += 1;
        shard.shrink_some(TRIMMED_PER_HOLD)
    });
    assert!(holds >= COUNT as usize / 2 / TRIMMED_PER_HOLD, "{holds}");
}
