//! Making what is due ready: the ticker's part, and that of whoever drives an
//! engine in its place. The lock of a shard is held for a bounded number of
//! entries at a time.

use crate::engine::core::{Core, Held, Slot};
use crate::sync::{IS_MODEL, thread};
use crate::tick::Tick;
use crate::time::Time;

/// How many entries the ticker touches before it looks whether somebody waits
/// for the shard, and lets go of it if so. Small, because a thread that schedules
/// meanwhile waits that long: with 32 the slowest of a thousand schedules took
/// 14 µs, with 128 it took 59. In a model each one is a hold of its own, so that
/// others get in between.
const NODES_PER_LOOK: usize = if IS_MODEL { 1 } else { 32 };

/// The ticker rings once in so many looks, or when it is done with the shard. A
/// worker who is called to the first of many timers, or who comes back for the
/// next, would take turns at the lock with the ticker, and each burns time while
/// the other works: so workers wait until then, and the ticker keeps the lock
/// unless somebody else wants it (measured, 100,000 timers on one tick: 164 to 216
/// ns a timer became 90 to 108, ticker and worker together).
const LOOKS_PER_RING: usize = if IS_MODEL { 2 } else { 16 };

/// How often the ticker steps aside for threads that wait for one lock.
const YIELDS_PER_HOLD: usize = 8;

impl<T> Core<T> {
    /// The earliest tick at which a shard wants to be looked at.
    pub(crate) fn next_due(&self) -> Tick {
        let next = self.shards.iter().map(Slot::next).min();
        next.unwrap_or(Tick::MAX)
    }

    /// Has a shard looked at soon, for the sake of something that is due in none.
    pub(crate) fn ask_for_a_look(&self) {
        let slot = &self.shards[0];
        let _shard = slot.lock();
        slot.lower_next(Tick(0));
    }

    /// Makes everything ready that is due by `now`.
    pub(crate) fn run_due(&self, now: Time) {
        let mut unlimited = usize::MAX;
        self.run_due_within(now, &mut unlimited);
    }

    /// As [`Core::run_due`], touching at most `budget` entries. Returns whether
    /// that was enough.
    pub(crate) fn run_due_within(&self, now: Time, budget: &mut usize) -> bool {
        let tick = self.tick.tick_at(now);
        for slot in &self.shards {
            while slot.next() <= tick {
                if *budget == 0 {
                    return false;
                }
                self.visit(slot, now, budget);
                self.step_aside(slot);
            }
        }
        true
    }

    /// Moves a virtual clock, and what comes due by that into its queues.
    pub(crate) fn advance_to(&self, time: Time) {
        self.clock.set(time);
        self.alarm.clock_moved();
        self.run_due(self.clock.now());
    }

    /// Makes a bounded number of entries ready, and rings for them: in one hold of
    /// the lock, or in several, if somebody in a hurry waits.
    fn visit(&self, slot: &Slot<T>, now: Time, budget: &mut usize) {
        let mut held = self.hold(slot);
        for _ in 0..LOOKS_PER_RING {
            if self.visit_some(&mut held, now, budget) {
                break;
            }
            if slot.has_urgent_waiters() {
                drop(held);
                self.step_aside(slot);
                held = self.hold(slot);
            }
        }
        self.release(held);
    }

    /// A few entries. Returns whether those were the last for now.
    fn visit_some(&self, held: &mut Held<'_, T>, now: Time, budget: &mut usize) -> bool {
        let nodes = NODES_PER_LOOK.min(*budget);
        let mut left = nodes;
        let next = held.shard.expire(now, &mut left);
        *budget -= nodes - left;
        held.shard.take_filed();
        held.slot.set_next(next);
        *budget == 0 || next > self.tick.tick_at(now)
    }

    pub(super) fn step_aside(&self, slot: &Slot<T>) {
        if !slot.has_waiters() {
            return;
        }
        slot.invite();
        let mut yields = 0;
        while slot.has_waiters() && yields < YIELDS_PER_HOLD {
            thread::yield_now();
            yields += 1;
        }
    }
}
