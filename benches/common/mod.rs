//! Code that the benches share: delays, and sizes that are smaller when the benches
//! are only tested.

use std::env;
#[cfg(feature = "criterion")]
use std::time::Duration;

use fastrand::Rng;

/// The longest delay, in ticks. Delays are distributed uniformly from one tick up.
pub const SPAN: u64 = 60_000;

/// The number of timers that a thread has in flight in `pair`.
pub const IN_FLIGHT: usize = 1_024;

/// Returns a delay of 1 to [`SPAN`] ticks.
pub fn delay(rng: &mut Rng) -> u64 {
    rng.u64(1..=SPAN)
}

/// Returns `size`, or a small size under `cargo bench … -- --test`, which only checks
/// that the benches still run.
pub fn sized(size: usize) -> usize {
    let is_test = env::args().any(|argument| argument == "--test");
    if is_test { size.min(2_000) } else { size }
}

/// Returns settings for short runs, whose figures are only comparable as ratios
/// within one run.
#[cfg(feature = "criterion")]
pub fn settings() -> criterion::Criterion {
    criterion::Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args()
}
