//! Heap bytes per live timer with an eight-byte payload: with all timers live, after nine in
//! ten were cancelled, and after the call that returns memory, if the engine has one. The
//! engine is in a box, because some have their slots within. The caller's ids count only where
//! an id owns its timer.

use fastrand::Rng;

use super::common::{GROWTH, SPAN};
use crate::allocator::Watch;
use crate::case::{Case, Effort};
use crate::rival::{Caller, Shared, Timers};
use crate::rivals::{owners, shared};

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in effort.sizes(&GROWTH) {
        cases.extend(owners!(owner(size)));
        cases.extend(shared!(threaded(size)));
    }
    cases
}

fn owner<T: Timers>(size: usize) -> Case {
    let metrics = &[
        ("live, one owner", "B"),
        ("after 90 % cancelled, one owner", "B"),
        ("the same, given back, one owner", "B"),
    ];
    Case::of::<T>(metrics, size, move || {
        let mut ids = Vec::with_capacity(size);
        let mut rng = Rng::with_seed(11);
        let watch = Watch::start();
        let mut timers = Box::new(T::new());
        ids.extend((0..size).map(|_| timers.schedule(rng.u64(1..=SPAN), 0)));
        let live = watch.bytes();
        ids.drain(size / 10..).for_each(|id| timers.cancel(id));
        let left = watch.bytes();
        timers.shrink();
        per_timer(size, live, left, watch.bytes())
    })
}

fn threaded<E: Shared>(size: usize) -> Case {
    let metrics = &[
        ("live, shared", "B"),
        ("after 90 % cancelled, shared", "B"),
        ("the same, given back, shared", "B"),
    ];
    Case::of::<E>(metrics, size, move || {
        let mut ids = Vec::with_capacity(size);
        let mut rng = Rng::with_seed(11);
        let watch = Watch::start();
        let engine = Box::new(E::start());
        let mut caller = engine.caller();
        ids.extend((0..size).map(|_| caller.schedule(SPAN + rng.u64(1..=SPAN), 0)));
        engine.settle();
        let live = watch.bytes();
        ids.drain(size / 10..).for_each(|id| caller.cancel(id));
        engine.settle();
        let left = watch.bytes();
        engine.shrink();
        per_timer(size, live, left, watch.bytes())
    })
}

fn per_timer(size: usize, live: i64, left: i64, shrunk: i64) -> Vec<f64> {
    let few = (size / 10) as f64;
    vec![live as f64 / size as f64, left as f64 / few, shrunk as f64 / few]
}
