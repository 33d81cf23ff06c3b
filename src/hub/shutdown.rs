//! Shutting down: refusing new timers at once, and then ending every live timer.
//!
//! The second part walks through each shard, a bounded number of entries at a time.
//! Between two holds of the lock others find a closed shard: they cannot schedule,
//! but may still cancel, move and take timers that the walk has not reached. A timer
//! keeps its entry, so the walk meets it once, unless it has ended. The wheel of a
//! closed shard does not advance, and nothing walks along its lists, which may
//! contain vacant entries.

use crate::hub::doorbell::Doorbell;
use crate::hub::fairness::Walk;
use crate::hub::{Core, ShardCell};
use crate::observe;
use crate::tick::Tick;
use crate::timer::Closed;
use crate::wheel::Cursor;

impl<T> Core<T> {
    /// Ends every live timer, and then workers, ticker and loop.
    pub(crate) fn shut_down(&self) -> Vec<Closed<T>> {
        let now = self.tick_now();
        let live: Vec<usize> = self.shards.iter().map(|cell| self.close(cell)).collect();
        // Allocated here, because nothing should grow under a lock.
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

    /// Whether the engine was shut down.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.alarm.is_stopped()
    }

    /// Whether an engine that was shut down has nothing more to hand out.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_shut_down() && (0..self.queues()).all(|queue| self.ready_len(queue) == 0)
    }

    /// Lets workers, ticker and loop end; `reports.rs` lets the readers of reports end.
    /// Sends the stop once, although an engine is shut down again when its last handle
    /// is dropped: the channels of the doorbells have room for one. The bells come
    /// first: a caller's loop that the alarm wakes checks them once.
    fn stop(&self, closed: usize) {
        let queues = &self.doorbells[..self.queues()];
        let close_queues = || queues.iter().for_each(Doorbell::stop);
        if self.alarm.stop(close_queues) {
            observe::shut_down(self.first, closed);
        } else if self.is_driven && closed > 0 {
            // The shutdown that woke the loop came before this one ended timers.
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
            // A waiter would not get in by itself: it is about to sleep each time
            // that the walk releases the lock for a moment.
            cell.step_aside_in(walk);
        }
    }
}
