//! Keep-alives, each of which gives a random timer its full delay again; and the
//! opposite, bringing timers forward.

use std::time::Duration;

use fastrand::Rng;

use super::setup::{SPAN, Table, filled, steps_in_time};
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::{Caller, Shared, Timers};
use crate::rivals::{owners, shared};
use crate::stopwatch::Stopwatch;

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in effort.sizes(&[1_000, 1_000_000]) {
        cases.extend(owners!(owner(size, effort)));
        cases.extend(shared!(threaded(size, effort)));
    }
    cases
}

fn owner<T: Timers>(size: usize, effort: Effort) -> Case {
    let steps = effort.steps();
    Case::new(T::NAME, T::THREAD_SAFE, size, move || {
        let mut rng = Rng::with_seed(6);
        let mut timers = T::new();
        let mut table = filled(&mut timers, size, &mut rng);
        let later = later(&mut timers, &mut table, steps, &mut rng);
        let mut timers = T::new();
        let mut table = filled(&mut timers, size, &mut rng);
        let move_to = |which, deadline| move_to(&mut timers, &mut table, which, deadline);
        let earlier = earlier(0, size, steps, move_to, || ());
        vec![
            Reading::per_step("later", later, steps),
            Reading::per_step("earlier", earlier, steps),
        ]
    })
}

fn move_to<T: Timers>(timers: &mut T, table: &mut Table<T>, which: usize, deadline: u64) {
    let payload = which as u64;
    table[which] = Some(match table[which].take() {
        Some(id) => timers.postpone(id, deadline, payload),
        // The timer fired before its keep-alive.
        None => timers.schedule(deadline, payload),
    });
}

/// Postpones timers while time moves on, so that the figure includes linking
/// postponed timers again.
fn later<T: Timers>(timers: &mut T, table: &mut Table<T>, steps: usize, rng: &mut Rng) -> Duration {
    steps_in_time(timers, table, steps, |timers, table, _, now| {
        move_to(timers, table, rng.usize(..table.len()), now + SPAN);
    })
}

/// Moves each timer once, in random order, from the second span after `from` to
/// the first. Moving the timers to the second span is not timed.
fn earlier(
    from: u64,
    size: usize,
    steps: usize,
    mut move_to: impl FnMut(usize, u64),
    settle: impl Fn(),
) -> Duration {
    let mut rng = Rng::with_seed(12);
    let mut order: Vec<usize> = (0..size).collect();
    rng.shuffle(&mut order);
    let mut left = steps;
    let mut elapsed = Duration::ZERO;
    while left > 0 {
        let round = &order[..left.min(size)];
        left -= round.len();
        for &which in round {
            move_to(which, from + SPAN + rng.u64(1..=SPAN));
        }
        settle();
        let begun = Stopwatch::start_all();
        for &which in round {
            move_to(which, from + rng.u64(1..=SPAN));
        }
        settle();
        elapsed += begun.elapsed();
    }
    elapsed
}

/// Measures on the real clock. No timer expires: every delay is longer than the
/// measurement.
fn threaded<E: Shared>(size: usize, effort: Effort) -> Case {
    let steps = effort.steps();
    Case::new(E::NAME, E::THREAD_SAFE, size, move || {
        let mut rng = Rng::with_seed(7);
        let engine = E::start();
        let mut caller = engine.caller();
        let mut ids: Vec<Option<E::Id>> = (0..size)
            .map(|_| Some(caller.schedule(SPAN + rng.u64(1..=SPAN), 0)))
            .collect();
        let mut move_to = |which: usize, delay| {
            let id = &mut ids[which];
            *id = id.take().map(|id| caller.postpone(id, delay, 0));
        };
        engine.settle();
        let begun = Stopwatch::start_all();
        (0..steps).for_each(|_| move_to(rng.usize(..size), 2 * SPAN));
        engine.settle();
        let later = begun.elapsed();
        let earlier = earlier(SPAN, size, steps, move_to, || engine.settle());
        vec![
            Reading::per_step("later, engine", later, steps),
            Reading::per_step("earlier, engine", earlier, steps),
        ]
    })
}
