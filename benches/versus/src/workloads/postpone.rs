//! Keep-alives, each of which gives a random timer its full delay again; and timers that are
//! moved away and back.

use fastrand::Rng;

use super::common::{SPAN, Table, filled, steps_in_time};
use crate::case::{Case, Effort};
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

/// Time moves on, so that the figures include linking postponed timers again.
fn owner<T: Timers>(size: usize, effort: Effort) -> Case {
    let metrics = &[("later, one owner", "ns"), ("later and earlier, one owner", "ns")];
    Case::of::<T>(metrics, size, move || {
        let mut rng = Rng::with_seed(6);
        let mut timers = T::new();
        let mut table = filled(&mut timers, size, &mut rng);
        let steps = effort.steps();
        let later = steps_in_time(&mut timers, &mut table, steps, |timers, table, now| {
            move_to(timers, table, rng.usize(..size), now + SPAN);
        });
        let mut timers = T::new();
        let mut table = filled(&mut timers, size, &mut rng);
        let both = steps_in_time(&mut timers, &mut table, steps, |timers, table, now| {
            let which = rng.usize(..size);
            move_to(timers, table, which, now + SPAN + rng.u64(1..=SPAN));
            move_to(timers, table, which, now + rng.u64(1..=SPAN));
        });
        vec![later, both]
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

/// Measures on the real clock. No timer expires: every delay is longer than the measurement.
fn threaded<E: Shared>(size: usize, effort: Effort) -> Case {
    let metrics = &[("later, shared", "ns"), ("later and earlier, shared", "ns")];
    Case::of::<E>(metrics, size, move || {
        let mut rng = Rng::with_seed(7);
        let engine = E::start();
        let mut caller = engine.caller();
        let schedule = |_| Some(caller.schedule(SPAN + rng.u64(1..=SPAN), 0));
        let mut ids: Vec<Option<E::Id>> = (0..size).map(schedule).collect();
        let mut move_to = |which: usize, delay| {
            let id = &mut ids[which];
            *id = id.take().map(|id| caller.postpone(id, delay, 0));
        };
        engine.settle();
        let begun = Stopwatch::start_all();
        (0..effort.steps()).for_each(|_| move_to(rng.usize(..size), 2 * SPAN));
        engine.settle();
        let later = begun.per_step(effort.steps());
        let begun = Stopwatch::start_all();
        for _ in 0..effort.steps() {
            let which = rng.usize(..size);
            move_to(which, 2 * SPAN + rng.u64(1..=SPAN));
            move_to(which, SPAN + rng.u64(1..=SPAN));
        }
        engine.settle();
        vec![later, begun.per_step(effort.steps())]
    })
}
