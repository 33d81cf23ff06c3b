//! The clock jumps an hour ahead, over and over, and nothing is due: with no
//! timer, and with one that is far away.

use std::time::Duration;

use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::Timers;
use crate::rivals::owners;
use crate::stopwatch::Stopwatch;

const HOUR_TICKS: u64 = 3_600_000;
const JUMPS: usize = 100;

/// Forty days, which everybody can express.
const FAR: u64 = 960 * HOUR_TICKS;

pub fn cases(_: Effort) -> Vec<Case> {
    let mut cases = owners!(case(0));
    cases.extend(owners!(case(1)));
    cases
}

fn case<T: Timers>(size: usize) -> Case {
    Case::new(T::NAME, T::THREAD_SAFE, size, move || {
        vec![Reading::per_step("jump", run::<T>(size), JUMPS)]
    })
}

fn run<T: Timers>(size: usize) -> Duration {
    let mut timers = T::new();
    let ids: Vec<_> = (0..size).map(|_| timers.schedule(FAR, 0)).collect();
    let mut fired = Vec::new();
    let begun = Stopwatch::start();
    for jump in 1..=JUMPS as u64 {
        timers.advance(jump * HOUR_TICKS, &mut fired);
    }
    let elapsed = begun.elapsed();
    assert!(fired.is_empty(), "{} fired early", T::NAME);
    drop(ids);
    elapsed
}
