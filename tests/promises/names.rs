//! Names of timers, as they can be read: in a walk, in a look-up, in a firing, in a
//! report, and in the list that a shutdown returns.

use super::*;
use tickwheel::{Closed, Timer};

fn named<T>(closed: &Closed<T>) -> Option<&str> {
    closed.name.as_deref()
}

#[test]
fn promise_08_a_report_carries_the_name_however_its_timer_ended() {
    let (engine, clock) = virtual_engine();
    let schedule = |timer: Timer<u32>| engine.schedule(timer.reported()).unwrap();
    let completed = schedule(Timer::after(MS, 0).named("completed"));
    let counted = schedule(Timer::every(MS, 1).times(1).named("counted"));
    let nameless = schedule(Timer::after(MS, 2));
    let cancelled = schedule(Timer::after(SECOND, 3).named("cancelled"));
    let unread = schedule(Timer::after(SECOND, 4).named("unread"));
    clock.advance(MS);
    take_all(&engine).into_iter().for_each(drop);
    assert_eq!(engine.cancel_by_name("cancelled", None).ids.len(), 1);
    assert!(engine.cancel(unread).payload().is_some());
    let again = schedule(Timer::after(SECOND, 5).named("unread"));
    // The name of a timer that has ended leads to later timers alone.
    assert_eq!(engine.find_by_name("unread").collect::<Vec<_>>(), [again]);

    let reports: Vec<_> = engine.reports().try_iter().collect();
    let name_of = |id| named(reports.iter().find(|report| report.id == id).unwrap());
    assert_eq!(name_of(completed), Some("completed"));
    assert_eq!(name_of(counted), Some("counted"));
    assert_eq!(name_of(nameless), None);
    assert_eq!(name_of(cancelled), Some("cancelled"));
    assert_eq!(name_of(unread), Some("unread"));
}

#[test]
fn promise_12_the_list_of_a_shutdown_carries_names() {
    let (engine, clock) = virtual_engine();
    let schedule = |timer: Timer<u32>| engine.schedule(timer).unwrap();
    schedule(Timer::every(MS, 0).named("runs"));
    clock.advance(MS);
    let running = take_all(&engine);
    schedule(Timer::after(SECOND, 1).named("waits"));
    schedule(Timer::after(SECOND, 2));
    let closed = engine.shutdown();
    let mut names: Vec<_> = closed.iter().map(named).collect();
    names.sort();
    assert_eq!(names, [None, Some("runs"), Some("waits")]);
    drop(running);
}

#[test]
fn promise_03_a_walk_lists_the_names_of_all_live_timers() {
    let (engine, clock) = virtual_engine();
    let schedule = |timer: Timer<u32>| engine.schedule(timer).unwrap();
    let plain = schedule(Timer::after(SECOND, 0));
    let runs = schedule(Timer::every(MS, 1).named("runs"));
    let waits = schedule(Timer::after(SECOND, 2).named("waits"));
    clock.advance(MS);
    let running = take_all(&engine);
    let mut live: Vec<_> = engine.live().map(|it| (it.name, it.id)).collect();
    live.sort();
    let [runs, waits] =
        [("runs", runs), ("waits", waits)].map(|(name, id)| (Some(name.into()), id));
    assert_eq!(live, [(None, plain), runs, waits]);
    drop(running);
}

#[test]
fn promise_05_a_look_up_finds_the_timers_of_a_name_oldest_first() {
    let (engine, clock) = virtual_engine();
    let timer = |name: &str| Timer::after(MS, 0).named(name);
    let first = engine.schedule(timer("crew")).unwrap();
    engine.schedule(timer("others")).unwrap();
    let unstarted = engine.create(timer("crew")).unwrap();
    let beat = Timer::every(MS, 0).named("crew");
    let beat = engine.schedule(beat).unwrap();
    let found = || engine.find_by_name("crew").collect::<Vec<_>>();
    assert_eq!(found(), [first, unstarted.id(), beat]);
    assert_eq!(engine.find_by_name("nobody").next(), None);

    // A firing that runs keeps its name, unless it is cancelled.
    clock.advance(MS);
    let taken = take_all(&engine);
    assert_eq!(found(), [unstarted.id(), beat]);
    let _ = engine.cancel(beat);
    assert_eq!(found(), [unstarted.id()]);
    assert!(unstarted.dismiss().is_some());
    assert!(found().is_empty());
    drop(taken);
}

#[test]
fn promise_03_a_firing_carries_the_name_of_its_timer() {
    let (engine, clock) = virtual_engine();
    let schedule = |timer: Timer<u32>| engine.schedule(timer).unwrap();
    schedule(Timer::after(MS, 0).named("once"));
    schedule(Timer::every(MS, 1).named("beat"));
    schedule(Timer::after(MS, 2));
    clock.advance(MS);
    let mut taken = take_all(&engine);
    taken.sort_by_key(|expired| *expired.payload());
    // A cancel of a firing that runs does not take its name.
    assert_eq!(engine.cancel_by_name("beat", None).ids.len(), 1);
    let names: Vec<_> = taken.iter().map(Expired::name).collect();
    assert_eq!(names, [Some("once"), Some("beat"), None]);
}
