//! A timer is paused and resumed while it expires, and while its firing comes back.

#![cfg(loom)]

use loom::thread;
use tickwheel::{Engine, Timer, TimerId, VirtualClock};
use tickwheel_loom_tests::{
    Lent, Payload, assert_all_ended, beat, beside, engine_model, lent, model, payload, take_all,
    tick,
};

/// Returns how many timers fire by tick `n`.
fn fired_by(n: u64, engine: &Engine<Payload>, clock: &VirtualClock<Payload>) -> usize {
    clock.advance_to(tick(n));
    take_all(&engine.queue(0)).len()
}

/// A one-shot is paused while it expires and is taken: either a worker took it first, or
/// it fires once, after it is resumed.
#[test]
fn expire_and_take() {
    engine_model(|engine, clock| {
        let id = engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        let queue = engine.queue(0);
        let time = thread::spawn(move || {
            clock.advance_to(tick(1));
            let taken = take_all(&queue).len();
            (clock, taken)
        });
        let paused = engine.pause(id).is_ok();
        let (clock, taken) = time.join().unwrap();
        assert_eq!(taken, usize::from(!paused));
        assert_eq!(fired_by(5, &engine, &clock), 0);
        assert_eq!(engine.resume(id).is_ok(), paused);
        assert_eq!(fired_by(9, &engine, &clock), usize::from(paused));
        assert_all_ended(engine.ledger());
        assert_eq!(engine.ledger().completed, 1);
    });
}

/// A timer with a period of one tick, whose first firing a worker returns at `now`.
fn returned_beside<R>(
    now: u64,
    call: impl FnOnce(&Engine<Payload>, TimerId) -> R,
) -> (Engine<Payload>, VirtualClock<Payload>, TimerId, R) {
    let Lent {
        engine,
        clock,
        id,
        firing,
    } = lent(beat(0), now);
    let worker = thread::spawn(move || drop(firing));
    let answer = call(&engine, id);
    worker.join().unwrap();
    (engine, clock, id, answer)
}

/// Once `pause` has returned, nothing fires until the timer is resumed, whether the firing
/// comes back before the call or after it, and whether the next one is due by then.
fn pause_is_heeded(now: u64) {
    let (engine, clock, id, paused) = returned_beside(now, |engine, id| engine.pause(id));
    paused.unwrap();
    assert!(engine.paused(id).is_some());
    assert_eq!(fired_by(5, &engine, &clock), 0);
    engine.resume(id).unwrap();
    assert_eq!(fired_by(6, &engine, &clock), 1);
}

#[test]
fn return_of_a_firing() {
    model(|| pause_is_heeded(1));
}

#[test]
fn return_of_a_firing_that_is_behind() {
    model(|| pause_is_heeded(2));
}

/// A pause that ends before the firing comes back, or just then, loses nothing.
#[test]
fn pause_and_resume_and_return() {
    model(|| {
        let (engine, clock, id, ()) = returned_beside(1, |engine, id| {
            engine.pause(id).unwrap();
            engine.resume(id).unwrap();
        });
        assert_eq!(engine.paused(id), None);
        assert_eq!(fired_by(2, &engine, &clock), 1);
    });
}

/// A paused timer is resumed and cancelled at once: it ends once.
#[test]
fn resume_and_cancel() {
    engine_model(|engine, clock| {
        let id = engine.schedule(Timer::at(tick(1), payload(0))).unwrap();
        engine.pause(id).unwrap();
        let other = beside(&engine, move |engine| engine.resume(id).is_ok());
        let cancelled = engine.cancel(id).into_payload().is_some();
        other.join().unwrap();
        assert!(cancelled);
        assert_eq!(fired_by(5, &engine, &clock), 0);
        assert_all_ended(engine.ledger());
    });
}
