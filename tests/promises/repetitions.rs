//! Promises 4, 7 and 12: the repetition of a live timer, read and changed.

use super::*;
use tickwheel::{Cancel, MissedTicks, NotChanged, Timer};

/// What is left of a repetition.
fn left<T>(engine: &Engine<T>, id: TimerId) -> Option<Option<u64>> {
    engine.repetition(id).map(|repetition| repetition.left)
}

/// The due ticks of the firings in the next `count` ticks.
fn ticks(engine: &Engine<&str>, clock: &VirtualClock<&str>, count: u32) -> Vec<u64> {
    let mut ticks = Vec::new();
    for _ in 0..count {
        clock.advance(MS);
        ticks.extend(engine.queue(0).try_iter().map(|expired| expired.tick().0));
    }
    ticks
}

#[test]
fn promise_07_a_period_set_anew_counts_from_the_next_firing_on() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::every(10 * MS, "beat")).unwrap();
    assert_eq!(ticks(&engine, &clock, 13), [10]);
    engine.set_period(id, 3 * MS).unwrap();
    assert_eq!(engine.repetition(id).unwrap().period, 3 * MS);
    assert_eq!(ticks(&engine, &clock, 17), [20, 23, 26, 29]);

    // From within a firing, its successor follows the new period.
    clock.advance(2 * MS);
    let held = take_all(&engine);
    engine.set_period(id, 7 * MS).unwrap();
    drop(held);
    assert_eq!(ticks(&engine, &clock, 18), [39, 46]);
}

#[test]
fn promise_07_a_count_set_anew_is_exact() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::every(MS, "buff").times(5)).unwrap();
    assert_eq!(left(&engine, id), Some(Some(5)));
    assert_eq!(ticks(&engine, &clock, 3).len(), 3);
    assert_eq!(left(&engine, id), Some(Some(2)));
    engine.set_times(id, 4).unwrap();
    assert_eq!(left(&engine, id), Some(Some(4)));
    assert_eq!(ticks(&engine, &clock, 2).len(), 2);
    engine.set_times(id, 0).unwrap();
    assert_eq!(left(&engine, id), Some(None));
    assert_eq!(ticks(&engine, &clock, 50).len(), 50);
    engine.set_times(id, 2).unwrap();
    assert_eq!(ticks(&engine, &clock, 9).len(), 2);
    assert_eq!(left(&engine, id), None);
    assert_eq!(engine.ledger().completed, 1);
}

#[test]
fn promise_07_a_firing_knows_how_many_follow() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::every(MS, "buff").times(2)).unwrap();
    engine.schedule(Timer::after(MS, "once")).unwrap();
    clock.advance(MS);
    let [buff, once] = take_all(&engine).try_into().unwrap();
    assert_eq!((buff.remaining(), once.remaining()), (Some(1), Some(0)));
    engine.set_times(id, 0).unwrap();
    assert_eq!(buff.remaining(), None);
    drop(buff);
}

#[test]
fn promise_07_a_last_firing_that_is_held_can_be_followed_by_others() {
    let (engine, clock) = virtual_engine();
    let timer = Timer::every(MS, "buff").times(1).named("buff").reported();
    let id = engine.schedule(timer).unwrap();
    clock.advance(MS);
    let last = take_all(&engine);
    assert_eq!(last[0].remaining(), Some(0));
    engine.set_times(id, 2).unwrap();
    drop(last);
    assert_eq!(ticks(&engine, &clock, 9), [2, 3]);
    assert_eq!(engine.reports().try_recv().unwrap().firings, 3);
    assert_eq!(engine.cancel_by_name("buff", 9).ids.len(), 0);
}

#[test]
fn promise_04_a_cancelled_timer_gets_no_further_firings() {
    for times in [1, 2] {
        let (engine, clock) = virtual_engine();
        let timer = Timer::every(MS, "buff").times(times);
        let id = engine.schedule(timer).unwrap();
        clock.advance(MS);
        let held = take_all(&engine);
        assert_eq!(engine.cancel(id), Cancel::Running);
        assert_eq!(engine.set_times(id, 9), Err(NotChanged::Cancelled));
        assert_eq!(engine.set_period(id, MS), Err(NotChanged::Cancelled));
        drop(held);
        assert_eq!(ticks(&engine, &clock, 9), []);
        assert!(engine.ledger().is_balanced());
        assert_eq!(engine.ledger().live, 0);
    }
}

#[test]
fn promise_12_a_timer_that_was_shut_down_gets_no_further_firings() {
    for times in [1, 2] {
        let (engine, clock) = virtual_engine();
        let timer = Timer::every(MS, "buff").times(times);
        let id = engine.schedule(timer).unwrap();
        clock.advance(MS);
        let held = take_all(&engine);
        assert_eq!(engine.shutdown().len() as u64, times - 1);
        assert_eq!(engine.set_times(id, 9), Err(NotChanged::ShutDown));
        drop(held);
        assert!(engine.ledger().is_balanced());
        assert_eq!(engine.ledger().live, 0);
    }
}

#[test]
fn promise_11_a_repetition_that_schedule_refuses_is_refused_later_too() {
    let (engine, clock) = virtual_engine();
    let every = |missed| engine.schedule(Timer::every(MS, "beat").missed(missed));
    let [catching_up, skipping] =
        [MissedTicks::CatchUp, MissedTicks::Skip].map(|missed| every(missed).unwrap());
    let short = Duration::from_nanos(1);
    for id in [catching_up, skipping] {
        let refused = engine.set_period(id, Duration::ZERO);
        assert_eq!(refused, Err(NotChanged::ZeroPeriod));
    }
    let refused = engine.set_period(catching_up, short);
    assert_eq!(refused, Err(NotChanged::PeriodTooShort));
    assert_eq!(engine.set_period(skipping, short), Ok(()));
    assert_eq!(engine.repetition(catching_up).unwrap().period, MS);

    let once = engine.schedule(Timer::after(MS, "once")).unwrap();
    let named = Timer::after(MS, "named").named("named");
    let named = engine.schedule(named).unwrap();
    for id in [once, named] {
        assert_eq!(engine.repetition(id), None);
        assert_eq!(engine.set_period(id, MS), Err(NotChanged::NotRepeating));
        assert_eq!(engine.set_times(id, 3), Err(NotChanged::NotRepeating));
    }
    assert!(engine.cancel(once).is_cancelled());
    assert_eq!(engine.set_times(once, 3), Err(NotChanged::Gone));
    clock.advance(MS);
}

#[test]
fn promise_07_the_repetition_of_a_paused_timer_can_be_changed() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::every(5 * MS, "buff")).unwrap();
    engine.pause(id).unwrap();
    engine.set_period(id, 2 * MS).unwrap();
    engine.set_times(id, 3).unwrap();
    clock.advance(10 * MS);
    engine.resume(id).unwrap();
    assert_eq!(ticks(&engine, &clock, 20), [15, 17, 19]);
    assert_eq!(engine.pause(id), Err(NotChanged::Gone));
}
