//! Awaited timers on real runtimes. The tests are in `tests`; this library holds what
//! several of them need.

mod by_hand;

pub use by_hand::{ByHand, Wakes};

use std::time::Duration;

/// Returns a number of milliseconds.
#[must_use]
pub const fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}
