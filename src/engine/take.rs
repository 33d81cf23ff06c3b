//! Expired timers, which workers take, and firings, which workers return.

use crate::engine::hub::{Bell, Doorbell};
use crate::engine::{Core, Held, ShardCell};
use crate::id::TimerId;
use crate::shard::{Claimed, Outcome, Shard};
use crate::sync::IS_MODEL;
use crate::timeline::{Time, When};
use crate::timer::Refusal;

/// The number of timers that a worker takes in one hold of a shard's lock, at most. A
/// caller that schedules waits no longer for it than for the ticker.
pub(crate) const TAKES_PER_HOLD: usize = if IS_MODEL { 2 } else { 32 };

/// A bell that its worker has answered, and that is rung again if the worker panics:
/// nothing else would ever lead to the shard.
struct Answered<'a> {
    doorbell: &'a Doorbell,
    bell: Option<Bell>,
}

impl Drop for Answered<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(bell) = self.bell.take() {
            self.doorbell.send(bell);
        }
    }
}

impl<T> Core<T> {
    /// Takes from one shard with `take`, which stores what it takes where that is to stay.
    /// Returns whether the shard has more. If so, rings the caller's bell again; otherwise,
    /// drops it.
    #[inline]
    pub(crate) fn take_from(
        &self,
        shard: usize,
        queue: usize,
        bell: Option<Bell>,
        take: impl FnOnce(&mut Shard<T>),
    ) -> bool {
        let cell = &self.shards[shard];
        let mut answered = Answered { doorbell: &self.doorbells[queue], bell };
        // The ticker does not interrupt a visit for a worker: see `expire.rs`.
        let shard = cell.shard.lock_low_priority();
        let mut held = Held { cell, shard };
        take(&mut held.shard);
        let ready = &mut held.shard.ready[queue];
        let more = ready.len() > 0;
        if answered.bell.is_some() && !more {
            ready.rung = false;
        }
        self.release(held);
        if let (Some(bell), true) = (answered.bell.take(), more) {
            self.doorbells[queue].send(bell);
        }
        more
    }

    /// Reads the clock if takes are measured.
    #[inline]
    pub(crate) fn time_of_take(&self) -> Option<Time> {
        self.measures_work.then(|| self.clock.now())
    }

    /// Lets threads go on that may wait for what a worker did when it panicked.
    pub(crate) fn outlive_a_panic(&self) {
        self.count_panic();
        self.waiters.notify();
    }

    /// Takes back a firing that was lent. If the timer has ended, drops the payload
    /// outside the lock.
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

    /// Takes back a firing whose task is consumed, and takes an expired timer of the same
    /// shard in the same hold. The end of the one is the start of the other.
    pub(crate) fn return_and_take(
        &self,
        done: TimerId,
        shard: usize,
        queue: usize,
        give: impl FnOnce(Claimed<T>),
    ) -> bool {
        let (now, mut awaited) = (self.clock.now(), false);
        let more = self.take_from(shard, queue, None, |shard| {
            let given = shard.return_firing(done, None, Outcome::Returned, now);
            awaited = given.awaited;
            shard.claim(queue, self.measures_work.then_some(now), give);
        });
        if awaited {
            self.waiters.notify();
        }
        more
    }

    /// Sets the next firing of a timer from within the current one.
    pub(crate) fn rearm_lent(&self, id: TimerId, number: u64, when: When) -> Result<(), Refusal> {
        let cell = self.cell_of(id).ok_or(Refusal::Gone)?;
        let (due, _) = self.resolve(when).ok_or(Refusal::InstantOnOtherClock)?;
        cell.lock().rearm_lent(id, number, due, || self.tick_now())
    }

    /// Takes back a firing that was lent, and sets the next one. Returns the payload with
    /// the reason if the timer cannot fire again.
    pub(crate) fn rearm_and_return(
        &self,
        id: TimerId,
        number: u64,
        payload: T,
        when: When,
    ) -> Result<(), (Refusal, T)> {
        let Some(cell) = self.cell_of(id) else {
            return Err((Refusal::Gone, payload));
        };
        let Some((next, _)) = self.resolve(when) else {
            return Err((Refusal::InstantOnOtherClock, payload));
        };
        let now = self.clock.now();
        let mut held = self.hold(cell);
        let returned = held.shard.rearm_and_return(id, number, payload, next, now);
        self.release(held);
        returned
    }

    /// Returns how often a timer fires after the firing that a worker has; `None` means
    /// for ever.
    pub(crate) fn remaining(&self, id: TimerId) -> Option<u64> {
        self.cell_of(id)?.lock().remaining(id)
    }

    /// Whether a timer was cancelled or shut down since a worker took this firing.
    pub(crate) fn is_cancelled(&self, id: TimerId, number: u64) -> bool {
        let cell = self.cell_of(id);
        cell.is_some_and(|cell| cell.lock().is_cancelled(id, number))
    }

    /// Returns the number of expired timers of a queue that are waiting to be taken.
    pub(crate) fn ready_len(&self, queue: usize) -> usize {
        let len = |cell: &ShardCell<T>| cell.lock().ready[queue].len();
        self.shards.iter().map(len).sum()
    }
}
