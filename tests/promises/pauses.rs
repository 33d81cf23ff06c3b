//! Paused timers, whose time stands still: promises 1, 3, 4, 7, 11, 12 and 13.

use super::*;
use crate::support::{HOUR, take};
use tickwheel::{Cancel, MissedTicks, NotChanged, Time, Timer};

const POLICIES: [MissedTicks; 3] = [MissedTicks::CatchUp, MissedTicks::Skip, MissedTicks::Delay];

fn to(clock: &VirtualClock<&'static str>, millis: u32) {
    clock.advance_to(Time::START + millis * MS);
}

/// The due ticks and numbers of the firings until `end`, each taken in its own millisecond.
fn until(
    engine: &Engine<&'static str>,
    clock: &VirtualClock<&'static str>,
    end: u32,
) -> Vec<(u64, u64)> {
    let mut seen = Vec::new();
    let begin = (engine.now() - Time::START).as_millis() as u32;
    for now in begin..=end {
        to(clock, now);
        for expired in engine.queue(0).try_iter() {
            seen.push((expired.tick().0, expired.number()));
        }
    }
    seen
}

#[test]
fn promise_01_a_paused_one_shot_fires_when_its_delay_has_passed_without_the_pauses() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::after(100 * MS, "once")).unwrap();
    let mut rng = Rng::with_seed(1);
    let mut left = 100;
    while left > 10 {
        let runs = rng.u32(1..10);
        clock.advance(runs * MS);
        left -= runs;
        engine.pause(id).unwrap();
        assert_eq!(engine.paused(id), Some(left * MS));
        clock.advance(rng.u32(0..1_000) * MS);
        engine.pause(id).unwrap();
        assert_eq!(engine.deadline(id), None);
        engine.resume(id).unwrap();
        engine.resume(id).unwrap();
        assert_eq!(engine.paused(id), None);
        assert_eq!(engine.deadline(id), Some(engine.now() + left * MS));
    }
    clock.advance((left - 1) * MS);
    assert!(payloads(&engine).is_empty());
    clock.advance(MS);
    assert_eq!(payloads(&engine), ["once"]);
    assert_eq!(engine.pause(id), Err(NotChanged::Gone));
    assert_eq!(engine.resume(id), Err(NotChanged::Gone));
}

#[test]
fn promise_03_a_paused_timer_is_live_and_ends_once() {
    let (engine, clock) = virtual_engine();
    let schedule = |n: u32| {
        let timer = match n {
            0 => Timer::after(MS, n),
            1 => Timer::every(MS, n).named("name").reported(),
            _ => Timer::after(MS, n).queue(1),
        };
        engine.schedule(timer).unwrap()
    };
    let ids = [0, 1, 2].map(schedule);
    ids.iter().for_each(|&id| engine.pause(id).unwrap());
    clock.advance(HOUR);
    assert!(payloads(&engine).is_empty());
    assert_eq!(engine.ledger().live, 3);
    assert!(engine.live().all(|timer| timer.paused));
    assert!(engine.live().map(|timer| timer.id).eq(ids));
    assert_eq!(engine.earliest_deadline(), None);
    assert_eq!(engine.replace(ids[2], 7), Ok(2));

    assert_eq!(engine.cancel(ids[0]), Cancel::Cancelled(0));
    assert_eq!(engine.cancel_by_name("name", 9).payloads, [1]);
    let closed = engine.shutdown();
    assert_eq!(closed.len(), 1);
    assert_eq!((closed[0].queue, closed[0].payload), (1, Some(7)));
    let ledger = engine.ledger();
    assert!(ledger.is_balanced());
    assert_eq!((ledger.cancelled, ledger.shut_down), (2, 1));
    assert_eq!(engine.reports().try_recv().unwrap().id, ids[1]);
}

#[test]
fn promise_04_an_expired_timer_that_is_paused_reaches_no_worker() {
    let (engine, clock) = virtual_engine();
    for timer in [Timer::after(MS, "once"), Timer::every(MS, "beat").times(1)] {
        let id = engine.schedule(timer).unwrap();
        clock.advance(3 * MS);
        assert_eq!(engine.queue(0).len(), 1);
        engine.pause(id).unwrap();
        assert_eq!(engine.paused(id), Some(Duration::ZERO));
        assert!(engine.queue(0).is_empty());
        clock.advance(SECOND);
        assert!(payloads(&engine).is_empty());
        engine.resume(id).unwrap();
        clock.advance(Duration::ZERO);
        assert_eq!(payloads(&engine).len(), 1);
    }
    assert_eq!(engine.ledger().completed, 2);
}

#[test]
fn promise_07_a_pause_moves_the_phase_and_loses_no_count() {
    for missed in POLICIES {
        let (engine, clock) = virtual_engine();
        let timer = Timer::every(10 * MS, "beat").times(4).missed(missed);
        let id = engine.schedule(timer).unwrap();
        assert_eq!(until(&engine, &clock, 13), [(10, 1)]);
        engine.pause(id).unwrap();
        assert_eq!(until(&engine, &clock, 100), []);
        engine.resume(id).unwrap();
        let rest = until(&engine, &clock, 200);
        assert_eq!(rest, [(107, 2), (117, 3), (127, 4)], "{missed:?}");
        assert_eq!(engine.ledger().completed, 1);
    }
}

