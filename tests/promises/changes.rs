//! Promise 11: a change that is refused leaves the timer as it was, and every call gives
//! the same reason for it.

use super::*;
use tickwheel::{Cancel, NotChanged, Timer};

/// Requests every change of a repeating timer, and returns the answers.
fn change(engine: &Engine<u32>, id: TimerId) -> Vec<(&'static str, Result<(), NotChanged>)> {
    let replaced = engine.replace(id, 8);
    if let Err((_, payload)) = replaced {
        assert_eq!(payload, 8, "the new payload is back");
    }
    vec![
        ("reschedule", engine.reschedule(id, SECOND)),
        ("replace", replaced.map(drop).map_err(|(why, _)| why)),
        ("set_period", engine.set_period(id, SECOND)),
        ("set_times", engine.set_times(id, 9)),
        ("pause", engine.pause(id)),
    ]
}

fn all_refuse(engine: &Engine<u32>, id: TimerId, reason: NotChanged) {
    for (call, answer) in change(engine, id) {
        assert_eq!(answer, Err(reason), "{call}");
    }
}

/// A repeating timer of which a worker has the first firing.
fn held() -> (Engine<u32>, TimerId, Expired<u32>) {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::every(MS, 7)).unwrap();
    clock.advance(MS);
    let firing = engine.queue(0).try_recv().unwrap();
    (engine, id, firing)
}

#[test]
fn promise_11_each_change_of_a_timer_is_refused_for_the_same_reason() {
    let (engine, id, firing) = held();
    assert_eq!(engine.reschedule(id, MS), Err(NotChanged::Running));
    assert_eq!(engine.replace(id, 8), Err((NotChanged::Running, 8)));
    assert_eq!(engine.cancel(id), Cancel::Running);
    all_refuse(&engine, id, NotChanged::Cancelled);
    drop(firing);
    all_refuse(&engine, id, NotChanged::Gone);

    let (engine, id, firing) = held();
    assert_eq!(engine.shutdown().len(), 1);
    all_refuse(&engine, id, NotChanged::ShutDown);
    drop(firing);
    all_refuse(&engine, id, NotChanged::Gone);

    let (engine, clock) = virtual_engine();
    let unstarted = engine.create(Timer::every(MS, 7)).unwrap();
    all_refuse(&engine, unstarted.id(), NotChanged::Unstarted);
    let id = unstarted.start().unwrap();
    clock.advance(MS);
    let first = engine.queue(0).try_recv().unwrap();
    assert_eq!(first.payload(), &7, "changed by nothing");
    drop(first);
    assert!(change(&engine, id).iter().all(|(_, answer)| answer.is_ok()));
}

#[test]
fn promise_11_a_refusal_to_change_a_timer_says_what_to_do() {
    for (reason, advice) in [
        (NotChanged::Gone, "schedule a new one"),
        (NotChanged::Running, "`rearm`"),
        (NotChanged::Cancelled, "schedule a new one"),
        (NotChanged::Unstarted, "`Unstarted::start`"),
        (NotChanged::NotRepeating, "`Timer::every`"),
        (NotChanged::PeriodTooShort, "`MissedTicks::Skip`"),
        (NotChanged::InstantOnOtherClock, "`engine.now()` plus"),
    ] {
        assert!(reason.to_string().contains(advice), "{reason}");
    }
}
