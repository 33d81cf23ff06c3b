//! The bound on live timers.

#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tickwheel::{Engine, Timer};
use tickwheel_loom_tests::{Payload, assert_all_ended, beside, builder, model, payload, tick};

/// Schedules a timer if there is room for it, and cancels it again.
fn come_and_go(engine: &Engine<Payload>, live: &AtomicUsize) {
    let Ok(id) = engine.schedule(Timer::at(tick(1), payload(0))) else {
        return;
    };
    assert_eq!(live.fetch_add(1, Ordering::Relaxed), 0, "two are live");
    live.fetch_sub(1, Ordering::Relaxed);
    assert!(engine.cancel(id).into_payload().is_some());
}

/// Two threads with a shard each never exceed the bound, and lose no room.
#[test]
fn two_shards_and_room_for_one() {
    model(|| {
        let (engine, _clock) = builder(2).max_timers(1).start_virtual().unwrap();
        let live = Arc::new(AtomicUsize::new(0));
        let shared = Arc::clone(&live);
        let other = beside(&engine, move |engine| come_and_go(engine, &shared));
        come_and_go(&engine, &live);
        other.join().unwrap();
        engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
        assert_eq!(engine.shutdown().len(), 1);
        assert_all_ended(engine.ledger());
    });
}
