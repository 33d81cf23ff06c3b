//! What both benches need: a random number generator that costs next to
//! nothing, delays, and sizes that shrink when the benches are only tested.

use std::env;
use std::time::Duration;

/// Delays are uniform between one tick and this many.
pub const SPAN: u64 = 60_000;

/// How many timers a thread has in flight in `pair`.
pub const IN_FLIGHT: usize = 1_024;

/// An xorshift generator: two nanoseconds a number, so that what is measured
/// is the timers.
pub struct Rng(u64);

impl Rng {
    /// The same seed gives the same numbers, in every run.
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, by multiplication: a division would cost more
    /// than some of the calls that are measured.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.number()) * end as u128) >> 64) as usize
    }

    /// A delay in ticks, 1 to [`SPAN`].
    pub fn delay(&mut self) -> u64 {
        1 + self.below(SPAN as usize) as u64
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// `size`, or a small one under `cargo bench -- --test`, which only asks
/// whether the benches still run.
pub fn sized(size: usize) -> usize {
    let is_test = env::args().any(|argument| argument == "--test");
    if is_test { size.min(2_000) } else { size }
}

/// A size for people: `1M`, `64k`.
pub fn label(size: usize) -> String {
    match size {
        0..1_000 => size.to_string(),
        1_000..1_000_000 => format!("{}k", size / 1_000),
        _ => format!("{}M", size / 1_000_000),
    }
}

/// Short runs: the figures to trust are ratios, and those from one run.
pub fn settings() -> criterion::Criterion {
    criterion::Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args()
}
