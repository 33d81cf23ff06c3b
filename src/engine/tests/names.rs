//! Timers that share a name.

use std::time::Duration;

use crate::engine::Engine;
use crate::shard::names::NAMESAKES_PER_HOLD;
use crate::timer::Timer;

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
