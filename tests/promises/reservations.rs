//! Timers whose payload is made once their id is known: promises 1 and 4.

use super::*;

#[test]
fn promise_01_a_delay_counts_from_the_moment_at_which_the_payload_is_made() {
    let (engine, clock) = virtual_engine();
    let slow = |id| {
        clock.advance(7 * MS);
        id
    };
    let id = engine.schedule_with(Timer::after(5 * MS, slow)).unwrap();
    clock.advance(4 * MS);
    assert!(engine.queue(0).is_empty());
    clock.advance(MS);
    assert_eq!(payloads(&engine), [id]);
}

#[test]
fn promise_04_a_timer_that_ends_before_it_has_a_payload_never_fires() {
    let (engine, clock) = virtual_engine();
    let make = |id| {
        assert_eq!(engine.reschedule(id, MS), Err(Refusal::Running));
        assert_eq!(engine.cancel_and_wait(id), Cancel::Running);
        id
    };
    let timer = Timer::after(MS, make).reported();
    let id = engine.schedule_with(timer).unwrap();
    clock.advance(SECOND);
    assert!(engine.queue(0).is_empty());
    // The payload went to the report.
    let report = engine.reports().try_recv().unwrap();
    assert_eq!((report.id, report.payload), (id, Some(id)));
    assert_eq!(ends(&engine), [0, 0, 1, 0, 0]);
}
