//! Inspecting an engine.

use crate::engine::Engine;
use crate::stats::Inspection;

impl<T> Engine<T> {
    /// Returns where the timers wait: for each shard, the slots of its wheel, its ready
    /// lists, its account and its next wake-up. Counts at most `most` timers of a slot; with
    /// a `most` of 1, a count says whether the slot is occupied.
    ///
    /// For viewers and for questions such as "do my deadlines share a few
    /// slots?"; [`snapshot`](Engine::snapshot) has the counts for monitoring. If
    /// other threads use the engine meanwhile, a timer that moves from slot to
    /// slot may be counted twice or not at all.
    ///
    /// # Cost
    /// Grows with the numbers of shards and slots and with `most`, and not with the
    /// number of timers. A hold of a shard's lock visits at most 256 slots, or 256 entries,
    /// or `most` entries of one slot: with a large `most`, callers may wait for as long as
    /// that takes. A `most` of 1 reads no entry.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let (engine, clock) = Engine::builder().shards(1).start_virtual()?;
    /// for seconds in [1, 1, 60] {
    ///     engine.schedule(Timer::after(Duration::from_secs(seconds), ()))?;
    /// }
    /// let shard = &engine.inspect(100).shards[0];
    /// let by_level: Vec<usize> = shard.levels.iter().map(|level| level.timers.iter().sum()).collect();
    /// assert_eq!(by_level, [0, 2, 1]);
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(engine.inspect(100).shards[0].queued, [2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn inspect(&self, most: usize) -> Inspection {
        self.core.inspect(most)
    }
}