#[test]
fn promise_07_what_a_timer_missed_before_its_pause_it_has_missed_after_it() {
    let expected: [&[_]; 3] = [
        &[(110, 1), (120, 2), (130, 3), (140, 4)],
        &[(110, 1), (140, 4)],
        &[(110, 1), (145, 2)],
    ];
    for (missed, expected) in POLICIES.into_iter().zip(expected) {
        let (engine, clock) = virtual_engine();
        let timer = Timer::every(10 * MS, "beat").missed(missed);
        let id = engine.schedule(timer).unwrap();
        to(&clock, 35);
        engine.pause(id).unwrap();
        to(&clock, 135);
        engine.resume(id).unwrap();
        assert_eq!(until(&engine, &clock, 149), expected, "{missed:?}");
    }
}

#[test]
fn promise_07_a_pause_while_a_firing_is_held_counts_from_the_call() {
    for missed in POLICIES {
        // Resumed after the firing came back, and before.
        for (resumed, next) in [(40, 48), (20, 28)] {
            let (engine, clock) = virtual_engine();
            let timer = Timer::every(10 * MS, "beat").missed(missed);
            let id = engine.schedule(timer).unwrap();
            to(&clock, 10);
            let mut held = Some(engine.queue(0).try_recv().unwrap());
            to(&clock, 12);
            engine.pause(id).unwrap();
            assert_eq!(engine.paused(id), Some(Duration::ZERO));
            for now in 13..=47 {
                to(&clock, now);
                if now == resumed {
                    engine.resume(id).unwrap();
                }
                if now == 25 {
                    drop(held.take());
                    let left = (resumed > 25).then_some(8 * MS);
                    assert_eq!(engine.paused(id), left);
                }
                let none_yet = now < next && engine.queue(0).is_empty();
                assert!(none_yet || now >= next, "{now}");
            }
            assert_eq!(until(&engine, &clock, 48)[0], (u64::from(next), 2));
        }
    }
}

#[test]
fn promise_07_a_pause_ends_nothing_and_keeps_nothing_from_ending() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::every(MS, "last").times(1)).unwrap();
    clock.advance(MS);
    let last = take_all(&engine);
    engine.pause(id).unwrap();
    drop(last);
    assert_eq!(engine.ledger().completed, 1);
    let id = engine.schedule(Timer::every(MS, "beat")).unwrap();
    clock.advance(MS);
    let held = take_all(&engine);
    engine.pause(id).unwrap();
    assert_eq!(engine.cancel(id), Cancel::Running);
    assert_eq!(engine.pause(id), Err(NotChanged::Cancelled));
    drop(held);
    let ledger = engine.ledger();
    assert_eq!((ledger.live, ledger.cancelled), (0, 1));
    assert!(ledger.is_balanced());
}

#[test]
fn promise_07_rescheduling_sets_what_is_left_and_keeps_the_pause() {
    let (engine, clock) = virtual_engine();
    let timers = [Timer::after(MS, "once"), Timer::every(5 * MS, "beat")];
    let ids = timers.map(|timer| engine.schedule(timer).unwrap());
    ids.iter().for_each(|&id| engine.pause(id).unwrap());
    for id in ids {
        clock.advance(SECOND);
        engine.reschedule(id, 3 * MS).unwrap();
        assert_eq!(engine.paused(id), Some(3 * MS));
        clock.advance(SECOND);
        assert!(payloads(&engine).is_empty());
        engine.reschedule(id, engine.now() + 7 * MS).unwrap();
        engine.resume(id).unwrap();
        assert_eq!(engine.deadline(id), Some(engine.now() + 7 * MS));
        engine.pause(id).unwrap();
    }
    ids.iter().for_each(|&id| engine.resume(id).unwrap());
    clock.advance(7 * MS);
    assert_eq!(take(&engine, 0).len(), 2);
    clock.advance(5 * MS);
    assert_eq!(payloads(&engine), ["beat"]);
}

#[test]
fn promise_07_a_timer_can_be_paused_before_its_payload_is_made() {
    let (engine, clock) = virtual_engine();
    let make = |id| {
        engine.pause(id).unwrap();
        clock.advance(SECOND);
        id
    };
    let id = engine.schedule_with(Timer::after(5 * MS, make)).unwrap();
    clock.advance(SECOND);
    assert_eq!(engine.paused(id), Some(5 * MS));
    engine.resume(id).unwrap();
    clock.advance(4 * MS);
    assert!(payloads(&engine).is_empty());
    clock.advance(MS);
    assert_eq!(payloads(&engine), [id]);
}

#[test]
fn promise_11_a_paused_timer_counts_against_the_bound() {
    let builder = Engine::builder().max_timers(1);
    let (engine, _clock) = builder.start_virtual().unwrap();
    let id = engine.schedule(Timer::after(MS, 1)).unwrap();
    engine.pause(id).unwrap();
    assert!(engine.schedule(Timer::after(MS, 2)).is_err());
    assert_eq!(engine.cancel(id).payload(), Some(1));
    engine.schedule(Timer::after(MS, 3)).unwrap();
}

#[test]
fn promise_12_a_drain_does_not_wait_for_a_paused_timer() {
    let (engine, clock) = virtual_engine();
    let far = engine.schedule(Timer::after(MS, "paused")).unwrap();
    let ready = engine.schedule(Timer::after(MS, "ready")).unwrap();
    clock.advance(MS);
    engine.pause(far).unwrap();
    engine.pause(ready).unwrap();
    let left = engine.drain(SECOND);
    assert_eq!(left.len(), 2);
    assert!(engine.ledger().is_balanced());
}

#[test]
fn promise_13_a_paused_timer_wakes_no_loop() {
    let (engine, driver) = Engine::builder().shards(1).start_driven().unwrap();
    let id = engine.schedule(Timer::after(HOUR, ())).unwrap();
    engine.pause(id).unwrap();
    let _ = driver.process_due(100);
    assert_eq!(driver.next_wakeup(), None);
    engine.resume(id).unwrap();
    assert!(driver.next_wakeup().is_some());
}
