//! Filling an empty collection, growth included, and cancels in random order.

use fastrand::Rng;

use super::common::{SPAN, filled};
use crate::case::{Case, Effort};
use crate::rival::{Caller, Shared, Timers};
use crate::rivals::{owners, shared};
use crate::stopwatch::Stopwatch;

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in effort.sizes(&[10_000, 1_000_000, 10_000_000]) {
        cases.extend(owners!(owner(size)));
        cases.extend(shared!(threaded(size)));
    }
    cases
}

fn owner<T: Timers>(size: usize) -> Case {
    let metrics = &[("fill, one owner", "ns"), ("cancel, one owner", "ns")];
    Case::of::<T>(metrics, size, move || {
        let mut rng = Rng::with_seed(4);
        let mut timers = T::new();
        let begun = Stopwatch::start();
        let mut table = filled(&mut timers, size, &mut rng);
        let fill = begun.per_step(size);
        rng.shuffle(&mut table);
        let begun = Stopwatch::start();
        table.into_iter().flatten().for_each(|id| timers.cancel(id));
        vec![fill, begun.per_step(size)]
    })
}

/// Measures on the real clock. No timer expires before the end.
fn threaded<E: Shared>(size: usize) -> Case {
    let metrics = &[("fill, shared", "ns"), ("cancel, shared", "ns")];
    Case::of::<E>(metrics, size, move || {
        let mut rng = Rng::with_seed(4);
        let engine = E::start();
        let mut caller = engine.caller();
        let mut ids = Vec::with_capacity(size);
        let begun = Stopwatch::start_all();
        ids.extend((0..size).map(|_| caller.schedule(SPAN + rng.u64(1..=SPAN), 0)));
        engine.settle();
        let fill = begun.per_step(size);
        rng.shuffle(&mut ids);
        let begun = Stopwatch::start_all();
        ids.into_iter().for_each(|id| caller.cancel(id));
        engine.settle();
        vec![fill, begun.per_step(size)]
    })
}
