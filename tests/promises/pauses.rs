//! Paused timers, whose time stands still: promises 1, 3 and 7.

use super::*;

#[test]
fn promise_01_a_paused_one_shot_fires_when_its_delay_has_passed_without_the_pauses() {
    let (engine, clock) = virtual_engine();
    let id = engine.after(100 * MS, "once");
    for left in [70, 69, 1] {
        let run = engine.deadline(id).unwrap() - engine.now() - left * MS;
        clock.advance(run);
        engine.pause(id).unwrap();
        assert_eq!(
            (engine.paused(id), engine.deadline(id)),
            (Some(left * MS), None)
        );
        clock.advance(HOUR);
        assert_eq!(
            (engine.ledger().live, engine.earliest_deadline()),
            (1, None)
        );
        engine.resume(id).unwrap();
        assert_eq!(engine.deadline(id), Some(engine.now() + left * MS));
    }
    assert!(engine.queue(0).is_empty());
    clock.advance(MS);
    // One that has expired reaches no worker.
    engine.pause(id).unwrap();
    assert!(engine.queue(0).is_empty());
    assert_eq!(engine.cancel(id), Cancel::Cancelled("once"));
    assert_eq!(engine.pause(id), Err(NotChanged::Gone));
}

#[test]
fn promise_07_a_pause_moves_the_phase_and_loses_no_count() {
    for missed in [MissedTicks::CatchUp, MissedTicks::Skip, MissedTicks::Delay] {
        let (engine, clock) = virtual_engine();
        let id = engine.put(Timer::every(10 * MS, "beat").times(3).missed(missed));
        let mut seen = Vec::new();
        for now in 1..=200 {
            clock.advance(MS);
            seen.extend(take(&engine, 0).iter().map(|&(tick, _)| tick));
            match now {
                13 => engine.pause(id).unwrap(),
                100 => engine.resume(id).unwrap(),
                _ => {}
            }
        }
        assert_eq!(seen, [10, 107, 117], "{missed:?}");
    }
}
