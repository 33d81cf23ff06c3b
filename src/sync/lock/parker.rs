//! Where waiters of a lock sleep: on a futex (`futex.rs`), or, in a model and on
//! systems without one, on a condition variable (`condvar.rs`).
//!
//! A sleep is short even if nothing ends it; `raw.rs` says why.

use std::time::Duration;

use crate::sync::primitives::AtomicU32;

/// How long a sleep lasts without a wake-up.
pub(super) const LONGEST: Duration = Duration::from_millis(1);

/// Puts waiters to sleep on a word of their lock.
pub trait Parker: Default {
    /// Sleeps unless `word` has changed from `seen`. The sleep ends at a wake-up,
    /// after [`LONGEST`], or spuriously.
    fn park(&self, word: &AtomicU32, seen: u32);

    /// Wakes one sleeper. The caller has changed `word` before.
    fn wake_one(&self, word: &AtomicU32);
}
