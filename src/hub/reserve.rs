//! Timers whose payload is made once their id is known.

use crate::hub::running::{self, Running};
use crate::hub::schedule::end_naming;
use crate::hub::{Core, ShardCell};
use crate::id::TimerId;
use crate::shard::Place;
use crate::timeline::When;
use crate::timer::{Refusal, Refused, Timer};

/// A timer that waits for its payload. Dropping it starts the timer or, if the payload
/// was not made because its maker panicked, ends it.
struct Reserved<'a, T> {
    core: &'a Core<T>,
    cell: &'a ShardCell<T>,
    id: TimerId,
    requested: When,
    payload: Option<T>,
    /// A thread must not wait for the payload that it is making.
    _running: Running,
}

impl<T> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        let payload = self.payload.take();
        let (core, due) = (self.core, self.core.resolve_validated(self.requested));
        let now = core.clock.now();
        let mut held = core.hold(self.cell);
        let shard = &mut held.shard;
        let filled = shard.fill(self.id, payload, due.requested, due.deadline, now);
        core.release(held);
        if filled.awaited {
            core.waiters.notify();
        }
        drop(filled.payload);
    }
}

impl<T> Core<T> {
    /// Schedules a timer whose payload `timer.payload` makes from the timer's id. Calls
    /// it outside any lock.
    pub(crate) fn schedule_with<F>(&self, timer: Timer<F>) -> Result<TimerId, Refused<Timer<F>>>
    where
        F: FnOnce(TimerId) -> T,
    {
        let requested = timer.requested;
        let (make, timer) = timer.split();
        let naming = self.begin_naming(&timer);
        let place = naming.as_ref().map(|naming| naming.place);
        let id = match end_naming(naming, self.reserve(timer, place)) {
            Ok(id) => id,
            Err(refused) => return Err(refused.map(|()| make)),
        };
        let mut reserved = Reserved {
            core: self,
            cell: self.cell_of(id).expect("the id is of this engine"),
            id,
            requested,
            payload: None,
            _running: running::enter(id),
        };
        reserved.payload = Some(make(id));
        Ok(id)
    }

    fn reserve(
        &self,
        timer: Timer<()>,
        place: Option<Place>,
    ) -> Result<TimerId, (Refusal, Timer<()>)> {
        let due = match self.validate(&timer) {
            Ok(due) => due,
            Err(reason) => return Err((reason, timer)),
        };
        let mut held = self.hold_own();
        let shard = &mut held.shard;
        shard.reserve(timer, due.requested, due.deadline, place)
    }
}
