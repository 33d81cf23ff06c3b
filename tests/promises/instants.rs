//! Promises 1, 14 and 15 for timers whose time is an `Instant`.

use super::*;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;
use tickwheel::wheel::Advance;
use tickwheel::{Firing, NotChanged, Refusal, TaskEngine, Time, Timer};

#[test]
fn promise_01_a_timer_at_an_instant_is_never_early() {
    let engine = Engine::builder().start().unwrap();
    let queue = engine.queue(0);
    for micros in (0..20_000).step_by(1_701) {
        let instant = Instant::now() + Duration::from_micros(micros);
        engine.schedule(Timer::at(instant, instant)).unwrap();
        let due = queue.recv().unwrap();
        assert!(Instant::now() >= *due.payload());
        let deadline = engine.instant_of(due.deadline()).unwrap();
        assert!(deadline >= instant && deadline - instant < SECOND);
    }
}

#[test]
fn promise_14_an_instant_of_the_past_is_due_at_once_and_any_of_the_future_is_accepted() {
    let long_ago = Instant::now();
    thread::sleep(MS);
    let (engine, driver) = Engine::builder().start_driven().unwrap();
    let id = engine.schedule(Timer::at(long_ago, "past")).unwrap();
    assert_eq!(engine.deadline(id), Some(Time::START));
    assert_eq!(driver.process_due(100), Advance::Done);
    assert_eq!(engine.queue(0).recv().unwrap().into_payload(), "past");

    let year = 365 * 24 * 3_600 * SECOND;
    for years in [1, 100, 500] {
        let timer = Timer::at(Instant::now() + years * year, "future");
        let id = engine.schedule(timer).unwrap();
        let deadline = engine.deadline(id).unwrap();
        assert!(deadline - Time::START >= years * year);
        engine.reschedule(id, long_ago).unwrap();
        assert_eq!(engine.deadline(id), Some(Time::START));
    }
}

#[test]
fn promise_15_a_clock_that_does_not_measure_instants_refuses_them() {
    let instant = Instant::now() + SECOND;
    let engines = [
        Engine::builder().start_virtual().unwrap().0,
        #[cfg(target_os = "linux")]
        {
            let builder = Engine::builder().clock(tickwheel::ClockSource::BootTime);
            builder.start().unwrap()
        },
    ];
    for engine in engines {
        let timers = [
            Timer::at(instant, 7),
            Timer::at(instant, 7).named("seven"),
            Timer::every(SECOND, 7).starting(instant),
        ];
        for timer in timers {
            let refused = engine.schedule(timer.clone()).unwrap_err();
            assert_eq!(refused.reason(), Refusal::InstantOnOtherClock);
            assert_eq!(refused.into_timer(), timer);
            let refused = engine.create(timer.clone()).unwrap_err();
            assert_eq!(refused.reason(), Refusal::InstantOnOtherClock);
            assert!(refused.to_string().contains("`engine.now()` plus"));
            assert_eq!(refused.into_timer(), timer);
        }
        let make = |_| unreachable!("a refused timer has no id");
        let refused = engine.schedule_with(Timer::at(instant, make));
        let reason = refused.unwrap_err().reason();
        assert_eq!(reason, Refusal::InstantOnOtherClock);
        let id = engine.schedule(Timer::after(SECOND, 7)).unwrap();
        let deadline = engine.deadline(id);
        let moved = engine.reschedule(id, instant);
        assert_eq!(moved, Err(NotChanged::InstantOnOtherClock));
        assert_eq!(engine.deadline(id), deadline);
        assert_eq!(engine.ledger().accepted, 1);
    }
}

#[test]
fn promise_15_a_task_and_its_first_run_take_an_instant() {
    let now = Instant::now();
    let (timers, driver) = TaskEngine::builder().start_driven().unwrap();
    let (tell, told) = mpsc::channel();
    let again = tell.clone();
    timers
        .run_at(now, move || tell.send("once").unwrap())
        .unwrap();
    let beat = move |_: Firing| again.send("beat").unwrap();
    let beat = Timer::every(3_600 * SECOND, beat).starting(now);
    timers.run(beat).unwrap();
    let unstarted = timers.create(Timer::at(now, |_: Firing| ())).unwrap();
    unstarted.start().unwrap();
    let _ = driver.run_due(100);
    let ran: Vec<_> = told.try_iter().collect();
    assert_eq!(ran, ["once", "beat"]);
    assert_eq!(timers.ledger().completed, 2);
}
