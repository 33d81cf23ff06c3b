//! Timers that share a name.

use std::time::Duration;

use crate::engine::Engine;
use crate::engine::names::{NAMESAKES_PER_HOLD, Names, Namesakes};
use crate::id::TimerId;
use crate::timer::{Cancel, Timer};

fn all(names: &Names, namesakes: &mut Namesakes<'_>) -> Vec<TimerId> {
    let bucket = names.bucket_of(namesakes);
    std::iter::from_fn(|| bucket.next(namesakes)).collect()
}

#[test]
fn those_that_come_later_are_not_among_them() {
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    let named = |n: u32| {
        let timer = Timer::after(Duration::from_secs(1), n).named("crew");
        engine.schedule(timer).unwrap()
    };
    let first = [named(0), named(1)];
    let mut namesakes = engine.core.names.namesakes("crew");
    let mut later = engine.core.names.namesakes("crew");
    let third = named(2);
    assert_eq!(all(&engine.core.names, &mut namesakes), first);
    // The first timer is cancelled between two holds.
    assert!(engine.cancel(first[0]).into_payload().is_some());
    assert_eq!(all(&engine.core.names, &mut later), [first[1]]);
    let mut now = engine.core.names.namesakes("crew");
    assert_eq!(all(&engine.core.names, &mut now), [first[1], third]);
}

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
    for id in engine.find_by_name("crew") {
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
fn two_names_of_one_hash_are_two_names() {
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    let named = |name: &str| {
        let timer = Timer::after(Duration::from_secs(1), ()).named(name);
        engine.schedule(timer).unwrap()
    };
    let (one, other) = (named("one"), named("other"));
    // As if the other's name had the hash of the first.
    let naming = engine.core.names.begin("one");
    naming.end(other);
    assert!(engine.find_by_name("one").eq([one]));
    let cancelled = engine.cancel_by_name("one", None);
    assert_eq!(cancelled, [(one, Cancel::Cancelled(()))]);
    assert!(engine.find_by_name("other").eq([other]));
}

#[test]
fn nothing_is_left_of_the_name_of_a_timer_that_was_never_started() {
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    let named = || Timer::after(Duration::from_secs(1), ()).named("crew");
    let names = &engine.core.names;
    let unstarted = engine.create(named()).unwrap();
    let mut namesakes = names.namesakes("crew");
    assert_eq!(all(names, &mut namesakes), [unstarted.id()]);
    drop(unstarted);
    assert!(engine.create(named()).unwrap().dismiss().is_some());
    let mut namesakes = names.namesakes("crew");
    assert_eq!(all(names, &mut namesakes), []);
}
