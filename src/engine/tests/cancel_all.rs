//! Cancelling everything while other calls run between two holds of a lock.

use std::time::Duration;

use crate::engine::Engine;
use crate::id::TimerId;
use crate::shard::walk::CANCELS_PER_HOLD;
use crate::timer::{Cancel, Timer};
use crate::wheel::Cursor;

const TIMERS: usize = 10 * CANCELS_PER_HOLD;

fn schedule(engine: &Engine<usize>, payload: usize) -> TimerId {
    let timer = Timer::after(Duration::from_secs(9), payload);
    engine.schedule(timer).unwrap()
}

/// Timers that come between two holds take over entries that the walk has not reached,
/// and entries behind the last one.
#[test]
fn a_hold_cancels_a_bounded_number_and_later_timers_live_on() {
    let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let ids: Vec<_> = (0..TIMERS).map(|n| schedule(&engine, n)).collect();
    let core = &engine.core;
    let youngest = core.shards[0].lock().wheel.youngest.sequence();
    let (mut cursor, now) = (Cursor::START, || core.tick_now());
    let mut cancelled = Vec::new();
    let (mut holds, mut by_id, mut later) = (0, 0, 0);
    loop {
        let before = cancelled.len();
        let done = core.walk_once(&core.shards[0], |shard| {
            shard.cancel_some(&mut cursor, youngest, now, &mut cancelled)
        });
        assert!(cancelled.len() - before <= CANCELS_PER_HOLD);
        holds += 1;
        if done {
            break;
        }
        engine.shrink();
        let victim = ids[TIMERS - holds];
        by_id += usize::from(engine.cancel(victim).into_payload().is_some());
        for _ in 0..2 {
            schedule(&engine, TIMERS);
            later += 1;
        }
    }
    assert!(holds >= 9 && by_id > 0, "{holds}, {by_id}");
    assert_eq!(cancelled.len() + by_id, TIMERS);
    let mut payloads = cancelled.into_iter().map(|(_, it)| it.into_payload());
    assert!(payloads.all(|payload| payload.is_some_and(|payload| payload < TIMERS)));
    assert_eq!(engine.live().count(), later);
}

/// A walk that is complete does not keep its shard from shrinking.
#[test]
fn after_all_were_cancelled_a_shard_can_shrink() {
    let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
    (0..TIMERS).for_each(|n| _ = schedule(&engine, n));
    let last = schedule(&engine, TIMERS);
    let offers = engine.core.shards[0].shard.pretend_an_urgent_waiter();
    assert_eq!(engine.cancel_all().len(), TIMERS + 1);
    // Others are let in between two holds.
    assert!(offers() >= 9);
    assert!(engine.deadline(last).is_none());
    let shard = engine.core.shards[0].lock();
    assert_eq!(shard.live(), 0);
}

#[test]
fn what_was_not_started_is_cancelled_with_all() {
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    let unstarted = engine.create(Timer::after(Duration::from_secs(9), 7)).unwrap();
    let cancelled = engine.cancel_all();
    assert_eq!(cancelled, [(unstarted.id(), Cancel::Cancelled(7))]);
    assert_eq!(unstarted.dismiss(), None);
}
