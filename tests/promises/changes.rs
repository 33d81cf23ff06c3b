//! Promises 5 and 11: a change that is refused leaves the timer as it was, and every call
//! gives the same reason for it; what can be looked up of a timer.

use super::*;

/// Requests every change of a repeating timer, and returns the answers.
fn change(engine: &Engine<u32>, id: TimerId) -> [Result<(), Refusal>; 2] {
    let replaced = engine.replace(id, 8).map(drop);
    [
        engine.reschedule(id, SECOND),
        replaced.map_err(|refused| {
            let reason = refused.reason();
            assert_eq!(refused.into_inner(), 8);
            reason
        }),
    ]
}

/// A repeating timer of which a worker has the first firing.
fn held() -> (Engine<u32>, TimerId, Expired<u32>) {
    let (engine, clock) = virtual_engine();
    let id = engine.every(MS, 7);
    clock.advance(MS);
    let firing = engine.next();
    (engine, id, firing)
}

#[test]
fn promise_11_each_change_of_a_timer_is_refused_for_the_same_reason() {
    let (engine, id, firing) = held();
    assert_eq!(engine.reschedule(id, MS), Err(Refusal::Running));
    assert_eq!(parts(engine.replace(id, 8)), Err((Refusal::Running, 8)));
    assert_eq!(engine.cancel(id), Cancel::Running);
    assert_eq!(change(&engine, id), [Err(Refusal::Cancelled); 2]);
    drop(firing);
    assert_eq!(change(&engine, id), [Err(Refusal::Gone); 2]);

    let (engine, id, firing) = held();
    assert_eq!(engine.shutdown().len(), 1);
    assert_eq!(change(&engine, id), [Err(Refusal::ShutDown); 2]);
    drop(firing);
    assert_eq!(change(&engine, id), [Err(Refusal::Gone); 2]);

    let (engine, clock) = virtual_engine();
    let unstarted = engine.create(Timer::every(MS, 7)).unwrap();
    assert_eq!(engine.deadline(unstarted.id()), None);
    let refused = [Err(Refusal::Unstarted); 2];
    assert_eq!(change(&engine, unstarted.id()), refused);
    let cancelled = engine.create(Timer::every(MS, 7)).unwrap();
    assert_eq!(engine.cancel(cancelled.id()), Cancel::Cancelled(7));
    assert_eq!(change(&engine, cancelled.id()), [Err(Refusal::Gone); 2]);
    clock.advance(SECOND);
    let id = unstarted.start().unwrap();
    assert_eq!(engine.deadline(id), Some(at(1_001)));
    clock.advance(MS);
    assert_eq!(engine.next().payload(), &7, "changed by nothing");
    assert_eq!(change(&engine, id), [Ok(()); 2]);
}

#[test]
fn promise_11_a_refusal_to_change_a_timer_says_what_to_do() {
    for (reason, advice) in [
        (Refusal::Gone, "schedule a new one"),
        (Refusal::Running, "`rearm`"),
        (Refusal::Cancelled, "schedule a new one"),
        (Refusal::Unstarted, "`Unstarted::start`"),
        (Refusal::UsedUp, "schedule a new one"),
    ] {
        assert!(reason.to_string().contains(advice), "{reason}");
    }
}

#[test]
fn promise_05_a_look_up_finds_what_is_live() {
    let (engine, clock) = virtual_engine();
    let lease = engine.put(Timer::after(MS, 1).named("lease"));
    let found = engine.find(lease).unwrap();
    assert_eq!((found.id, found.queue), (lease, 0));
    assert_eq!(found.name.as_deref(), Some("lease"));
    clock.advance(MS);
    // It waits to be taken.
    assert_eq!(engine.find(lease), engine.live().next());
    assert_eq!(parts(engine.replace(lease, 3)), Ok(1));
    let unstarted = engine.create(Timer::after(MS, 2)).unwrap();
    assert_eq!(engine.find(unstarted.id()), None);
}
