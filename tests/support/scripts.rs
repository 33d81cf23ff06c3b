//! How many scripts the property tests of the wheel and of the engine run, and
//! where on the time line they start.

use proptest::prelude::*;

/// How many scripts a test runs: `PROPTEST_CASES`, or else `default`.
pub fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let config = ProptestConfig::default();
    ProptestConfig {
        cases: cases.and_then(|cases| cases.parse().ok()).unwrap_or(default),
        failure_persistence: None,
        max_shrink_iters: config.max_shrink_iters.min(20_000),
        ..config
    }
}

/// Ticks at which levels of `size` slots begin, end and wrap.
pub fn start_offsets(size: u64) -> [u64; 13] {
    [
        0,
        1,
        size - 1,
        size,
        size + 1,
        size.pow(2) - 1,
        size.pow(2),
        size.pow(2) + 1,
        size.saturating_pow(3),
        (1 << 32) - 3,
        (1 << 36) - 3,
        u64::MAX - size.pow(2),
        u64::MAX - 2,
    ]
}
