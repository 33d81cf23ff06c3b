//! Pausing and resuming timers.

use std::time::Duration;

use crate::hub::Core;
use crate::id::TimerId;
use crate::timer::Refusal;

impl<T> Core<T> {
    pub(crate) fn pause(&self, id: TimerId) -> Result<(), Refusal> {
        let cell = self.cell_of(id).ok_or(Refusal::Gone)?;
        let now = self.clock.now();
        let mut held = self.hold(cell);
        let paused = held.shard.pause(id, now);
        self.release(held);
        paused
    }

    pub(crate) fn resume(&self, id: TimerId) -> Result<(), Refusal> {
        let cell = self.cell_of(id).ok_or(Refusal::Gone)?;
        let now = self.clock.now();
        let mut held = self.hold(cell);
        let resumed = held.shard.resume(id, now);
        self.release(held);
        resumed
    }

    /// Returns what is left of the delay of a paused timer.
    pub(crate) fn paused(&self, id: TimerId) -> Option<Duration> {
        self.cell_of(id)?.lock().paused(id)
    }
}
