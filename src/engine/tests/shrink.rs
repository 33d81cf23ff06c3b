//! Shrinking during walks, during drains, and while other threads use the engine.

use crate::shard::{Phase, Shard, shrink};

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::{Cancel, Engine, Time, Timer, TimerId, VirtualClock};

const COUNT: u64 = 4_000;

/// Returns an engine of one shard in which only the youngest timers are left, and
/// its clock.
fn with_the_youngest() -> (Engine<u64>, HashSet<TimerId>, VirtualClock) {
    let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let at = |n| Timer::at(Time::from_millis(1 + n * 7_919 % COUNT), n);
    let ids: Vec<_> = (0..COUNT)
        .map(|n| engine.schedule(at(n)).unwrap())
        .collect();
    let (gone, stay) = ids.split_at(COUNT as usize * 3 / 4);
    gone.iter().for_each(|&id| _ = engine.cancel(id));
    (engine, stay.iter().copied().collect(), clock)
}

fn entries(engine: &Engine<u64>) -> usize {
    let entries = |shard: &mut Shard<u64>| shard.wheel.entries_in_use();
    engine.core.with_shard(0, entries).unwrap()
}

#[test]
fn who_walks_meanwhile_sees_each_timer_once() {
    let (engine, stay, _clock) = with_the_youngest();
    let before = entries(&engine);
    let mut walk = engine.live();
    let mut seen: Vec<TimerId> = walk.by_ref().take(10).map(|timer| timer.id).collect();
    engine.shrink();
    seen.extend(walk.map(|timer| timer.id));
    assert_eq!(seen.len(), stay.len());
    assert_eq!(seen.into_iter().collect::<HashSet<_>>(), stay);
    assert_eq!(entries(&engine), before);
    engine.shrink();
    assert!(entries(&engine) < before / 2);
}

#[test]
fn a_walk_that_is_given_up_keeps_nothing_from_shrinking() {
    let (engine, ..) = with_the_youngest();
    let before = entries(&engine);
    assert!(engine.live().next().is_some());
    engine.shrink();
    assert!(entries(&engine) < before / 2);
}

#[test]
fn a_shard_that_is_drained_keeps_its_timers_where_they_are() {
    let (engine, ..) = with_the_youngest();
    let before = entries(&engine);
    let drain = |shard: &mut Shard<u64>| shard.phase = Phase::Draining;
    engine.core.with_shard(0, drain).unwrap();
    engine.shrink();
    assert_eq!(entries(&engine), before);
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
    let consistent = |shard: &mut Shard<u64>| shard.wheel.assert_consistent();
    assert_eq!(engine.live().count() as u64, ledger.live);
    // Ready timers are not on any list that the wheel knows of.
    engine.queue(0).try_iter().for_each(drop);
    (0..2).for_each(|shard| engine.core.with_shard(shard, consistent).unwrap());
}

#[test]
fn a_hold_of_the_lock_touches_a_bounded_number_of_cells() {
    let (engine, ..) = with_the_youngest();
    let mut holds = 0;
    let mut shrink = |shard: &mut Shard<u64>| {
        holds += 1;
        shard.shrink_some()
    };
    let begin = |shard: &mut Shard<u64>| drop(shard.begin_shrink());
    engine.core.with_shard(0, begin).unwrap();
    while !engine.core.with_shard(0, &mut shrink).unwrap() {}
    assert!(holds >= COUNT as usize / shrink::CELLS_PER_HOLD, "{holds}");
}

/// Timers become due, and move, between two holds of the lock. A worker that takes many
/// then finds each where it is.
#[test]
fn timers_that_become_due_meanwhile_are_found_where_they_are() {
    let (engine, stay, clock) = with_the_youngest();
    let begin = |shard: &mut Shard<u64>| drop(shard.begin_shrink());
    engine.core.with_shard(0, begin).unwrap();
    clock.advance(Duration::from_millis(COUNT));
    while !engine.core.with_shard(0, Shard::shrink_some).unwrap() {}
    let mut payloads = Vec::new();
    while engine.queue(0).try_recv_many(&mut payloads, 100).is_ok() {}
    assert_eq!(payloads.len(), stay.len());
    assert!(payloads.iter().all(|&n| n >= COUNT * 3 / 4));
    assert!(engine.ledger().is_balanced());
}
