//! Timers whose payload is made once their id is known: promises 1, 3, 4 and 12.

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
    for shut_down in [false, true] {
        let (engine, clock) = virtual_engine();
        let make = |id| {
            assert_eq!(engine.reschedule(id, MS), Err(NotChanged::Running));
            match shut_down {
                true => assert_eq!(engine.shutdown()[0].payload, None),
                false => assert_eq!(engine.cancel_and_wait(id), Cancel::Running),
            }
            id
        };
        let id = engine
            .schedule_with(Timer::after(MS, make).reported())
            .unwrap();
        clock.advance(SECOND);
        assert!(take_all(&engine).is_empty());
        // The payload went to the report.
        let report = engine.reports().try_recv().unwrap();
        assert_eq!((report.id, report.payload), (id, Some(id)));
        assert_eq!(ends(&engine)[2..4], [!shut_down, shut_down].map(u64::from));
    }
}
