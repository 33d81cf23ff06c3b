//! Promise 7: repeats keep their phase.

use super::*;

const POLICIES: [MissedTicks; 3] = [MissedTicks::CatchUp, MissedTicks::Skip, MissedTicks::Delay];

/// (number, due tick) of what a worker sees that comes back every `every` milliseconds,
/// until `end`.
fn seen_every<T>(
    engine: &Engine<T>,
    clock: &VirtualClock,
    every: u64,
    end: u64,
) -> Vec<(u64, u64)> {
    let mut seen = Vec::new();
    let begin = engine.now().as_nanos() / 1_000_000;
    for now in (begin + every..=end).step_by(every as usize) {
        clock.advance_to(at(now));
        while let Ok(expired) = engine.queue(0).try_recv() {
            seen.push((expired.number(), expired.tick().0));
        }
    }
    seen
}

#[test]
fn promise_07_repeats_keep_their_phase() {
    let (engine, clock) = virtual_engine();
    engine.put(Timer::every(3 * MS, "beat").times(5));
    // The worker is late each time, by 0 to 6 ms; the due ticks are exact.
    let seen = seen_every(&engine, &clock, 7, 70);
    assert_eq!(seen, [(1, 3), (2, 6), (3, 9), (4, 12), (5, 15)]);
    assert_eq!(engine.ledger().completed, 1);
}

#[test]
fn promise_07_a_period_between_ticks_does_not_drift() {
    let (engine, clock) = virtual_engine();
    let period = Duration::from_micros(1_500);
    engine.put(Timer::every(period, "beat").times(1_000));
    let seen = seen_every(&engine, &clock, 1, 1_600);
    let due = (1..=1_000u64).map(|k| (k, (k * 3).div_ceil(2)));
    assert!(seen.into_iter().eq(due));
}

#[test]
fn promise_07_missed_firings() {
    // The one that was waiting is delivered, and `Skip` leaves out the two behind it;
    // numbers count due ticks, `times` deliveries.
    let expected = [
        [(1, 10), (2, 20), (3, 30), (4, 40)],
        [(1, 10), (2, 20), (5, 50), (6, 60)],
        [(1, 10), (2, 20), (3, 55), (4, 65)],
    ];
    for (policy, expected) in POLICIES.into_iter().zip(expected) {
        let (engine, clock) = virtual_engine();
        engine.put(Timer::every(10 * MS, "beat").times(4).missed(policy));
        let mut seen = seen_every(&engine, &clock, 10, 10);
        seen.extend(seen_every(&engine, &clock, 35, 45)); // 20, 30 and 40 are late
        seen.extend(seen_every(&engine, &clock, 1, 100));
        assert_eq!(seen, expected, "{policy:?}");
        assert_eq!(engine.ledger().completed, 1);
    }
}

#[test]
fn promise_07_a_firing_whose_tick_has_not_begun_is_not_missed() {
    for policy in POLICIES {
        let (engine, clock) = virtual_engine();
        let beat = Timer::every(Duration::from_micros(700), "beat");
        engine.put(beat.missed(policy));
        // The second is due at 1.4 ms, and so in tick 2.
        for (micros, expected) in [(1_500, (1, 1)), (2_000, (2, 2))] {
            clock.advance_to(Time::from_micros(micros));
            let expired = engine.next();
            assert_eq!((expired.number(), expired.tick().0), expected, "{policy:?}");
        }
        let (engine, clock) = virtual_engine();
        engine.put(Timer::every(60 * MS, "beat").tolerance(10 * MS).missed(policy));
        // The second is due at 120 ms, and so, within its tolerance, in tick 128.
        for (millis, expected) in [(121, (1, 64)), (128, (2, 128))] {
            clock.advance_to(at(millis));
            let expired = engine.next();
            assert_eq!((expired.number(), expired.tick().0), expected, "{policy:?}");
        }
    }
}

#[test]
fn promise_07_firings_never_overlap_and_lend_the_same_payload() {
    struct NotClone(u32);
    let (engine, clock) = virtual_engine();
    let id = engine.every(MS, NotClone(0));
    for round in 0..5 {
        clock.advance(10 * MS);
        let mut expired = engine.next();
        assert!(engine.queue(0).try_recv().is_err(), "two firings at once");
        assert_eq!(expired.payload().0, round);
        expired.payload_mut().0 += 1;
    }
    assert_eq!(engine.cancel(id).into_payload().unwrap().0, 5);
}

#[test]
fn promise_07_a_payload_that_is_kept_ends_the_timer() {
    let (engine, clock) = virtual_engine();
    let id = engine.every(MS, "mine");
    clock.advance(MS);
    assert_eq!(payloads(&engine), ["mine"]);
    clock.advance(SECOND);
    assert!(engine.queue(0).is_empty());
    assert_eq!(engine.cancel(id), Cancel::Gone);
    assert_eq!(ends(&engine), [0, 0, 1, 0, 0]);
    // The last firing would have ended it.
    engine.put(Timer::after(MS, "chain").rearmable());
    engine.put(Timer::every(MS, "last").times(1));
    clock.advance(MS);
    assert_eq!(payloads(&engine), ["chain", "last"]);
    assert_eq!(ends(&engine), [0, 2, 1, 0, 0]);
}

/// A pause is a deadline that never comes, and then what was left.
#[test]
fn promise_07_a_pause_moves_the_phase_and_loses_no_count() {
    for missed in POLICIES {
        let (engine, clock) = virtual_engine();
        let id = engine.put(Timer::every(10 * MS, "beat").times(3).missed(missed));
        let (mut seen, mut left) = (Vec::new(), Duration::ZERO);
        for now in 1..=200 {
            clock.advance(MS);
            seen.extend(take(&engine, 0).iter().map(|&(tick, _)| tick));
            match now {
                13 => {
                    left = engine.deadline(id).unwrap() - engine.now();
                    engine.reschedule(id, Time::MAX).unwrap();
                }
                99 => assert_eq!((left, engine.deadline(id)), (7 * MS, Some(Time::MAX))),
                100 => engine.reschedule(id, left).unwrap(),
                _ => {}
            }
        }
        assert_eq!(seen, [10, 107, 117], "{missed:?}");
    }
}
