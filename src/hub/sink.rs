//! Taking due timers straight off the wheel, for a thread that consumes them itself.
//!
//! No ready list and no bell is involved. Payloads are handed over after the shard's lock
//! is released, a few at a time, because the consumer runs foreign code. Timers with a
//! record become ready as usual.

use crate::hub::Core;
use crate::hub::expire::{BATCHES_PER_RING, ENTRIES_PER_BATCH, Visit};
use crate::timeline::Time;

impl<T> Core<T> {
    /// Runs one round as [`Core::serve_a_round`] does, and hands the payloads of due
    /// plain timers to `sink`.
    pub(crate) fn take_a_round(
        &self,
        taken: &mut Vec<T>,
        sink: &mut impl FnMut(&Core<T>, T),
    ) -> Time {
        self.serve_a_round_with(|visit| self.visit_and_take(visit, taken, sink))
    }

    /// Does the same within a budget, as [`Core::run_due_within`] does.
    pub(crate) fn take_due_within(
        &self,
        now: Time,
        budget: &mut usize,
        sink: &mut impl FnMut(&Core<T>, T),
    ) -> bool {
        let mut taken = Vec::new();
        self.run_due_with(now, budget, |visit| {
            self.visit_and_take(visit, &mut taken, sink)
        })
    }

    /// Advances a virtual clock, and hands the payloads of the plain timers that
    /// become due to `sink`. A call from within `sink` only moves the clock,
    /// because the outer call goes on. Returns whether the budget was enough.
    pub(crate) fn advance_taking(
        &self,
        time: Time,
        budget: usize,
        sink: &mut impl FnMut(&Core<T>, T),
    ) -> bool {
        self.move_clock(time);
        let Some(_in_loop) = self.enter_loop() else {
            return true;
        };
        let (mut budget, mut served) = (budget, None);
        while served < Some(self.clock.now()) {
            let now = self.clock.now();
            if !self.take_due_within(now, &mut budget, sink) {
                return false;
            }
            served = Some(now);
        }
        true
    }

    /// Takes a bounded number of entries, in several holds of the lock. Returns whether
    /// everything is done that was due when the visit began.
    fn visit_and_take(
        &self,
        visit: &mut Visit<'_, '_, T>,
        taken: &mut Vec<T>,
        sink: &mut impl FnMut(&Core<T>, T),
    ) -> bool {
        for _ in 0..BATCHES_PER_RING {
            // Not under the lock, and not before anything is due.
            taken.reserve(ENTRIES_PER_BATCH);
            let mut held = self.begin(visit);
            let is_last = self.run_batch(&mut held, visit, |shard, now, budget| {
                shard.expire_into(now, budget, taken)
            });
            let done = self.is_settled(&held, visit);
            self.release(held);
            taken.drain(..).for_each(|payload| sink(self, payload));
            if is_last {
                return done;
            }
        }
        false
    }
}
