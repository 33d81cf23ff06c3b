//! Firings that workers have: their return, re-arming them, and whether they were cancelled.

use crate::engine::Core;
use crate::id::TimerId;
use crate::shard::{Claimed, Outcome};
use crate::timeline::When;
use crate::timer::Refusal;

impl<T> Core<T> {
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
}
