//! Timers whose payload is made once their id is known: promises 1, 3, 4, 11 and 12.

use super::*;
use crate::support::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use tickwheel::{Cancel, CloseReason, NotChanged, Refusal, Timer};

#[test]
fn promise_01_a_delay_counts_from_the_moment_at_which_the_payload_is_made() {
    let (engine, clock) = virtual_engine();
    let slow = |id| {
        clock.advance(7 * MS);
        id
    };
    let id = engine.schedule_with(Timer::after(5 * MS, slow)).unwrap();
    assert!(payloads(&engine).is_empty());
    clock.advance(4 * MS);
    assert!(payloads(&engine).is_empty());
    clock.advance(MS);
    assert_eq!(payloads(&engine), [id]);
    assert_eq!(engine.ledger().completed, 1);
}

#[test]
fn promise_03_a_payload_knows_its_id_under_every_setting() {
    let (engine, clock) = virtual_engine();
    let timer = Timer::every(MS, |id| id).times(3).queue(1);
    let timer = timer.named("name").reported();
    let id = engine.schedule_with(timer).unwrap();
    let mut taken = Vec::new();
    for _ in 0..5 {
        clock.advance(MS);
        taken.extend(take(&engine, 1));
    }
    assert_eq!(taken, [(1, id), (2, id), (3, id)]);
    let closed = engine.reports().try_recv().unwrap();
    assert_eq!((closed.id, closed.payload), (id, Some(id)));
    assert_eq!((closed.firings, closed.reason), (3, CloseReason::Completed));
}

#[test]
fn promise_03_a_panic_instead_of_a_payload_ends_the_timer_once() {
    let builder = Engine::<()>::builder().max_timers(1);
    let (engine, _clock) = builder.start_virtual().unwrap();
    let timer = Timer::after(MS, |_| panic!("on purpose")).named("name");
    let thrown = catch_unwind(AssertUnwindSafe(|| engine.schedule_with(timer.reported())));
    let thrown = thrown.unwrap_err();
    assert_eq!(thrown.downcast_ref(), Some(&"on purpose"));
    let ledger = engine.ledger();
    assert!(ledger.is_balanced());
    assert_eq!((ledger.live, ledger.failed), (0, 1));
    assert_eq!(engine.cancel_by_name("name", usize::MAX).ids.len(), 0);
    let closed = engine.reports().try_recv().unwrap();
    assert_eq!((closed.reason, closed.firings), (CloseReason::Failed, 0));
    engine.schedule(Timer::after(MS, ())).unwrap();
}

#[test]
fn promise_04_a_timer_cancelled_before_it_has_a_payload_never_fires() {
    for reported in [false, true] {
        let (engine, clock) = virtual_engine();
        let payload = Rc::new(());
        let make = |id| {
            assert_eq!(engine.reschedule(id, MS), Err(NotChanged::Running));
            assert_eq!(engine.cancel_and_wait(id), Cancel::Running);
            assert_eq!(engine.cancel_by_name("name", 9).ids.len(), 0);
            Rc::clone(&payload)
        };
        let mut timer = Timer::after(MS, make).named("name");
        if reported {
            timer = timer.reported();
        }
        let id = engine.schedule_with(timer).unwrap();
        assert_eq!(engine.cancel(id), Cancel::Gone);
        assert_eq!(engine.ledger().cancelled, 1);
        clock.advance(SECOND);
        assert!(payloads(&engine).is_empty());
        // The payload went to the report, or was dropped.
        let report = engine.reports().try_recv();
        let in_report = report.ok().and_then(|closed| closed.payload);
        assert_eq!(in_report.is_some(), reported);
        assert_eq!(Rc::strong_count(&payload), 1 + usize::from(reported));
    }
}

#[test]
fn promise_11_a_timer_counts_from_its_reservation_on_and_a_refused_closure_comes_back() {
    let builder = Engine::builder().max_timers(1).queues(1);
    let (engine, _clock) = builder.start_virtual().unwrap();
    let make = |id| {
        let refused = engine.schedule(Timer::after(MS, id)).unwrap_err();
        assert_eq!(refused.reason(), Refusal::Full);
        id
    };
    let misfit = engine.schedule_with(Timer::after(MS, make).queue(1));
    let misfit = misfit.unwrap_err();
    assert_eq!(misfit.reason(), Refusal::NoSuchQueue);
    let id = engine
        .schedule_with(misfit.into_timer().queue(0).named("name"))
        .unwrap();

    let uncalled = engine.schedule_with(Timer::after(MS, |_| unreachable!()).named("name"));
    assert_eq!(uncalled.unwrap_err().reason(), Refusal::Full);
    assert_eq!(engine.cancel_by_name("name", 9).payloads, [id]);
    engine.shutdown();
    let closed = engine.schedule_with(Timer::after(MS, |_| unreachable!()));
    assert_eq!(closed.unwrap_err().reason(), Refusal::ShutDown);
}

#[test]
fn promise_12_a_shutdown_lists_a_timer_that_has_no_payload_yet() {
    let (engine, _clock) = virtual_engine();
    let make = |id| {
        let closed = engine.shutdown();
        assert_eq!(closed.len(), 1);
        assert_eq!((closed[0].id, closed[0].payload), (id, None));
        id
    };
    let id = engine.schedule_with(Timer::after(MS, make).reported());
    let id = id.unwrap();
    let report = engine.reports().try_recv().unwrap();
    assert_eq!((report.id, report.payload), (id, Some(id)));
    let ledger = engine.ledger();
    assert!(ledger.is_balanced());
    assert_eq!((ledger.live, ledger.shut_down), (0, 1));
}
