//! Heap bytes per live timer with an eight-byte payload: with all timers live,
//! after nine in ten were cancelled, and after the call that returns memory, if the
//! engine has one. The caller's ids count only where an id owns its timer.

use std::thread;
use std::time::Duration;

use fastrand::Rng;

use super::setup::{GROWTH, SPAN};
use crate::allocator::Watch;
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::{Caller, Shared, Timers};
use crate::rivals::{owners, shared};

/// The time in which a dropped engine ends its thread and frees its memory, so
/// that those bytes are not counted.
const LAST_ENGINE_ENDS: Duration = Duration::from_millis(20);

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in effort.sizes(&GROWTH) {
        cases.extend(owners!(owner(size)));
        cases.extend(shared!(threaded(size)));
    }
    cases.retain(|case| !case.engine.starts_with("floor"));
    cases
}

fn owner<T: Timers>(size: usize) -> Case {
    Case::new(T::NAME, T::THREAD_SAFE, size, move || {
        let mut ids = Vec::with_capacity(size);
        let mut rng = Rng::with_seed(11);
        thread::sleep(LAST_ENGINE_ENDS);
        let watch = Watch::start();
        let mut timers = T::new();
        ids.extend((0..size).map(|_| timers.schedule(rng.u64(1..=SPAN), 0)));
        let live = watch.bytes();
        most(&mut ids).for_each(|id| timers.cancel(id));
        let left = watch.bytes();
        timers.shrink();
        readings(size, live, left, watch.bytes())
    })
}

fn threaded<E: Shared>(size: usize) -> Case {
    Case::new(E::NAME, E::THREAD_SAFE, size, move || {
        let mut ids = Vec::with_capacity(size);
        let mut rng = Rng::with_seed(11);
        thread::sleep(LAST_ENGINE_ENDS);
        let watch = Watch::start();
        let engine = E::start();
        let mut caller = engine.caller();
        ids.extend((0..size).map(|_| caller.schedule(SPAN + rng.u64(1..=SPAN), 0)));
        engine.settle();
        let live = watch.bytes();
        most(&mut ids).for_each(|id| caller.cancel(id));
        engine.settle();
        let left = watch.bytes();
        engine.shrink();
        readings(size, live, left, watch.bytes())
    })
}

/// Removes nine in ten of the ids.
fn most<Id>(ids: &mut Vec<Id>) -> impl Iterator<Item = Id> + '_ {
    let kept = ids.len() / 10;
    ids.drain(kept..)
}

fn readings(size: usize, live: i64, left: i64, shrunk: i64) -> Vec<Reading> {
    let per_timer = |bytes: i64, timers: usize| bytes as f64 / timers as f64;
    let few = size / 10;
    vec![
        Reading::new("live", "B", per_timer(live, size)),
        Reading::new("after 90 % cancelled", "B", per_timer(left, few)),
        Reading::new("the same, given back", "B", per_timer(shrunk, few)),
    ]
}
