//! Making due timers ready, for the ticker or for the loop that drives an engine in its
//! place. Each hold of a shard's lock covers a bounded number of entries.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::engine::{Core, Held, ShardCell};
use crate::observe;
use crate::sync::{IS_MODEL, Ordering};
use crate::tick::Tick;
use crate::timeline::Time;

/// The number of entries that the ticker touches between two checks for urgent waiters,
/// for whom it releases the shard. Small, because a caller that is scheduling has to
/// wait until the next check (DESIGN.md, "The ticker rings once per batch"). In a model,
/// each batch is a hold of its own, which lets other threads in.
pub(crate) const ENTRIES_PER_BATCH: usize = if IS_MODEL { 1 } else { 16 };

/// The time for which the ticker keeps a shard that it got back from callers. It waits longer
/// than that to get it back, and beside one that never pauses would hardly do anything else.
const SHORTEST_HOLD: Duration = Duration::from_micros(if IS_MODEL { 0 } else { 1 });

/// The maximum number of batches that the ticker runs before it rings the bells. If it
/// rang after the first expiry, it and the worker would contend for the lock every time.
/// Ringing late halves the processor time of both. In return, the first timer of a burst
/// waits for hundreds of other timers (DESIGN.md, "The ticker rings once per batch").
pub(crate) const BATCHES_PER_RING: usize = if IS_MODEL { 2 } else { 32 };

impl<T> Core<T> {
    /// Serves due timers, sleeps, and repeats, until the engine is shut down.
    pub(crate) fn run_ticker(&self) {
        loop {
            let now = self.tick.tick_at(self.serve_a_round());
            // The timer that the ticker sleeps for is live when the sleep begins.
            if self.next_due() > now {
                self.confirm_next_due();
            }
            if !self.alarm.sleep(now, || self.next_due()) {
                break;
            }
        }
        observe::ticker_ended(self.subject());
    }

    /// Returns the earliest `next` of all shards.
    pub(crate) fn next_due(&self) -> Tick {
        let next = self.shards.iter().map(ShardCell::next).min();
        next.unwrap_or(Tick::MAX)
    }

    /// Returns the earliest `next` after checking it. A shard's `next` may belong to a
    /// timer that was since cancelled or postponed, because these calls do not update it.
    /// Keeps a `next` that is later than what the wheel knows, because a timer's slot need not
    /// be entered before its deadline.
    pub(crate) fn confirm_next_due(&self) -> Tick {
        let confirm = |cell: &ShardCell<T>| {
            let shard = cell.lock();
            cell.set_next(cell.next().max(shard.next_visit()));
            cell.next()
        };
        let first = self.shards.iter().min_by_key(|cell| cell.next());
        let mut earliest = first.map_or(Tick::MAX, confirm);
        // The others once each, and only those that seem to come before what is confirmed.
        for cell in &self.shards {
            if cell.next() < earliest {
                earliest = earliest.min(confirm(cell));
            }
        }
        self.next_due()
    }

    /// Returns the earliest tick after `now` at which a shard has something to do,
    /// without regard to overdue timers.
    pub(crate) fn next_due_after(&self, now: Tick) -> Tick {
        let slot = |cell: &ShardCell<T>| cell.lock().wheel.next_slot();
        let after = |cell: &ShardCell<T>| {
            Some(cell.next()).filter(|&next| next > now).or_else(|| slot(cell))
        };
        // A wheel that lags behind has had no visit: it gets one at the next tick.
        let soonest = Tick(now.0.saturating_add(1));
        let next = self.shards.iter().filter_map(after).min();
        next.map_or(Tick::MAX, |next| next.max(soonest))
    }

    /// Makes the caller's loop run once, for a task that does not come from a wheel.
    pub(crate) fn request_run(&self) {
        let cell = &self.shards[0];
        let mut shard = cell.lock();
        shard.wake_driver = true;
        cell.lower_next(self.tick_now());
    }

