//! A timer that is disarmed and armed again under the same id: it keeps its payload, it
//! is live, and it fires when it is armed for that.

use super::*;
use std::sync::mpsc;
use tickwheel::{Cancel, CloseReason, Firing, TaskEngine, Time, Timer};

#[test]
fn promise_01_a_timer_that_is_armed_again_fires_at_its_new_deadline_alone() {
    // Later than the old deadline, at it, and earlier, before and after the slots of the
    // old deadline have had their turns.
    for pass in [0, 30, 64, 69, 70, 71, 100] {
        for next in [1, 5, 63, 64, 65, 70, 71, 200, 5_000] {
            let (engine, clock) = virtual_engine();
            let queue = engine.queue(0);
            let id = engine.schedule(Timer::after(70 * MS, 7)).unwrap();
            engine.reschedule(id, Time::MAX).unwrap();
            clock.advance(pass * MS);
            assert!(queue.try_recv().is_err(), "disarmed");
            engine.reschedule(id, next * MS).unwrap();
            clock.advance((next - 1) * MS);
            assert!(
                queue.try_recv().is_err(),
                "armed at {pass} for {next} later"
            );
            clock.advance(MS);
            let fired = queue.try_recv().expect("armed");
            assert_eq!((fired.id(), fired.into_payload()), (id, 7));
        }
    }
}

#[test]
fn promise_03_a_timer_can_be_disarmed_and_armed_for_each_request() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::at(Time::MAX, 7)).unwrap();
    for _ in 0..1_000 {
        engine.reschedule(id, 100 * MS).unwrap();
        clock.advance(3 * MS);
        engine.reschedule(id, Time::MAX).unwrap();
        clock.advance(5 * MS);
    }
    assert_eq!((engine.ledger().accepted, engine.ledger().live), (1, 1));
    engine.reschedule(id, 100 * MS).unwrap();
    clock.advance(100 * MS);
    assert_eq!(engine.queue(0).try_recv().unwrap().into_payload(), 7);
    assert!(engine.ledger().is_balanced());
}

#[test]
fn promise_03_a_disarmed_timer_is_live_and_has_one_ending() {
    let (engine, clock) = virtual_engine();
    let schedule = |n| {
        let id = engine.schedule(Timer::after(9 * MS, n).reported()).unwrap();
        engine.reschedule(id, Time::MAX).unwrap();
        id
    };
    let ids = [schedule(1), schedule(2)];
    clock.advance(SECOND);
    assert_eq!(engine.deadline(ids[0]), Some(Time::MAX));
    assert_eq!(engine.live().count(), 2);
    assert_eq!(engine.replace(ids[0], 3), Ok(1));
    assert_eq!(engine.cancel(ids[0]), Cancel::Cancelled(3));
    assert_eq!(engine.cancel(ids[0]), Cancel::Gone);
    // A drain does not wait for the other one.
    let left = engine.drain(SECOND);
    assert_eq!(left.len(), 1);
    assert_eq!(
        (left[0].reason, left[0].payload),
        (CloseReason::ShutDown, Some(2))
    );
    assert!(engine.ledger().is_balanced());
}

#[test]
fn promise_04_an_expired_timer_can_be_disarmed_until_it_is_taken() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::after(MS, 7)).unwrap();
    clock.advance(MS);
    engine.reschedule(id, Time::MAX).unwrap();
    assert!(engine.queue(0).try_recv().is_err());
    engine.reschedule(id, MS).unwrap();
    clock.advance(MS);
    assert_eq!(engine.queue(0).try_recv().unwrap().into_payload(), 7);
}

#[test]
fn promise_11_a_disarmed_timer_counts_against_the_bound() {
    let (engine, _clock) = Engine::builder().max_timers(1).start_virtual().unwrap();
    let id = engine.schedule(Timer::after(MS, 7)).unwrap();
    engine.reschedule(id, Time::MAX).unwrap();
    assert!(engine.schedule(Timer::after(MS, 8)).is_err());
    assert_eq!(engine.cancel(id), Cancel::Cancelled(7));
    assert!(engine.schedule(Timer::after(MS, 8)).is_ok());
}

#[test]
fn promise_14_a_disarmed_timer_is_paused_like_any_other() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::after(70 * MS, 7)).unwrap();
    engine.reschedule(id, Time::MAX).unwrap();
    engine.pause(id).unwrap();
    assert!(engine.paused(id) > Some(1_000_000 * SECOND));
    engine.reschedule(id, 5 * MS).unwrap();
    assert_eq!(engine.paused(id), Some(5 * MS));
    engine.resume(id).unwrap();
    clock.advance(5 * MS);
    assert_eq!(engine.queue(0).try_recv().unwrap().into_payload(), 7);
}

#[test]
fn promise_08_a_disarmed_task_is_notified_of_its_cancellation() {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let (tell, told) = mpsc::channel();
    let task = move |firing: Firing| tell.send(firing.outcome()).unwrap();
    let id = tasks.run(Timer::after(SECOND, task).notified()).unwrap();
    tasks.engine().reschedule(id, Time::MAX).unwrap();
    assert!(tasks.engine().cancel(id).is_cancelled());
    let _ = driver.run_due(1);
    assert_eq!(told.try_recv(), Ok(CloseReason::Cancelled));
}

#[test]
fn promise_13_a_timer_that_is_used_again_costs_one_wakeup_per_delay() {
    let (engine, driver) = Engine::<u32>::builder().start_driven().unwrap();
    let id = engine.schedule(Timer::after(100_000 * SECOND, 7)).unwrap();
    let first = driver.next_wakeup();
    for n in 0..1_000 {
        engine.reschedule(id, Time::MAX).unwrap();
        engine
            .reschedule(id, 100_000 * SECOND + n * SECOND)
            .unwrap();
        assert_eq!(driver.next_wakeup(), first);
    }
}
