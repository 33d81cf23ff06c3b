//! Filling an empty collection, growth included, and cancels in random order.

use fastrand::Rng;

use super::setup::{SPAN, filled};
use crate::case::{Case, Reading};
use crate::effort::Effort;
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
    Case::new(T::NAME, T::THREAD_SAFE, size, move || {
        let mut rng = Rng::with_seed(4);
        let mut timers = T::new();
        let begun = Stopwatch::start();
        let mut table = filled(&mut timers, size, &mut rng);
        let filling = begun.elapsed();
        rng.shuffle(&mut table);
        let begun = Stopwatch::start();
        for id in table.into_iter().flatten() {
            timers.cancel(id);
        }
        vec![
            Reading::per_step("fill", filling, size),
            Reading::per_step("cancel", begun.elapsed(), size),
        ]
    })
}

/// Measures on the real clock. No timer expires meanwhile.
fn threaded<E: Shared>(size: usize) -> Case {
    Case::new(E::NAME, E::THREAD_SAFE, size, move || {
        let mut rng = Rng::with_seed(4);
        let engine = E::start();
        let mut caller = engine.caller();
        let mut ids = Vec::with_capacity(size);
        let begun = Stopwatch::start_all();
        ids.extend((0..size).map(|_| caller.schedule(SPAN + rng.u64(1..=SPAN), 0)));
        engine.settle();
        let filling = begun.elapsed();
        rng.shuffle(&mut ids);
        let begun = Stopwatch::start_all();
        ids.into_iter().for_each(|id| caller.cancel(id));
        engine.settle();
        vec![
            Reading::per_step("fill, engine", filling, size),
            Reading::per_step("cancel, engine", begun.elapsed(), size),
        ]
    })
}
