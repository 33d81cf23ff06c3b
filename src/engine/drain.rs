//! Draining: firing what is due soon before an engine is shut down.
//!
//! What a shard still has to fire is a number, because whoever waits for it asks
//! often, and because others cancel and move timers meanwhile. When a drain
//! begins, it walks through each shard once, a bounded number of cells at a
//! time. Cells that the walk has passed are counted: whatever a timer in there
//! does to leave or to join those that are waited for changes the count, and
//! the shard says when the last one leaves. Nothing new is accepted, so the walk
//! comes to its end.

use std::time::{Duration, Instant};

use crate::engine::aside::Walk;
use crate::engine::core::{Core, Slot};
use crate::engine::extra::State;
use crate::engine::shard::{CELLS_PER_HOLD, CELLS_PER_TIMER, Phase, Shard};
use crate::tick::Tick;
use crate::ticker::Clock;
use crate::time::Time;
use crate::wheel::{At, Cursor};

/// How much longer than its limit a drain takes at most, its shutdown included.
const GRACE: Duration = Duration::from_secs(1);

/// What the shutdown needs of that for each live timer.
const SHUTDOWN_PER_TIMER_NANOS: u64 = 100;

/// What one drain waits for in one shard.
#[derive(Clone, Copy)]
pub(super) struct Awaited {
    /// One-shots that are due by this tick.
    last: Tick,
    /// So many of them in the cells that were counted.
    left: usize,
    /// Up to here.
    counted: Cursor,
}

impl Awaited {
    fn is_counted(&self) -> bool {
        self.counted == Cursor::END
    }

    fn is_nothing_left(&self) -> bool {
        self.is_counted() && self.left == 0
    }
}

/// Which of a shard's drains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DrainKey(usize);

impl<T> Core<T> {
    /// Refuses new timers, and waits until the one-shots that are due by `limit`
    /// from now have been taken. Gives up when only as much of the grace is left
    /// as the shutdown needs. Returns whether they have.
    pub(crate) fn drain(&self, limit: Duration) -> bool {
        let until = self.clock.now() + limit;
        // What is due never is not waited for.
        let last = self.tick.tick_after(until);
        let last = last.min(self.tick.tick_at(Time::MAX));
        let begin = |slot: &Slot<T>| slot.lock().begin_drain(last);
        let drains: Vec<DrainKey> = self.shards.iter().map(begin).collect();
        if let Clock::Virtual(_) = self.clock {
            self.advance_to(until.max(self.tick.start_of(last)));
        }
        let begun = Instant::now();
        let patience = self.patience(limit);
        let left = || patience.saturating_sub(begun.elapsed());
        if !self.count_awaited(&drains, left) {
            return false;
        }
        let drained = || self.is_drained(&drains);
        self.idle.wait_until(drained, || Some(left()))
    }

    /// For how long a drain that begins now may wait.
    fn patience(&self, limit: Duration) -> Duration {
        let grace = grace(self.ledger().live);
        match self.clock {
            Clock::System(_) => grace.saturating_add(limit),
            // It has been moved by the limit.
            Clock::Virtual(_) => grace,
        }
    }

    /// Counts what each shard has to fire, unless time is up before.
    fn count_awaited(&self, drains: &[DrainKey], left: impl Fn() -> Duration) -> bool {
        let mut walk = Walk::begin();
        for (slot, &drain) in self.shards.iter().zip(drains) {
            while !slot.lock().count_some(drain) {
                if left().is_zero() {
                    return false;
                }
                slot.step_aside_in(&mut walk);
            }
        }
        true
    }

    fn is_drained(&self, drains: &[DrainKey]) -> bool {
        let mut shards = self.shards.iter().zip(drains);
        shards.all(|(slot, &drain)| slot.lock().is_drained(drain))
    }
}

/// How long a drain may wait beyond its limit, if it then has to shut down so
/// many timers.
fn grace(live: u64) -> Duration {
    let shutdown = live.saturating_mul(SHUTDOWN_PER_TIMER_NANOS);
    GRACE.saturating_sub(Duration::from_nanos(shutdown))
}

impl<T> Shard<T> {
    /// Refuses new timers. The drain waits for one-shots that are due by `last`.
    fn begin_drain(&mut self, last: Tick) -> DrainKey {
        if self.phase == Phase::Open {
            self.phase = Phase::Draining;
        }
        self.drains.push(Awaited {
            last,
            left: 0,
            counted: Cursor::START,
        });
        DrainKey(self.drains.len() - 1)
    }

    /// Goes on with counting, for a bounded number of cells. Returns whether that
    /// is done, or vain because the shard was closed.
    fn count_some(&mut self, drain: DrainKey) -> bool {
        if !self.is_draining() {
            return true;
        }
        let mut awaited = self.drains[drain.0];
        let mut budget = CELLS_PER_HOLD;
        while let Some(at) = self.wheel.next_entry(&mut awaited.counted, &mut budget) {
            budget = budget.saturating_sub(CELLS_PER_TIMER);
            awaited.left += usize::from(self.is_awaited(at, awaited.last));
        }
        if self.wheel.is_at_end(awaited.counted) {
            // List heads may still come behind it, and no timers.
            awaited.counted = Cursor::END;
        }
        self.drains[drain.0] = awaited;
        awaited.is_counted()
    }

    /// Whether nothing is left that a drain waits for.
    fn is_drained(&self, drain: DrainKey) -> bool {
        !self.is_draining() || self.drains[drain.0].is_nothing_left()
    }

    #[inline]
    pub(super) fn is_draining(&self) -> bool {
        self.phase == Phase::Draining
    }

