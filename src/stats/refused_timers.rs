//! The timers that an engine has refused.

use crate::timer::Refusal;

/// The number of timers that an engine refused because of its own state, by reason.
/// Leaves out timers that no engine would accept, such as one with a period of zero.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Timer};
///
/// let engine = Engine::builder().shards(1).max_timers(1).start()?;
/// for n in 0..4 {
///     let _ = engine.schedule(Timer::after(Duration::from_secs(30), n));
/// }
/// assert_eq!(engine.snapshot().refused.full, 3);
/// # Ok::<(), tickwheel::StartError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RefusedTimers {
    /// Timers beyond [`Builder::max_timers`](crate::Builder::max_timers).
    pub full: u64,
    /// Timers that came after the start of a drain or of a shutdown.
    pub shut_down: u64,
}

impl RefusedTimers {
    pub(crate) fn count(&mut self, reason: Refusal) {
        match reason {
            Refusal::Full => self.full += 1,
            // A call that asks for the impossible is refused before it reaches a shard.
            _ => self.shut_down += 1,
        }
    }

    pub(crate) fn add(&mut self, other: &RefusedTimers) {
        self.full += other.full;
        self.shut_down += other.shut_down;
    }
}
