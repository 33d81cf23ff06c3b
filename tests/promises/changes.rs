//! Promise 11: a change that is refused leaves the timer as it was, and every call gives
//! the same reason for it.

use super::*;
use tickwheel::{Cancel, NotChanged, TaskEngine, Timer};

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

#[test]
fn promise_05_a_look_up_tells_a_paused_timer_from_one_that_is_gone() {
    let (engine, clock) = virtual_engine();
    let lease = engine.schedule(Timer::after(MS, 1).named("lease")).unwrap();
    let found = engine.find(lease).unwrap();
    assert_eq!((found.id, found.queue, found.paused), (lease, 0, false));
    assert_eq!(engine.find(lease), engine.live().next());
    engine.pause(lease).unwrap();
    assert_eq!(engine.deadline(lease), None);
    let found = engine.find(lease).unwrap();
    assert_eq!((found.name.as_deref(), found.paused), (Some("lease"), true));
    engine.resume(lease).unwrap();
    clock.advance(MS);
    assert_eq!(
        engine.find(lease),
        engine.live().next(),
        "it waits to be taken"
    );
    assert_eq!(payloads(&engine), [1]);
    assert_eq!(engine.find(lease), None);

    let unstarted = engine.create(Timer::after(MS, 2)).unwrap();
    assert_eq!(engine.find(unstarted.id()), None);
    let other = virtual_engine().0;
    let elsewhere = other.schedule(Timer::after(MS, 3)).unwrap();
    assert_eq!(engine.find(elsewhere), None);
}

/// What users of tasks call most often needs no detour.
#[test]
fn promise_15_a_task_is_moved_and_paused_through_its_own_engine() {
    let (timers, clock) = TaskEngine::builder().start_virtual().unwrap();
    let id = timers.run_after(MS, || {}).unwrap();
    timers.reschedule(id, 3 * MS).unwrap();
    assert_eq!(timers.deadline(id), Some(timers.now() + 3 * MS));
    timers.pause(id).unwrap();
    assert!(timers.deadline(id).is_none() && timers.find(id).unwrap().paused);
    clock.run_until(timers.now() + SECOND);
    assert_eq!(timers.ledger().live, 1);
    timers.resume(id).unwrap();
    assert_eq!(timers.deadline(id), Some(timers.now() + 3 * MS));
    clock.run_until(timers.now() + 3 * MS);
    assert_eq!(timers.ledger().completed, 1);
    for answer in [
        timers.reschedule(id, MS),
        timers.pause(id),
        timers.resume(id),
    ] {
        assert_eq!(answer, Err(NotChanged::Gone));
    }
}
