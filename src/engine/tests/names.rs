//! Timers that share a name.

use std::time::Duration;

use crate::engine::Engine;
use crate::shard::names::NAMESAKES_PER_HOLD;
use crate::stats::RefusedTimers;
use crate::timer::{Cancel, Refusal, Timer};

/// A look-up takes many holds. Between two of them, timers end and others come.
#[test]
fn a_look_up_finds_what_stays_once_and_nothing_that_comes_later() {
    const TIMERS: usize = 3 * NAMESAKES_PER_HOLD + 1;
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    let named = |n: usize| {
        let timer = Timer::after(Duration::from_secs(1), n).named("crew");
        engine.schedule(timer).unwrap()
    };
    let ids: Vec<_> = (0..TIMERS).map(named).collect();
    let mut found = Vec::new();
    for id in engine.find_by_name("crew").take(2 * TIMERS) {
        found.push(id);
        named(TIMERS);
        // Those of the current hold have been found already.
        if found.len() == NAMESAKES_PER_HOLD {
            engine.cancel(ids[0]);
            engine.cancel(ids[NAMESAKES_PER_HOLD]);
        }
    }
    assert!(engine.cancel_by_name("crew", None).len() > TIMERS);
    let mut expected = ids;
    expected.remove(NAMESAKES_PER_HOLD);
    assert_eq!(found, expected);
}

#[test]
fn timers_of_many_threads_with_one_name_are_in_one_shard() {
    let (engine, _clock) = Engine::builder().shards(8).start_virtual().unwrap();
    let named = || {
        let timer = Timer::after(Duration::from_secs(1), ()).named("crew");
        engine.schedule(timer).unwrap()
    };
    let ids: Vec<_> = std::thread::scope(|scope| {
        let threads = [(); 8].map(|()| scope.spawn(named));
        threads.map(|thread| thread.join().unwrap()).into()
    });
    assert!(ids.iter().all(|id| id.wheel() == ids[0].wheel()));
    assert_eq!(engine.cancel_by_name("crew", None).len(), ids.len());
}

#[test]
fn nothing_is_left_of_the_name_of_a_timer_that_was_never_started() {
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    let named = || Timer::after(Duration::from_secs(1), ()).named("crew");
    let unstarted = engine.create(named()).unwrap();
    assert!(engine.find_by_name("crew").eq([unstarted.id()]));
    drop(unstarted);
    assert!(engine.create(named()).unwrap().dismiss().is_some());
    assert!(engine.find_by_name("crew").eq([]));
}

/// The callers need no lock of their own around a look-up and the scheduling.
#[test]
fn one_of_many_threads_gets_a_unique_name() {
    let builder = Engine::builder().shards(8).max_timers(2);
    let (engine, _clock) = builder.start_virtual().unwrap();
    let unique = || Timer::after(Duration::from_secs(1), ()).unique("flush");
    for _ in 0..100 {
        let answers = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| engine.schedule(unique())));
            threads.map(|thread| thread.join().unwrap())
        });
        let [id] = answers.iter().flatten().copied().collect::<Vec<_>>()[..] else {
            panic!("{answers:?}");
        };
        let refusals = answers.iter().filter_map(|it| it.as_ref().err());
        assert!(refusals.map(|it| it.reason()).eq([Refusal::NameTaken; 3]));
        // A refusal costs no credit, and so there is room for one more timer.
        let created = engine.create(unique().named("other")).unwrap();
        drop(created);
        assert!(engine.cancel(id).is_cancelled());
    }
    // Only for want of room are timers counted that were refused.
    assert_eq!(engine.snapshot().refused, RefusedTimers::default());
}

#[test]
fn a_unique_name_is_taken_by_any_live_timer_until_it_ends() {
    let (engine, clock) = Engine::builder().start_virtual().unwrap();
    let second = Duration::from_secs(1);
    let timer = || Timer::after(second, ()).rearmable();
    let is_free = || match engine.create(timer().named("other").unique("flush")) {
        Ok(unstarted) => unstarted.dismiss().is_some(),
        Err(refused) => refused.reason() != Refusal::NameTaken,
    };
    let unstarted = engine.create(timer().unique("flush")).unwrap();
    assert!(!is_free());
    drop(unstarted);
    assert!(is_free());
    // A name that may be shared is shared, whatever others ask for.
    for timer in [timer().unique("flush"), timer().named("flush")] {
        let id = engine.schedule(timer).unwrap();
        assert!(!is_free());
        clock.advance(second);
        let due = engine.queue(0).recv().unwrap();
        assert!(!is_free(), "a worker has a firing");
        // The last firing, which may end by itself, does not count as cancelled.
        let renamed = Timer::after(second, ()).unique("other").named("flush");
        let other = engine.schedule(renamed).unwrap();
        let answers = engine.cancel_by_name("flush", 1);
        assert!(answers == [(id, Cancel::Running), (other, Cancel::Cancelled(()))]);
        assert!(!is_free(), "the last firing is still running");
        drop(due);
        assert!(is_free());
    }
}
