//! Fill an empty collection, growth included, and cancel in random order.

use super::filled;
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::Timers;
use crate::rivals::owners;
use crate::rng::Rng;
use crate::stopwatch::Stopwatch;

pub fn cases(effort: Effort) -> Vec<Case> {
    let sizes = effort.sizes(&[10_000, 1_000_000, 10_000_000]);
    let each = |size| owners!(case(size));
    sizes.into_iter().flat_map(each).collect()
}

fn case<T: Timers>(size: usize) -> Case {
    Case::new(T::NAME, T::THREAD_SAFE, size, move || run::<T>(size))
}

fn run<T: Timers>(size: usize) -> Vec<Reading> {
    let mut rng = Rng::new(4);
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
}
