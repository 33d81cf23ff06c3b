//! Promise 7: the time of a paused timer stands still.

use super::*;

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
                99 => assert_eq!(
                    (engine.paused(id), engine.deadline(id)),
                    (Some(7 * MS), None)
                ),
                100 => engine.resume(id).unwrap(),
                _ => {}
            }
        }
        assert_eq!(seen, [10, 107, 117], "{missed:?}");
    }
}
