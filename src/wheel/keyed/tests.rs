//! Keys whose `Hash`, `Eq`, `Clone` or `Drop` panics, and the first timer of a wheel.

use super::*;
use core::cell::Cell;
use core::hash::Hasher;
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// The call of a key that panics next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Panics {
    Never,
    InHash,
    InEq,
    InClone,
    InDrop,
}

struct Key(u32, Rc<Cell<Panics>>);

impl Key {
    fn panics(&self, when: Panics) {
        if self.1.get() == when {
            self.1.set(Panics::Never);
            panic!("on purpose: {when:?}");
        }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.panics(Panics::InHash);
        // The keys 2n and 2n + 1 share a hash.
        (self.0 / 2).hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.panics(Panics::InEq);
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Clone for Key {
    fn clone(&self) -> Key {
        self.panics(Panics::InClone);
        Key(self.0, Rc::clone(&self.1))
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.panics(Panics::InDrop);
    }
}

/// Creates a wheel of six timers with the keys 0 to 5, due at ticks 10 to 15.
fn wheel(panics: &Rc<Cell<Panics>>) -> KeyedWheel<Key, Rc<()>> {
    let mut wheel = KeyedWheel::new(64);
    for n in 0..6 {
        let key = Key(n, Rc::clone(panics));
        assert_eq!(wheel.insert(key, Tick(10 + u64::from(n)), Rc::new(())), None);
    }
    wheel
}

type Call = fn(&mut KeyedWheel<Key, Rc<()>>, Key);

const CALLS: [(&str, Call); 11] = [
    ("insert", |wheel, key| {
        drop(wheel.insert(key, Tick(12), Rc::new(())));
    }),
    ("try_insert", |wheel, key| {
        drop(wheel.try_insert(key, Tick(12), Rc::new(())));
    }),
    ("cancel", |wheel, key| drop(wheel.cancel(&key))),
    ("reschedule", |wheel, key| {
        let _ = wheel.reschedule(&key, Tick(13));
    }),
    ("deadline", |wheel, key| _ = wheel.deadline(&key)),
    ("contains_key", |wheel, key| _ = wheel.contains_key(&key)),
    ("get", |wheel, key| _ = wheel.get(&key)),
    ("get_mut", |wheel, key| _ = wheel.get_mut(&key)),
    ("iter", |wheel, _| assert_eq!(wheel.iter().count(), 6)),
    ("pop_first", |wheel, _| drop(wheel.pop_first())),
    ("pop_due", |wheel, _| drop(wheel.pop_due(Tick(13)))),
];

/// Asserts that each key in use has a timer, that each timer has a key, and that
/// each timer fires once.
fn assert_whole(mut wheel: KeyedWheel<Key, Rc<()>>, what: &str) {
    let keys = || (0..8).map(|n| Key(n, Rc::new(Cell::new(Panics::Never))));
    let in_use = keys().filter(|key| wheel.contains_key(key)).count();
    assert_eq!((in_use, wheel.by_hash.len()), (wheel.len(), wheel.len()));
    let mut popped = Vec::new();
    while let Some(expired) = wheel.pop_due(Tick(100)) {
        assert!(!wheel.contains_key(&expired.key), "{what}");
        assert_eq!(Rc::strong_count(&expired.payload), 1, "{what}");
        popped.push(expired.key.0);
    }
    assert_eq!(wheel.by_hash.len(), 0, "{what}");
    popped.sort_unstable();
    popped.dedup();
    assert_eq!(popped.len(), in_use, "{what}");
    for key in keys() {
        assert!(wheel.insert(key, Tick(101), Rc::new(())).is_none(), "{what}");
    }
}

#[test]
fn a_panicking_key_costs_no_timer_and_no_other_key() {
    for (call, make) in CALLS {
        for panics in [Panics::InHash, Panics::InEq, Panics::InClone] {
            for n in [0, 3, 6, 7] {
                let what = format!("{call} of {n}, {panics:?}");
                let next = Rc::new(Cell::new(Panics::Never));
                let mut wheel = wheel(&next);
                let key = Key(n, Rc::clone(&next));
                next.set(panics);
                let called = catch_unwind(AssertUnwindSafe(|| make(&mut wheel, key)));
                next.set(Panics::Never);
                if called.is_err() {
                    assert_eq!(wheel.len(), 6, "{what}");
                    assert_eq!(wheel.pop_due(Tick(10)).map(|due| due.key.0), Some(0));
                }
                assert_whole(wheel, &what);
            }
        }
    }
}

/// Firing a timer does not call any of its key's methods.
#[test]
fn popping_neither_hashes_nor_compares_nor_clones_nor_drops_a_key() {
    for panics in [Panics::InHash, Panics::InEq, Panics::InClone, Panics::InDrop] {
        let next = Rc::new(Cell::new(Panics::Never));
        let mut wheel = wheel(&next);
        next.set(panics);
        let first = wheel.pop_first();
        let popped: Vec<_> = (0..6).map_while(|_| wheel.pop_due(Tick(20))).collect();
        assert_eq!((next.get(), popped.len()), (panics, 5));
        next.set(Panics::Never);
        drop((first, popped));
        assert_whole(wheel, "popped");
    }
}

/// The key is dropped last, when its timer has already been cancelled.
#[test]
fn a_key_that_panics_when_it_is_dropped_leaves_no_timer_behind() {
    let next = Rc::new(Cell::new(Panics::Never));
    let mut wheel = wheel(&next);
    let key = Key(3, Rc::new(Cell::new(Panics::Never)));
    let payload = Rc::clone(wheel.get(&key).unwrap());
    next.set(Panics::InDrop);
    let called = catch_unwind(AssertUnwindSafe(|| wheel.cancel(&key)));
    assert!(called.is_err());
    assert_eq!(Rc::strong_count(&payload), 1, "dropped in spite of the panic");
    assert_eq!((wheel.len(), wheel.contains_key(&key)), (5, false));
    assert_whole(wheel, "cancelled");
}

/// The new key is dropped last, when the old payload has been replaced.
#[test]
fn a_key_that_panics_when_it_is_dropped_has_replaced_its_timer() {
    let next = Rc::new(Cell::new(Panics::Never));
    let mut wheel = wheel(&next);
    let key = Key(3, Rc::clone(&next));
    let old = Rc::clone(wheel.get(&key).unwrap());
    next.set(Panics::InDrop);
    let replace = || wheel.insert(key, Tick(20), Rc::new(()));
    assert!(catch_unwind(AssertUnwindSafe(replace)).is_err());
    assert_eq!(Rc::strong_count(&old), 1, "dropped in spite of the panic");
    let key = Key(3, Rc::clone(&next));
    assert_eq!((wheel.len(), wheel.deadline(&key)), (6, Some(Tick(20))));
    assert_whole(wheel, "replaced");
}

/// Keys and payloads are dropped last, when all timers have been removed.
#[test]
fn a_key_that_panics_while_the_wheel_is_cleared_leaves_no_timer_behind() {
    let next = Rc::new(Cell::new(Panics::Never));
    let mut wheel = wheel(&next);
    let payload = Rc::clone(wheel.get(&Key(3, Rc::clone(&next))).unwrap());
    next.set(Panics::InDrop);
    let called = catch_unwind(AssertUnwindSafe(|| wheel.clear()));
    assert!(called.is_err());
    assert!(wheel.is_empty());
    assert_eq!(Rc::strong_count(&payload), 1, "dropped in spite of the panic");
    assert_whole(wheel, "cleared");
}

/// Nothing is in the way: no slot of an outer level, no postponement, no late timer, and no sort.
#[test]
fn the_first_is_the_one_with_the_earliest_deadline_and_then_the_oldest() {
    for is_sorting in [false, true] {
        let mut wheel = KeyedWheel::starting_at(Tick(100), 4);
        // One is due at the first tick of its slot, with an older and a younger one.
        let inserted = [("far", 5_000), ("off", 103), ("postponed", 103), ("same", 1_024)];
        let mut inserted = inserted.into_iter().chain([("postponed, too", 103)]);
        assert!(inserted.all(|(key, at)| wheel.insert(key, Tick(at), ()).is_none()));
        wheel.insert("brought forward", Tick(7_000), ());
        let postponed = [("postponed", 1_024), ("postponed, too", 1_024)];
        let moves = [("off", u64::MAX), postponed[0], postponed[1], ("brought forward", 107)];
        assert!(moves.iter().all(|&(key, tick)| wheel.reschedule(key, Tick(tick))));
        wheel.insert("younger", Tick(100), ());
        wheel.insert("overdue", Tick(7), ());
        assert!(wheel.reschedule("far", Tick(3)));
        // Late timers that are out of order are sorted before the first of them is due.
        let first = if is_sorting { wheel.pop_due(Tick(100)) } else { wheel.pop_first() };
        let popped = first.into_iter().chain(core::iter::from_fn(|| wheel.pop_first()));
        let now = ["far", "overdue", "younger"].map(|key| (key, 100));
        let later = [moves[3], postponed[0], ("same", 1_024), postponed[1], moves[0]];
        assert!(popped.map(|it| (it.key, it.deadline.0)).eq(now.into_iter().chain(later)));
        assert_eq!((wheel.now(), wheel.by_hash.len()), (Tick(100), 0));
    }
}

#[test]
fn a_wheel_that_shrinks_gives_the_memory_of_keys_and_of_timers_back() {
    let mut wheel = KeyedWheel::new(64);
    (0..9_000).for_each(|n| _ = wheel.insert(n, Tick(9), ()));
    (1..9_000).for_each(|n| _ = wheel.cancel(&n));
    wheel.insert(1, Tick(8), ());
    assert_eq!(wheel.pop_first().map(|first| first.key), Some(1));
    let bytes = wheel.wheel.entries.bytes();
    wheel.shrink();
    assert!(wheel.wheel.entries.bytes() < bytes / 2 && wheel.found.capacity() == 0);
    #[cfg(feature = "std")]
    assert!(wheel.by_hash.room() < 100);
    assert_eq!(wheel.cancel(&0), Some(()));
}

#[test]
#[cfg(feature = "std")]
fn a_wheel_that_becomes_empty_gives_the_memory_of_keys_back() {
    let ways: [fn(&mut KeyedWheel<u64, ()>); 3] = [
        |wheel| (0..9_000).for_each(|n| _ = wheel.cancel(&n)),
        |wheel| while wheel.pop_first().is_some() {},
        |wheel| while wheel.pop_due(Tick(9)).is_some() {},
    ];
    for empty in ways {
        let mut wheel = KeyedWheel::new(64);
        (0..9_000).for_each(|n| _ = wheel.insert(n, Tick(9), ()));
        assert!(wheel.by_hash.room() >= 9_000);
        wheel.found.reserve(9_000);
        empty(&mut wheel);
        assert!(wheel.is_empty() && wheel.by_hash.room() < 4_096);
        assert!(wheel.found.capacity() < 4_096);
    }
}

/// A search remembers many timers: those that end, move, or come between are none of the next.
#[test]
fn a_full_cache_takes_out_what_a_sorted_set_does() {
    let (mut wheel, mut sorted, mut timers) =
        (KeyedWheel::new(64), BTreeSet::new(), HashMap::new());
    for age in 0..20_000_u64 {
        let random = age.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        // Most come behind all others; some are sooner, and some replace an older one.
        let usual = 5_000 + age / if age < 10_000 { 4 } else { 4_000 };
        let deadline = if random % 16 == 0 { random % usual } else { usual };
        let key = if random % 3 == 0 { random % (age + 1) } else { age };
        let before = timers.get(&key).copied().inspect(|it| _ = sorted.remove(it));
        let timer = (deadline, before.map_or(age, |(_, age, _)| age), key);
        wheel.insert(key, Tick(deadline), ());
        timers.insert(key, timer);
        sorted.insert(timer);
        if let Some(gone) = timers.remove(&(random % 7_000)) {
            assert_eq!((wheel.cancel(&gone.2), sorted.remove(&gone)), (Some(()), true));
        }
        if sorted.len() > 3_000 {
            let (deadline, _, key) = sorted.pop_first().unwrap();
            let first = wheel.pop_first().unwrap();
            assert_eq!((first.deadline, first.key), (Tick(deadline), key));
            timers.remove(&key);
        }
    }
}

/// In a cache with lives of a second and of an hour, half of all entries come before what a
/// search has found. Each of them made the next call search again.
#[test]
fn what_comes_between_makes_no_search_necessary() {
    let mut cache = KeyedWheel::starting_at(Tick(10), 64);
    cache.insert(200, Tick(9_000), ());
    (0..100).for_each(|n| _ = cache.insert(n, Tick(5_000), ()));
    assert_eq!(cache.pop_first().map(|first| first.key), Some(0));
    assert!(cache.insert(100, Tick(40), ()).or(cache.insert(101, Tick(5), ())).is_none());
    let moves = [(99, 40), (98, 6), (200, 5_000)];
    assert!(moves.iter().all(|&(key, tick)| cache.reschedule(&key, Tick(tick))));
    assert_eq!(cache.found.len(), 104);
    assert!([101, 98, 99, 100, 200, 1].iter().all(|&key| cache.pop_first().unwrap().key == key));
    // What it remembers stays within bounds.
    (1_000..4_000).for_each(|n| _ = cache.insert(n, Tick(10), ()));
    assert_eq!(cache.found.len(), FOUND_AT_ONCE);
    assert!((1_000..4_000).all(|n| cache.pop_first().unwrap().key == n));
    assert!((2..98).all(|n| cache.pop_first().unwrap().key == n) && cache.is_empty());
}

/// If most entries of a cache were touched, the search found one timer among all of them, and the
/// next call searched again.
#[test]
fn what_was_postponed_makes_no_search_necessary_at_every_call() {
    let mut cache = KeyedWheel::new(64);
    (0..3_000).for_each(|n| _ = cache.insert(n, Tick(5_000), ()));
    assert!((0..3_000).all(|n| cache.reschedule(&n, Tick(1_000_000))));
    (3_000..3_100).for_each(|n| _ = cache.insert(n, Tick(2 * n), ()));
    assert!((3_000..3_100).all(|n| cache.pop_first().unwrap().key == n));
    assert_eq!(cache.found.len(), FOUND_AT_ONCE - 100);
    assert_eq!(cache.pop_first().map(|first| first.key), Some(0));
    // One that was postponed to the first tick of a later slot is behind an older one there.
    let mut cache = KeyedWheel::new(64);
    [(0, 9), (1, 5)].iter().for_each(|&(key, at)| _ = cache.insert(key, Tick(at), ()));
    assert!(cache.reschedule(&1, Tick(9)));
    assert!((0..2).all(|n| cache.pop_first().unwrap().key == n));
}
