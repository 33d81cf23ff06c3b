//! Where waiters of a lock sleep: on a futex (`futex.rs`), or, in a model and
//! where the system has none, on a condition variable (`bed.rs`).
//!
//! A sleep is short even if nobody ends it: `raw.rs` says why.

use std::time::Duration;

use crate::sync::primitives::AtomicU32;

/// How long a sleep lasts that nobody ends.
pub(super) const LONGEST: Duration = Duration::from_millis(1);

/// What a lock's waiters sleep on, with a word of that lock.
pub trait Parker: Default {
    /// Sleeps unless `word` has changed from `seen`. Ends when it is woken, after
    /// [`LONGEST`], or for no reason.
    fn park(&self, word: &AtomicU32, seen: u32);

    /// Wakes one that sleeps. `word` was changed before.
    fn wake_one(&self, word: &AtomicU32);
}