    /// Runs one round of the ticker: a bounded visit to each shard that has due timers,
    /// beginning with the one after the shard visited last. Reads the clock once, and
    /// returns the reading. Even a thread that keeps scheduling into the past delays the
    /// other shards by only one visit per round.
    pub(crate) fn serve_a_round(&self) -> Time {
        let now = self.clock.now();
        let tick = self.tick.tick_at(now);
        let mut unlimited = usize::MAX;
        for cell in self.cells_in_turn() {
            if cell.next() <= tick {
                self.visit(&mut Visit { cell, now, tick, since: None }, &mut unlimited);
                cell.step_aside();
            }
        }
        now
    }

    /// Serves the timers that are due now, but touches at most `budget` entries. Returns
    /// whether the budget was enough.
    ///
    /// A sink is foreign code and may call this. Such a call does nothing, because the
    /// outer one goes on, even if a virtual clock was moved in between.
    #[inline]
    pub(crate) fn run_due(&self, budget: &mut usize) -> bool {
        if self.sink.is_none() {
            return self.run_due_within(self.clock.now(), budget);
        }
        let Some(_in_loop) = self.enter_loop() else {
            return true;
        };
        let mut now = self.clock.now();
        loop {
            if !self.run_due_within(now, budget) {
                return false;
            }
            let begun = std::mem::replace(&mut now, self.clock.now());
            if !self.clock.is_virtual() || begun == now {
                return true;
            }
        }
    }

    /// Serves due timers after the engine's virtual clock was moved.
    #[inline]
    pub(crate) fn run_due_at_moved_clock(&self, budget: &mut usize) -> bool {
        #[cfg(any(loom, shuttle))]
        self.alarm.time_passed();
        self.run_due(budget)
    }

    /// Serves the timers that are due by `now` at the time of the call.
    ///
    /// If other threads schedule into the past meanwhile, this call serves the timers
    /// that come in time, and the next call serves the rest. If the budget runs out, the
    /// next call begins after the shard at which this call ended.
    #[inline]
    fn run_due_within(&self, now: Time, budget: &mut usize) -> bool {
        let tick = self.tick.tick_at(now);
        for cell in self.cells_in_turn() {
            // Until all timers that were due at the first visit are ready.
            let mut visit = Visit { cell, now, tick, since: None };
            while cell.next() <= tick {
                if *budget == 0 {
                    return false;
                }
                let done = self.visit(&mut visit, budget);
                cell.step_aside();
                if done {
                    break;
                }
            }
        }
        true
    }

    /// Iterates over all shards, beginning after the last one visited.
    fn cells_in_turn(&self) -> impl Iterator<Item = &ShardCell<T>> {
        let first = self.visited.load(Ordering::Relaxed).wrapping_add(1);
        let mask = self.shards.len() - 1;
        (0..self.shards.len()).map(move |n| &self.shards[first.wrapping_add(n) & mask])
    }

    /// Makes due timers ready and rings for them, in one hold of the lock, or in several
    /// if there are urgent waiters. Takes plain timers straight off the wheel, for the sink
    /// if there is one: no ready list and no bell is involved. The lock is then released after
    /// each batch, because a sink is foreign code.
    ///
    /// Returns whether everything is done that was due when the visit began.
    fn visit(&self, visit: &mut Visit<'_, T>, budget: &mut usize) -> bool {
        let (cell, room) = (visit.cell, if self.sink.is_some() { ENTRIES_PER_BATCH } else { 0 });
        let mut taken = Vec::with_capacity(room);
        self.visited.store(cell.index, Ordering::Relaxed);
        let mut held = self.hold(cell);
        let since = *visit.since.get_or_insert_with(|| held.shard.wheel.passes());
        let mut back_since: Option<Instant> = None;
        for _ in 0..BATCHES_PER_RING {
            if self.run_batch(&mut held, visit, budget, &mut taken) {
                break;
            }
            let is_worth_it = || back_since.is_none_or(|it| it.elapsed() >= SHORTEST_HOLD);
            if self.sink.is_some() || cell.shard.has_urgent_waiters() && is_worth_it() {
                // A thread that takes the lock in between must not find the bells: it
                // might be preempted before it rings them.
                let signals = held.shard.has_signals().then(|| held.shard.take_signals());
                drop(held);
                taken.drain(..).for_each(|payload| self.consume(payload));
                cell.step_aside();
                held = self.hold(cell);
                held.shard.put_back(signals);
                // A sink ends each hold anyway.
                back_since = self.sink.is_none().then(Instant::now);
            }
        }
        let done = held.shard.wheel.has_passed(visit.tick, since);
        self.release(held);
        taken.drain(..).for_each(|payload| self.consume(payload));
        done
    }

