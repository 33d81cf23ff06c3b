//! What several workloads share: the length of delays, the numbers of timers,
//! and a table of the ids of those that have not fired.

use fastrand::Rng;

use crate::rival::Timers;

/// Delays are uniform between one tick and this many.
pub const SPAN: u64 = 60_000;

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
