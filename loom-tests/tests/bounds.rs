//! The bounds on live timers, and on the firings that a queue hands out.

#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;
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

/// A queue that hands out one firing at a time is full. When the firing is dropped,
/// one of two workers goes on; both end with the engine.
#[test]
fn a_full_queue_and_two_workers_and_shutdown() {
    model(|| {
        let (engine, clock) = builder(1).queue_bound(1).start_virtual().unwrap();
        for name in 0..2 {
            engine.schedule(Timer::at(tick(1), payload(name))).unwrap();
        }
        clock.advance_to(tick(1));
        let held = engine.queue(0).try_recv().unwrap();
        let workers = [0, 1].map(|_| {
            let (queue, engine) = (engine.queue(0), engine.clone());
            thread::spawn(move || {
                let taken = queue.recv().is_ok();
                // Otherwise the other worker would wait for ever.
                assert!(engine.shutdown().is_empty() || !taken);
                usize::from(taken)
            })
        });
        assert_eq!(held.into_payload().name(), 0);
        let taken = workers.map(|worker| worker.join().unwrap());
        assert_eq!(taken.iter().sum::<usize>(), 1);
        assert_all_ended(engine.ledger());
        assert_eq!(engine.ledger().completed, 2);
    });
}
