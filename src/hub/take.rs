//! Expired timers: taken by workers, and returned by those that had a firing.

use crate::hub::doorbell::Bell;
use crate::hub::{Core, Held, ShardCell};
use crate::id::TimerId;
use crate::shard::{Outcome, Shard};

impl<T> Core<T> {
    /// Takes an expired timer, or a report, of one shard with `take`. Returns
    /// also whether there are more. Then the bell that led the caller there is
    /// rung again, and else used up.
    #[inline]
    pub(crate) fn take_from<C>(
        &self,
        shard: usize,
        queue: usize,
        bell: Option<Bell>,
        take: impl FnOnce(&mut Shard<T>) -> Option<C>,
    ) -> (Option<C>, bool) {
        let cell = &self.shards[shard];
        let shard = cell.lock_low_priority();
        let mut held = Held { cell, shard };
        let taken = take(&mut held.shard);
        let ready = &mut held.shard.ready[queue];
        let more = ready.len() > 0;
        if bell.is_some() && !more {
            ready.rung = false;
        }
        self.release(held);
        if let (Some(bell), true) = (bell, more) {
            self.doorbells[queue].ring_again(bell);
        }
        (taken, more)
    }

    /// Takes back a firing that was lent. If the timer has ended, drops the
    /// payload here, outside the lock.
    pub(crate) fn return_firing(&self, id: TimerId, payload: Option<T>, outcome: Outcome) {
        let Some(cell) = self.cell_of(id) else { return };
        let now = self.clock.now();
        let mut held = self.hold(cell);
        let given = held.shard.return_firing(id, payload, outcome, now);
        self.release(held);
        if given.awaited {
            self.waiters.notify();
        }
        drop(given.payload);
    }

    /// Blocks until no worker has a firing of the timer.
    pub(crate) fn wait_for_return(&self, id: TimerId) {
        let Some(cell) = self.cell_of(id) else { return };
        let returned = || !cell.lock().await_return(id);
        self.waiters.wait_until(returned, || None);
    }

    /// How many expired timers of a queue wait to be taken.
    pub(crate) fn ready_len(&self, queue: usize) -> usize {
        let len = |cell: &ShardCell<T>| cell.lock().ready[queue].len();
        self.shards.iter().map(len).sum()
    }

    /// Blocks until every queue that has workers is empty, and all of them wait.
    pub(crate) fn wait_until_idle(&self) {
        let reports = self.queues();
        self.census
            .wait_until_idle(|queue| queue == reports || self.ready_len(queue) == 0);
    }
}
