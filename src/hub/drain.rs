//! Draining: firing the timers that are due soon, before an engine is shut down.
//!
//! Each shard counts the timers that it still has to fire, because a waiter reads the
//! count often while other threads cancel and move timers. A drain walks through each
//! shard once, a bounded number of entries at a time. Behind the walk, a timer that
//! ends or moves updates the count, and when the last counted timer leaves, the shard
//! raises a signal. The walk ends, because no timer is accepted meanwhile.

use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::hub::fairness::Walk;
use crate::hub::{Core, ShardCell};
use crate::shard::DrainKey;
use crate::timeline::Time;

/// The maximum time by which a drain, including its shutdown, can exceed its limit.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// The part of the grace that the shutdown needs for each live timer.
const SHUTDOWN_PER_TIMER_NANOS: u64 = 100;

impl<T> Core<T> {
    /// Refuses new timers, and blocks until the one-shots that are due within `limit`
    /// have been taken. Gives up when the rest of the grace is needed for the shutdown.
    /// Returns whether all of these one-shots have been taken.
    pub(crate) fn drain(&self, limit: Duration) -> bool {
        let until = self.clock.now() + limit;
        // A drain does not wait for timers that are never due.
        let last = self.tick.tick_after(until);
        let last = last.min(self.tick.tick_at(Time::MAX));
        let begin = |cell: &ShardCell<T>| cell.lock().begin_drain(last);
        let drains: Vec<DrainKey> = self.shards.iter().map(begin).collect();
        if let Clock::Virtual(_) = self.clock {
            // Other engines on this clock are served when it moves next.
            self.clock.set(until.max(self.tick.start_of(last)));
            self.run_due_at_moved_clock(&mut { usize::MAX });
        }
        let begun = Instant::now();
        let patience = self.patience(limit);
        let left = || patience.saturating_sub(begun.elapsed());
        if !self.count_awaited(&drains, left) {
            return false;
        }
        let drained = || self.is_drained(&drains);
        self.waiters.wait_until(drained, || Some(left()))
    }

    /// Returns the maximum wait of a drain that begins now.
    pub(crate) fn patience(&self, limit: Duration) -> Duration {
        let grace = grace(self.ledger().live);
        match self.clock {
            Clock::System(_) => grace.saturating_add(limit),
            // The drain has advanced the clock by the limit.
            Clock::Virtual(_) => grace,
        }
    }

    /// Counts the timers that each shard has to fire. Returns `false` if the time
    /// runs out before all are counted.
    fn count_awaited(&self, drains: &[DrainKey], left: impl Fn() -> Duration) -> bool {
        let mut walk = Walk::begin();
        for (cell, &drain) in self.shards.iter().zip(drains) {
            while !cell.lock().count_some(drain) {
                if left().is_zero() {
                    return false;
                }
                cell.step_aside_in(&mut walk);
            }
        }
        true
    }

    fn is_drained(&self, drains: &[DrainKey]) -> bool {
        let mut shards = self.shards.iter().zip(drains);
        shards.all(|(cell, &drain)| cell.lock().is_drained(drain))
    }
}

/// Returns how long a drain may wait beyond its limit if it then has to shut down
/// `live` timers.
pub(crate) fn grace(live: u64) -> Duration {
    let shutdown = live.saturating_mul(SHUTDOWN_PER_TIMER_NANOS);
    GRACE.saturating_sub(Duration::from_nanos(shutdown))
}
