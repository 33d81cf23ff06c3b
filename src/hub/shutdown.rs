//! Shutting down: refusing new timers at once, and then ending every live timer.
//!
//! To end the timers, a walk visits each shard, a bounded number of entries at a time.
//! Between two holds of the lock, other threads find a closed shard: they cannot
//! schedule, but can still cancel, move and take timers that the walk has not reached. A
//! timer keeps its entry, so the walk meets it once, unless it has ended. A closed
//! shard's wheel is no longer advanced, and its lists are no longer walked, because they
//! may contain vacant entries.

use crate::hub::doorbell::Doorbell;
use crate::hub::fairness::Walk;
use crate::hub::{Core, ShardCell};
use crate::observe;
use crate::tick::Tick;
use crate::timer::Closed;
use crate::wheel::Cursor;

impl<T> Core<T> {
    /// Ends every live timer, and then the workers and the ticker or the caller's loop.
    pub(crate) fn shut_down(&self) -> Vec<Closed<T>> {
        let now = self.tick_now();
        let live: Vec<usize> = self.shards.iter().map(|cell| self.close(cell)).collect();
        // Allocated here, because a vector should not grow under a lock.
        let mut closed = Vec::with_capacity(live.iter().sum());
        let mut walk = Walk::begin();
        for (cell, live) in self.shards.iter().zip(live) {
            if live > 0 {
                self.end_all(cell, now, &mut walk, &mut closed);
            }
        }
        self.stop(closed.len());
        self.waiters.notify();
        self.census.notify();
        closed
    }

    /// Returns whether the engine was shut down.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.alarm.is_stopped()
    }

    /// Returns whether the engine was shut down and all its queues are empty.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_shut_down() && (0..self.queues()).all(|queue| self.ready_len(queue) == 0)
    }

    /// Tells the workers and the ticker or the loop to end. (`reports.rs` tells the
    /// readers of reports.) Dropping the last handle shuts the engine down again, but the
    /// stop is sent only once, because the doorbells' channels have room for one. The
    /// bells come first, because a caller's loop that the alarm wakes checks them once.
    /// Workers are woken outside the alarm's lock, because the waker of a task is foreign
    /// code.
    fn stop(&self, closed: usize) {
        let queues = &self.doorbells[..self.queues()];
        let close_queues = || queues.iter().for_each(Doorbell::post_stop);
        if self.alarm.stop(close_queues) {
            queues.iter().for_each(Doorbell::wake_receivers);
            observe::shut_down(self.subject(), closed);
        } else if self.is_driven && closed > 0 {
            // An earlier shutdown woke the loop, before this one ended timers.
            self.alarm.call_again();
        }
    }

    /// Makes a shard refuse new timers. Returns how many live timers it has.
    pub(crate) fn close(&self, cell: &ShardCell<T>) -> usize {
        let mut held = self.hold(cell);
        let live = held.shard.close();
        cell.set_next(Tick::MAX);
        self.release(held);
        live
    }

    /// Ends the live timers of a closed shard.
    fn end_all(
        &self,
        cell: &ShardCell<T>,
        now: Tick,
        walk: &mut Walk,
        closed: &mut Vec<Closed<T>>,
    ) {
        let mut cursor = Cursor::START;
        loop {
            let mut held = self.hold(cell);
            let done = held.shard.close_some(&mut cursor, now, closed);
            self.release(held);
            if done {
                break;
            }
            // Otherwise a waiter would not get the lock: it is still about to sleep
            // whenever the walk releases the lock for a moment.
            cell.step_aside_in(walk);
        }
    }
}