    /// Runs one batch. Returns whether it was the last batch for now.
    fn run_batch(
        &self,
        held: &mut Held<'_, T>,
        visit: &Visit<'_, T>,
        budget: &mut usize,
        taken: &mut Vec<T>,
    ) -> bool {
        let most = ENTRIES_PER_BATCH.min(*budget);
        let mut left = most;
        let next = match self.sink {
            None => held.shard.expire(visit.now, &mut left),
            Some(_) => held.shard.expire_into(visit.now, &mut left, taken),
        };
        *budget -= most - left;
        held.shard.wake_driver = false;
        held.cell.set_next(next);
        *budget == 0 || next > visit.tick
    }

    /// Hands a payload to the sink, and counts a panic in there. No lock is held.
    pub(crate) fn consume(&self, payload: T) {
        let Some(sink) = self.sink else { return };
        if let Err(thrown) = catch_unwind(AssertUnwindSafe(|| sink(payload))) {
            self.count_panic();
            observe::dispose(thrown, |thrown| observe::waker_panicked(self.subject(), thrown));
        }
    }
}

/// A visit to a shard that has due timers. It may take several calls.
struct Visit<'a, T> {
    cell: &'a ShardCell<T>,
    now: Time,
    /// The tick of `now`.
    tick: Tick,
    /// The state of the shard when the visit began.
    since: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WheelNumber;
    use crate::rounding::TickLength;
    use crate::shard::credit::Pool;
    use crate::shard::{Due, Outcome, Shard};
    use crate::timer::Timer;
    use crate::wheel::Geometry;

    const MS: Duration = Duration::from_millis(1);

    fn shard() -> Shard<u32> {
        let number = WheelNumber::reserve(1);
        let tick = TickLength::new(MS).unwrap();
        let credit = Pool::share(None, 1)();
        let geometry = Geometry::new(64).unwrap();
        Shard::new(number, Tick(0), geometry, 1, credit, tick)
    }

    fn expire(shard: &mut Shard<u32>, now: Time) {
        let mut unlimited = usize::MAX;
        shard.expire(now, &mut unlimited);
    }

    #[test]
    fn a_reading_older_than_a_submitters_sets_no_clock_back() {
        let mut shard = shard();
        shard.wheel.idle_to(Tick(10));
        expire(&mut shard, Time::from_millis(5));
        assert_eq!(shard.wheel.now(), Tick(10));
    }

    #[test]
    fn a_firing_that_comes_back_with_an_old_reading_is_ready_if_its_wheel_has_been_there() {
        let mut shard = shard();
        let beat = Timer::every(3 * MS, 1);
        let due = Due { requested: Time::from_millis(3), deadline: Tick(3) };
        let id = shard.schedule_recorded(beat, due, None).ok().unwrap();
        expire(&mut shard, due.requested);
        let mut claimed = None;
        shard.claim(0, None, |it| claimed = Some(it));
        assert!(claimed.is_some());
        // The clock was read at 5, but another thread then expired timers up to 10.
        expire(&mut shard, Time::from_millis(10));
        let read = Time::from_millis(5);
        shard.return_firing(id, Some(1), Outcome::Returned, read);
        assert_eq!(shard.ready[0].len(), 1, "due at 6");
    }
}
