//! Promise 7: the repetition of a live timer, read and changed.

use super::*;

/// The due ticks of the firings in the next `count` ticks.
fn ticks(engine: &Engine<&str>, clock: &VirtualClock<&str>, count: u32) -> Vec<u64> {
    let mut ticks = Vec::new();
    for _ in 0..count {
        clock.advance(MS);
        ticks.extend(take(engine, 0).iter().map(|&(tick, _)| tick));
    }
    ticks
}

#[test]
fn promise_07_a_count_set_anew_is_exact() {
    let (engine, clock) = virtual_engine();
    let id = engine.put(Timer::every(10 * MS, "buff").times(5));
    let left = || engine.repetition(id).map(|repetition| repetition.left);
    assert_eq!(left(), Some(Some(5)));
    assert_eq!(ticks(&engine, &clock, 13), [10]);
    // A period counts from the next firing on.
    engine.set_period(id, 3 * MS).unwrap();
    for (times, then_left, fired) in [(4, Some(4), 2), (0, None, 50), (2, Some(2), 2)] {
        engine.set_times(id, times).unwrap();
        assert_eq!(left(), Some(then_left));
        let first = engine.deadline(id).unwrap().as_nanos() / 1_000_000;
        let due = (0..fired).map(|k| first + 3 * k);
        let end = first + 3 * (fired - 1) - engine.current_tick().0;
        assert!(ticks(&engine, &clock, end as u32).into_iter().eq(due));
    }
    assert_eq!((left(), ends(&engine)), (None, [0, 1, 0, 0, 0]));
}