    /// Notes that a timer is about to end, to be taken, or to be moved.
    #[inline]
    pub(super) fn count_out(&mut self, at: At) {
        if self.is_draining() {
            self.count_out_of_drains(at);
        }
    }

    #[cold]
    fn count_out_of_drains(&mut self, at: At) {
        for drain in 0..self.drains.len() {
            let mut awaited = self.drains[drain];
            if awaited.counted.is_past(at) && self.is_awaited(at, awaited.last) {
                awaited.left -= 1;
                self.drains[drain] = awaited;
                let drained = awaited.is_nothing_left();
                self.signals.drained |= drained;
                self.signalled |= drained;
            }
        }
    }

    /// Notes that a timer has been moved.
    #[inline]
    pub(super) fn count_in(&mut self, at: At) {
        if self.is_draining() {
            self.count_into_drains(at);
        }
    }

    #[cold]
    fn count_into_drains(&mut self, at: At) {
        for drain in 0..self.drains.len() {
            let awaited = self.drains[drain];
            let joins = awaited.counted.is_past(at) && self.is_awaited(at, awaited.last);
            self.drains[drain].left += usize::from(joins);
        }
    }

    /// Whether a drain that waits for what is due by `last` waits for this timer.
    fn is_awaited(&self, at: At, last: Tick) -> bool {
        let waits = self.extra_of(at).is_none_or(|key| {
            let extra = &self.extras[key];
            !extra.is_repeating() && extra.state == State::Waiting
        });
        waits && self.wheel.deadline_of(at) <= last
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::engine::{Engine, Timer};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_drain_waits_for_its_limit_and_its_grace() {
        let engine = Engine::<()>::builder().start().unwrap();
        assert_eq!(engine.core.patience(3 * SECOND), 4 * SECOND);
        assert_eq!(engine.core.patience(SECOND / 4), SECOND + SECOND / 4);
        assert_eq!(engine.core.patience(Duration::MAX), Duration::MAX);
        let (engine, _clock) = Engine::<()>::builder().start_virtual().unwrap();
        assert_eq!(engine.core.patience(3 * SECOND), SECOND);
    }

    #[test]
    fn the_grace_has_room_for_the_shutdown() {
        assert_eq!(grace(0), GRACE);
        assert_eq!(grace(1_000_000), GRACE - Duration::from_millis(100));
        assert_eq!(grace(u64::MAX), Duration::ZERO);
        let (engine, _clock) = Engine::builder().start_virtual().unwrap();
        for n in 0..1_000 {
            engine.schedule(Timer::after(SECOND, n)).unwrap();
        }
        assert_eq!(engine.core.patience(SECOND), grace(1_000));
    }

    #[test]
    fn a_level_that_comes_later_changes_nothing() {
        let builder = Engine::builder().shards(1);
        let (engine, _clock) = builder.start_virtual().unwrap();
        let [due, far] = [1, 1_000_000_000].map(|ms| {
            let timer = Timer::after(Duration::from_millis(ms), ());
            engine.schedule(timer).unwrap()
        });
        let slot = &engine.core.shards[0];
        let drain = slot.lock().begin_drain(engine.tick().after(50));
        assert!(slot.lock().count_some(drain));
        // To a level between those that there are.
        engine.reschedule(far, 5 * SECOND).unwrap();
        assert!(!slot.lock().is_drained(drain));
        assert!(engine.cancel(due).is_cancelled());
        assert!(slot.lock().is_drained(drain));
    }

    /// Counts in holds, with changes in between, and compares with what there is.
    #[test]
    fn the_count_follows_whatever_comes_and_goes() {
        const TIMERS: usize = 4 * CELLS_PER_HOLD / CELLS_PER_TIMER;
        let builder = Engine::builder().shards(1);
        let (engine, clock) = builder.start_virtual().unwrap();
        let due = |n: usize| Duration::from_millis(1 + 100 * (n as u64 % 2));
        let ids: Vec<_> = (0..TIMERS)
            .map(|n| engine.schedule(Timer::after(due(n), n)).unwrap())
            .collect();
        let last = engine.tick().after(50);
        let slot = &engine.core.shards[0];
        let drains = [last, last.after(100)].map(|last| slot.lock().begin_drain(last));
        let counted = |drain: usize| {
            let shard = slot.lock();
            let Awaited { last, counted, .. } = shard.drains[drain];
            let here = ids.iter().filter_map(|&id| shard.wheel.find(id));
            let waits = |at: &At| counted.is_past(*at) && shard.is_awaited(*at, last);
            assert_eq!(shard.drains[drain].left, here.filter(waits).count());
        };
        let mut changes = 0;
        while !drains.iter().all(|&drain| slot.lock().count_some(drain)) {
            changes += 1;
            for (n, &id) in ids.iter().enumerate().skip(changes).step_by(7) {
                match (n + changes) % 4 {
                    0 => drop(engine.cancel(id)),
                    1 => drop(engine.cancel_many(&[id])),
                    2 => drop(engine.reschedule(id, due(n + 1))),
                    _ => drop(engine.reschedule(id, due(n))),
                }
            }
            clock.advance(Duration::from_millis(1));
            engine.queue(0).try_iter().take(50).for_each(drop);
            (0..2).for_each(counted);
        }
        assert!(changes > 2, "in one hold");
        clock.advance(SECOND);
        engine.queue(0).try_iter().for_each(drop);
        (0..2).for_each(counted);
        assert!(drains.iter().all(|&drain| slot.lock().is_drained(drain)));
    }
}
