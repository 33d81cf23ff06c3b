//! Promise 7: repeats keep their phase.

use super::*;
use tickwheel::{Cancel, MissedTicks, Time, Timer};

/// (number, due tick) of what a worker sees that comes back every
/// `every` milliseconds, until `end`.
fn seen_every(
    engine: &Engine<&'static str>,
    clock: &VirtualClock<&'static str>,
    every: u32,
    end: u32,
) -> Vec<(u64, u64)> {
    let mut seen = Vec::new();
    for now in (every..=end).step_by(every as usize) {
        clock.advance_to(Time::START + now * MS);
        while let Ok(expired) = engine.queue(0).try_recv() {
            seen.push((expired.number(), expired.tick().0));
        }
    }
    seen
}

#[test]
fn promise_07_repeats_keep_their_phase() {
    let (engine, clock) = virtual_engine();
    engine
        .schedule(Timer::every(3 * MS, "beat").times(5))
        .unwrap();
    // The worker is late each time, by 0 to 6 ms; the due ticks are exact.
    let seen = seen_every(&engine, &clock, 7, 70);
    assert_eq!(seen, [(1, 3), (2, 6), (3, 9), (4, 12), (5, 15)]);
    assert_eq!(engine.ledger().completed, 1);
}

#[test]
fn promise_07_a_period_between_ticks_does_not_drift() {
    let (engine, clock) = virtual_engine();
    engine
        .schedule(Timer::every(Duration::from_micros(1_500), "beat").times(1_000))
        .unwrap();
    let seen = seen_every(&engine, &clock, 1, 1_600);
    let due = (1..=1_000u64).map(|k| (k, (k * 3).div_ceil(2)));
    assert!(seen.into_iter().eq(due));
}

#[test]
fn promise_07_counts_are_exact() {
    for times in [1, 2, 17] {
        let (engine, clock) = virtual_engine();
        engine
            .schedule(Timer::every(MS, "beat").times(times))
            .unwrap();
        assert_eq!(seen_every(&engine, &clock, 1, 100).len() as u64, times);
    }
    let (engine, clock) = virtual_engine();
    engine.schedule(Timer::every(MS, "beat").times(0)).unwrap();
    assert_eq!(seen_every(&engine, &clock, 1, 1_000).len(), 1_000);
    assert_eq!(engine.ledger().live, 1);
}

#[test]
fn promise_07_missed_firings() {
    let run = |policy| {
        let (engine, clock) = virtual_engine();
        engine
            .schedule(Timer::every(10 * MS, "beat").times(4).missed(policy))
            .unwrap();
        let mut seen = seen_every(&engine, &clock, 10, 10);
        clock.advance_to(Time::START + 45 * MS); // a stall: 20, 30 and 40 are late
        while let Ok(expired) = engine.queue(0).try_recv() {
            seen.push((expired.number(), expired.tick().0));
        }
        for now in 46..=100 {
            clock.advance_to(Time::START + now * MS);
            while let Ok(expired) = engine.queue(0).try_recv() {
                seen.push((expired.number(), expired.tick().0));
            }
        }
        assert_eq!(engine.ledger().completed, 1);
        seen
    };
    assert_eq!(
        run(MissedTicks::CatchUp),
        [(1, 10), (2, 20), (3, 30), (4, 40)]
    );
    // The one that was waiting is delivered, the two behind it are left out;
    // numbers count due ticks, `times` deliveries.
    assert_eq!(run(MissedTicks::Skip), [(1, 10), (2, 20), (5, 50), (6, 60)]);
    assert_eq!(
        run(MissedTicks::Delay),
        [(1, 10), (2, 20), (3, 55), (4, 65)]
    );
}

#[test]
fn promise_07_skipping_past_the_end_of_time_is_never_due() {
    let builder = Engine::builder().shards(1).tick(Duration::from_nanos(1));
    let (engine, clock) = builder.start_virtual().unwrap();
    let beat = Timer::every(Duration::from_nanos(1), "beat").starting(Time::START);
    let id = engine.schedule(beat.missed(MissedTicks::Skip)).unwrap();
    clock.advance_to(Time::MAX);
    let number = engine.queue(0).try_recv().unwrap().number();
    assert_eq!(number, 1);
    assert!(engine.queue(0).is_empty());
    assert_eq!(engine.deadline(id), Some(Time::MAX));
    assert_eq!(engine.cancel(id), Cancel::Cancelled("beat"));
}

#[test]
fn promise_07_a_firing_whose_tick_has_not_begun_is_not_missed() {
    for policy in [MissedTicks::CatchUp, MissedTicks::Skip, MissedTicks::Delay] {
        let (engine, clock) = virtual_engine();
        let beat = Timer::every(Duration::from_micros(700), "beat");
        engine.schedule(beat.missed(policy)).unwrap();
        // The second is due at 1.4 ms, and so in tick 2.
        let seen = [1_500, 2_000].map(|micros| {
            clock.advance_to(Time::from_micros(micros));
            let expired = engine.queue(0).try_recv().unwrap();
            (expired.number(), expired.tick().0)
        });
        assert_eq!(seen, [(1, 1), (2, 2)], "{policy:?}");
    }
}

#[test]
fn promise_07_firings_never_overlap_and_lend_the_same_payload() {
    struct NotClone(u32);
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::every(MS, NotClone(0))).unwrap();
    for round in 0..5 {
        clock.advance(10 * MS);
        let mut expired = engine.queue(0).try_recv().unwrap();
        assert!(engine.queue(0).try_recv().is_err(), "two firings at once");
        assert_eq!(expired.payload().0, round);
        expired.payload_mut().0 += 1;
    }
    assert_eq!(engine.cancel(id).payload().unwrap().0, 5);
}

#[test]
fn promise_07_a_payload_that_is_kept_ends_the_timer() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::every(MS, "mine")).unwrap();
    clock.advance(MS);
    assert_eq!(engine.queue(0).recv().unwrap().into_payload(), "mine");
    clock.advance(SECOND);
    assert!(engine.queue(0).is_empty());
    assert_eq!(engine.cancel(id), Cancel::Gone);
    assert_eq!(engine.ledger().cancelled, 1);
}
