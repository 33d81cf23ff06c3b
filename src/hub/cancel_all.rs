//! Cancelling everything, in bounded holds of one shard's lock after the other.

use crate::hub::fairness::Walk;
use crate::hub::{Core, ShardCell};
use crate::id::TimerId;
use crate::shard::{CANCELS_PER_HOLD, CancelWalk};
use crate::timer::Cancel;

impl<T> Core<T> {
    /// Cancels the timers of all shards. Skips timers that are created meanwhile.
    pub(crate) fn cancel_all(&self) -> Vec<(TimerId, Cancel<T>)> {
        let mut answers = Vec::new();
        let mut pace = Walk::begin();
        for (cell, mut walk) in self.shards.iter().zip(self.begin_cancel_all()) {
            while !self.cancel_some(cell, &mut walk, &mut answers) {
                cell.step_aside_in(&mut pace);
            }
        }
        answers
    }

    /// Begins a walk through each shard. All of them begin before the first timer is
    /// cancelled, so a timer that replaces a cancelled one lives on in any shard.
    pub(crate) fn begin_cancel_all(&self) -> Vec<CancelWalk> {
        let begin = |cell: &ShardCell<T>| cell.lock().begin_cancel_all();
        self.shards.iter().map(begin).collect()
    }

    /// Cancels as many timers as one hold of the shard's lock allows. Returns whether the
    /// shard's walk is complete.
    pub(crate) fn cancel_some(
        &self,
        cell: &ShardCell<T>,
        walk: &mut CancelWalk,
        answers: &mut Vec<(TimerId, Cancel<T>)>,
    ) -> bool {
        // Reserved before the lock is taken, because growing may copy all payloads.
        answers.reserve(CANCELS_PER_HOLD);
        let now = self.tick_now();
        let mut held = self.hold(cell);
        let done = held.shard.cancel_some(walk, now, answers);
        self.release(held);
        done
    }
}
