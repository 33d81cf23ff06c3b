//! A timer expires while other threads cancel it, postpone it or shut down.

#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use tickwheel::{RecvError, Refusal, Timer, TimerId};
use tickwheel_loom_tests::{
    Payload, assert_all_ended, beside, cancel_beside, engine_model, payload, take_all, tick,
    ticker_model,
};

/// Each of two timers has one outcome, and the ledger balances.
#[test]
fn cancel_and_shutdown() {
    engine_model(|engine, clock| {
        let id = engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
        let queue = engine.queue(0);
        let time = thread::spawn(move || {
            clock.advance_to(tick(1));
            take_all(&queue)
        });
        let canceller = beside(&engine, move |engine| engine.cancel(id).into_payload());
        let returned = engine.shutdown();
        let mut ends: Vec<u32> = time.join().unwrap().iter().map(|p| p.name()).collect();
        let taken = ends.len() as u64;
        let cancelled = canceller.join().unwrap();
        ends.extend(cancelled.iter().map(|p| p.name()));
        ends.extend(returned.iter().map(|c| c.payload.as_ref().unwrap().name()));
        ends.sort_unstable();
        assert_eq!(ends, [0, 1]);
        let ledger = engine.ledger();
        assert_all_ended(ledger);
        assert_eq!(ledger.completed, taken);
        assert_eq!(ledger.cancelled, cancelled.iter().count() as u64);
        assert_eq!(ledger.shut_down, returned.len() as u64);
        assert!(engine.queue(0).is_empty());
    });
}

/// A handle that asks after a shutdown is told of it, even while another one passes that on.
#[test]
fn ask_after_a_shutdown() {
    engine_model(|engine, _clock| {
        let (queue, other) = (engine.queue(0), engine.queue(0));
        let worker = thread::spawn(move || other.try_recv().err());
        engine.shutdown();
        assert_eq!(queue.try_recv().err(), Some(RecvError::ShutDown));
        worker.join().unwrap();
    });
}

/// A slot is cascaded and fired entry by entry, while one of its timers is cancelled
/// and another one joins it: no timer is skipped or fires twice, and the order is
/// kept.
#[test]
fn half_fired_slot() {
    // The timer that joins takes over the entry of the cancelled one.
    const LAST: u32 = 9;
    engine_model(|engine, clock| {
        let schedule = |name| engine.schedule(Timer::at(tick(5), payload(name))).unwrap();
        let ids: Vec<TimerId> = (0..=LAST).map(schedule).collect();
        let time = thread::spawn(move || {
            clock.advance_to(tick(5));
            clock
        });
        let cancelled = engine.cancel(ids[1]).into_payload().unwrap();
        schedule(LAST + 1);
        let clock = time.join().unwrap();
        clock.advance_to(tick(5));
        let taken = take_all(&engine.queue(0));
        let left = (0..=LAST + 1).filter(|&name| name != cancelled.name());
        assert!(left.eq(taken.iter().map(Payload::name)));
        assert_all_ended(engine.ledger());
    });
}

/// The id of a taken timer does not reach the timer that took over its entry.
#[test]
fn stale_id() {
    engine_model(|engine, clock| {
        let id = engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        clock.advance_to(tick(1));
        let others = [0, 1].map(|_| cancel_beside(&engine, id));
        let taken = take_all(&engine.queue(0)).len();
        engine.schedule(Timer::at(tick(2), payload(1))).unwrap();
        let cancelled = others.map(|other| usize::from(other.join().unwrap()));
        assert_eq!(taken + cancelled.iter().sum::<usize>(), 1);
        clock.advance_to(tick(2));
        assert_eq!(take_all(&engine.queue(0))[0].name(), 1);
        assert_all_ended(engine.ledger());
    });
}

/// A postponed timer fires once, at its old deadline or at its new one.
#[test]
fn postpone() {
    engine_model(|engine, clock| {
        let id = engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        let queue = engine.queue(0);
        let time = thread::spawn(move || {
            clock.advance_to(tick(1));
            let taken = take_all(&queue).len();
            (clock, queue, taken)
        });
        let postponed = engine.reschedule(id, tick(3));
        let (clock, queue, taken) = time.join().unwrap();
        clock.advance_to(tick(2));
        assert_eq!(take_all(&queue).len(), 0);
        clock.advance_to(tick(3));
        let taken_later = take_all(&queue).len();
        match postponed {
            Ok(()) => assert_eq!((taken, taken_later), (0, 1)),
            Err(why) => assert_eq!((why, taken, taken_later), (Refusal::Gone, 1, 0)),
        }
        assert_all_ended(engine.ledger());
    });
}

/// The last handle is dropped while a timer expires: no payload and no thread is
/// left, and the worker learns of the end.
#[test]
fn last_handle_dropped() {
    ticker_model(|engine, clock| {
        engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        let queue = engine.queue(0);
        let time = thread::spawn(move || clock.pass_to(tick(1)));
        drop(engine);
        while queue.recv().is_ok() {}
        time.join().unwrap();
    });
}

/// A handle that is upgraded while the last one is dropped belongs to an engine that
/// is not shut down.
#[test]
fn last_handle_dropped_and_upgrade() {
    engine_model(|engine, _clock| {
        let weak = engine.downgrade();
        // The scheduler doesn't see the count of handles, so each thread touches this before it
        // changes the count: the changes then come in either order.
        let before = Arc::new(AtomicUsize::new(0));
        let before_other = Arc::clone(&before);
        let other = thread::spawn(move || {
            before_other.fetch_add(1, Ordering::AcqRel);
            if let Some(engine) = weak.upgrade() {
                engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
                assert!(!engine.is_shut_down());
            }
        });
        before.fetch_add(1, Ordering::AcqRel);
        drop(engine);
        other.join().unwrap();
    });
}
