//! What several workloads share: the length of delays, the numbers of timers, and a table of
//! the ids of those that have not fired.

use fastrand::Rng;

use crate::rival::Timers;
use crate::stopwatch::Stopwatch;

/// Delays are uniform between one tick and this many.
pub const SPAN: u64 = 60_000;

/// Extra ticks, because engines round a deadline up in different ways.
pub const GRACE: u64 = 2;

/// The numbers of timers over which workloads measure growth.
pub const GROWTH: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The ids of timers. A timer's payload is its place in the table.
pub type Table<T> = Vec<Option<<T as Timers>::Id>>;

/// Fills a collection with timers that are due within [`SPAN`] ticks.
pub fn filled<T: Timers>(timers: &mut T, count: usize, rng: &mut Rng) -> Table<T> {
    (0..count as u64).map(|n| Some(timers.schedule(rng.u64(1..=SPAN), n))).collect()
}

/// Moves the clock, and removes the timers that fired from the table.
pub fn advance<T: Timers>(timers: &mut T, now: u64, table: &mut Table<T>, fired: &mut Vec<u64>) {
    timers.advance(now, fired);
    for payload in fired.drain(..) {
        // An engine that can't identify fired timers has no stale ids.
        let cell = table.get_mut(payload as usize);
        if let Some(id) = cell.and_then(Option::take) {
            timers.ended(id);
        }
    }
}

/// Returns the nanoseconds of each of `steps`, a hundred of which are taken each tick, so
/// that the figure includes what a step leaves to later ticks. A step learns the tick.
pub fn steps_in_time<T: Timers>(
    timers: &mut T,
    table: &mut Table<T>,
    steps: usize,
    mut take_step: impl FnMut(&mut T, &mut Table<T>, u64),
) -> f64 {
    let mut fired = Vec::new();
    let mut now = 0;
    let begun = Stopwatch::start();
    for step in 1..=steps {
        take_step(timers, table, now);
        if step % 100 == 0 {
            now += 1;
            advance(timers, now, table, &mut fired);
        }
    }
    begun.per_step(steps)
}

/// Returns the value below which a share of all sorted values lies.
pub fn quantile<V: Copy>(sorted: &[V], share: f64) -> V {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}
