//! As `pair`, with a random victim among all live timers, and with time moving on.

use std::time::Duration;

use fastrand::Rng;

use super::setup::{SPAN, advance, filled};
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::Timers;
use crate::rivals::owners;
use crate::stopwatch::Stopwatch;

const PAIRS_PER_TICK: usize = 100;

pub fn cases(effort: Effort) -> Vec<Case> {
    let sizes = effort.either(vec![65_536], vec![1_024, 65_536, 1_000_000]);
    let each = |size| owners!(case(size, effort));
    sizes.into_iter().flat_map(each).collect()
}

fn case<T: Timers>(size: usize, effort: Effort) -> Case {
    let steps = effort.steps();
    Case::new(T::NAME, T::THREAD_SAFE, size, move || {
        vec![Reading::per_step("pair", run::<T>(size, steps), steps)]
    })
}

fn run<T: Timers>(size: usize, steps: usize) -> Duration {
    let mut rng = Rng::with_seed(2);
    let mut timers = T::new();
    let mut table = filled(&mut timers, size, &mut rng);
    let mut fired = Vec::new();
    let mut now = 0;
    let begun = Stopwatch::start();
    for step in 1..=steps {
        let victim = rng.usize(..size);
        if let Some(id) = table[victim].take() {
            timers.cancel(id);
        }
        let deadline = now + rng.u64(1..=SPAN);
        table[victim] = Some(timers.schedule(deadline, victim as u64));
        if step % PAIRS_PER_TICK == 0 {
            now += 1;
            advance(&mut timers, now, &mut table, &mut fired);
        }
    }
    begun.elapsed()
}
