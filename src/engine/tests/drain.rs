//! The timers that a drain waits for, and the limit of its wait.

use std::time::Duration;

use crate::engine::Engine;
use crate::engine::end::{GRACE, grace};
use crate::shard::{CELLS_PER_HOLD, CELLS_PER_TIMER};
use crate::timer::Timer;
use crate::wheel::EntryIndex;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_drain_waits_for_its_limit_and_its_grace() {
    let engine = Engine::<()>::builder().start().unwrap();
    assert_eq!(engine.core.patience(3 * SECOND), 4 * SECOND);
    assert_eq!(engine.core.patience(SECOND / 4), SECOND + SECOND / 4);
    assert_eq!(engine.core.patience(Duration::MAX), Duration::MAX);
    let (engine, _clock) = Engine::<()>::builder().start_virtual().unwrap();
    assert_eq!(engine.core.patience(3 * SECOND), SECOND);
}

#[test]
fn the_grace_has_room_for_the_shutdown() {
    assert_eq!(grace(0), GRACE);
    assert_eq!(grace(1_000_000), GRACE - Duration::from_millis(100));
    assert_eq!(grace(u64::MAX), Duration::ZERO);
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    for n in 0..1_000 {
        engine.schedule(Timer::after(SECOND, n)).unwrap();
    }
    assert_eq!(engine.core.patience(SECOND), grace(1_000));
}

#[test]
fn a_level_that_comes_later_changes_nothing() {
    let builder = Engine::builder().shards(1);
    let (engine, _clock) = builder.start_virtual().unwrap();
    let [due, far] = [1, 1_000_000_000].map(|ms| {
        let timer = Timer::after(Duration::from_millis(ms), ());
        engine.schedule(timer).unwrap()
    });
    let cell = &engine.core.shards[0];
    let drain = cell.lock().begin_drain(engine.current_tick().after(50));
    assert!(cell.lock().count_some(drain));
    // To a level between the existing ones.
    engine.reschedule(far, 5 * SECOND).unwrap();
    assert!(!cell.lock().is_drained(drain));
    assert!(engine.cancel(due).is_cancelled());
    assert!(cell.lock().is_drained(drain));
}

/// Counts in several holds of the lock, with changes in between, and
/// compares the count with the timers that are there.
#[test]
fn the_count_follows_whatever_comes_and_goes() {
    const TIMERS: usize = 4 * CELLS_PER_HOLD / CELLS_PER_TIMER;
    let builder = Engine::builder().shards(1);
    let (engine, clock) = builder.start_virtual().unwrap();
    let due = |n: usize| Duration::from_millis(1 + 100 * (n as u64 % 2));
    let ids: Vec<_> = (0..TIMERS)
        .map(|n| engine.schedule(Timer::after(due(n), n)).unwrap())
        .collect();
    let last = engine.current_tick().after(50);
    let cell = &engine.core.shards[0];
    let drains = [last, last.after(100)].map(|last| cell.lock().begin_drain(last));
    let counted = |drain: usize| {
        let shard = cell.lock();
        let crate::shard::Awaited { last, counted, .. } = shard.drains[drain];
        let here = ids.iter().filter_map(|&id| shard.wheel.find(id));
        let waits = |at: &EntryIndex| counted.is_past(*at) && shard.is_awaited(*at, last);
        assert_eq!(shard.drains[drain].left, here.filter(waits).count());
    };
    let mut changes = 0;
    while !drains.iter().all(|&drain| cell.lock().count_some(drain)) {
        changes += 1;
        for (n, &id) in ids.iter().enumerate().skip(changes).step_by(7) {
            match (n + changes) % 4 {
                0 => drop(engine.cancel(id)),
                1 => drop(engine.cancel_many(&[id])),
                2 => drop(engine.reschedule(id, due(n + 1))),
                _ => drop(engine.reschedule(id, due(n))),
            }
        }
        clock.advance(Duration::from_millis(1));
        engine.queue(0).try_iter().take(50).for_each(drop);
        let _ = engine.queue(0).try_recv_many(&mut Vec::new(), 50);
        (0..2).for_each(counted);
    }
    assert!(changes > 2, "in one hold");
    clock.advance(SECOND);
    engine.queue(0).try_iter().for_each(drop);
    (0..2).for_each(counted);
    assert!(drains.iter().all(|&drain| cell.lock().is_drained(drain)));
}

/// A chain that is re-armed fires like a repeating timer, which no drain awaits.
#[test]
fn a_drain_counts_the_first_firing_of_a_chain_only() {
    const MS: Duration = Duration::from_millis(1);
    let builder = Engine::builder().shards(1);
    let (engine, clock) = builder.start_virtual().unwrap();
    let id = engine.schedule(Timer::after(MS, ()).rearmable()).unwrap();
    let cell = &engine.core.shards[0];
    let drains = [5, 50].map(|ticks| {
        let last = engine.current_tick().after(ticks);
        cell.lock().begin_drain(last)
    });
    assert!(cell.lock().count_some(drains[0]));
    assert!(!cell.lock().is_drained(drains[0]));
    for _ in 0..3 {
        clock.advance(MS);
        let due = engine.queue(0).try_recv().unwrap();
        assert!(cell.lock().is_drained(drains[0]));
        due.rearm(MS).unwrap();
        assert!(cell.lock().is_drained(drains[0]));
        engine.reschedule(id, 2 * MS).unwrap();
        engine.reschedule(id, MS).unwrap();
        assert!(cell.lock().is_drained(drains[0]));
    }
    assert!(cell.lock().count_some(drains[1]));
    assert!(cell.lock().is_drained(drains[1]));
    assert!(engine.cancel(id).is_cancelled());
    assert_eq!(cell.lock().drains[0].left, 0);
}
