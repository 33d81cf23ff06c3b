//! The sleep of a lock's waiters: on a futex (`futex.rs`) or, in a model and on
//! systems without a futex, on a condition variable (`condvar.rs`).
//!
//! A sleep is short even without a wake-up; `raw.rs` says why.

use std::time::Duration;

use crate::sync::primitives::AtomicU32;

/// The length of a sleep that no wake-up ends.
pub(super) const LONGEST: Duration = Duration::from_millis(1);

/// Puts waiters to sleep on a word of their lock.
pub trait Parker: Default {
    /// Sleeps unless `word` differs from `seen`. The sleep ends at a wake-up, after
    /// [`LONGEST`], or spuriously.
    fn park(&self, word: &AtomicU32, seen: u32);

    /// Wakes one sleeper. The caller has already changed `word`.
    fn wake_one(&self, word: &AtomicU32);
}
