//! Reusable timers: each connection has one, which is disarmed when a request has been
//! answered and armed for the next one. Engines without a call for it cancel the timer
//! and schedule another.

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
        let mut rng = Rng::with_seed(16);
        let mut timers = T::new();
        let mut table = filled(&mut timers, size, &mut rng);
        let elapsed = requests(&mut timers, &mut table, steps);
        vec![Reading::per_step("request", elapsed, steps)]
    })
}

/// Disarms and arms the timers in turn while time moves on. A timer whose request was
/// not answered in time has fired, and its connection gets another one.
fn requests<T: Timers>(timers: &mut T, table: &mut Table<T>, steps: usize) -> Duration {
    let mut which = 0;
    steps_in_time(timers, table, steps, |timers, table, _, now| {
        which = following(which, table.len());
        let disarmed = table[which].take().and_then(|id| timers.disarm(id));
        table[which] = Some(timers.arm(disarmed, now + SPAN, which as u64));
    })
}

/// Returns the connection whose turn is next. A remainder would take as long as a good part
/// of the calls.
fn following(which: usize, of: usize) -> usize {
    match which + 1 {
        next if next < of => next,
        _ => 0,
    }
}

/// Measures on the real clock. No timer expires: every delay is longer than the
/// measurement.
fn threaded<E: Shared>(size: usize, effort: Effort) -> Case {
    let steps = effort.steps();
    Case::new(E::NAME, E::THREAD_SAFE, size, move || {
        let engine = E::start();
        let mut caller = engine.caller();
        let mut ids: Vec<Option<E::Id>> =
            (0..size).map(|_| Some(caller.schedule(SPAN, 0))).collect();
        engine.settle();
        let begun = Stopwatch::start_all();
        let mut which = 0;
        for _ in 0..steps {
            which = following(which, size);
            let id = &mut ids[which];
            let disarmed = id.take().and_then(|id| caller.disarm(id));
            *id = Some(caller.arm(disarmed, SPAN, 0));
        }
        engine.settle();
        vec![Reading::per_step("request, engine", begun.elapsed(), steps)]
    })
}
