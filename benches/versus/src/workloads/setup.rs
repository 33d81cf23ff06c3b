//! What several workloads share: the length of delays, the numbers of timers,
//! and a table of the ids of those that have not fired.

use std::time::Duration;

use fastrand::Rng;

use crate::rival::Timers;
use crate::stopwatch::Stopwatch;

/// Delays are uniform between one tick and this many.
pub const SPAN: u64 = 60_000;

/// The steps of [`steps_in_time`] between two ticks.
const STEPS_PER_TICK: usize = 100;

/// The numbers of timers over which workloads measure growth.
pub const GROWTH: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The ids of timers. A timer's payload is its place in the table.
pub type Table<T> = Vec<Option<<T as Timers>::Id>>;

/// Fills a collection with timers that are due within [`SPAN`] ticks.
pub fn filled<T: Timers>(timers: &mut T, count: usize, rng: &mut Rng) -> Table<T> {
    (0..count as u64)
        .map(|n| Some(timers.schedule(rng.u64(1..=SPAN), n)))
        .collect()
}

/// Moves the clock, and removes the timers that fired from the table.
pub fn advance<T: Timers>(timers: &mut T, now: u64, table: &mut Table<T>, fired: &mut Vec<u64>) {
    timers.advance(now, fired);
    for payload in fired.drain(..) {
        // An engine that cannot identify fired timers has no stale ids.
        let cell = table.get_mut(payload as usize);
        if let Some(id) = cell.and_then(Option::take) {
            timers.ended(id);
        }
    }
}

/// Measures steps while time moves on, so that the figure includes what a step leaves to
/// later ticks. A step learns its number and the present tick.
pub fn steps_in_time<T: Timers>(
    timers: &mut T,
    table: &mut Table<T>,
    steps: usize,
    mut take_step: impl FnMut(&mut T, &mut Table<T>, usize, u64),
) -> Duration {
    let mut fired = Vec::new();
    let mut now = 0;
    let begun = Stopwatch::start();
    for step in 1..=steps {
        take_step(timers, table, step, now);
        if step % STEPS_PER_TICK == 0 {
            now += 1;
            advance(timers, now, table, &mut fired);
        }
    }
    begun.elapsed()
}
