//! Shutting down: refusing first, which is done at once, and then ending every
//! live timer.
//!
//! The second part is a walk through each shard, a bounded number of cells at a
//! time. Between two holds of the lock others find a closed shard: they
//! schedule nothing any more, but may still cancel, move and take what the walk
//! has not reached. A timer keeps its cell, so whatever they do the walk meets
//! it once, or it has ended. A closed shard's wheel is not advanced any more, nor
//! are its lists walked along: they may have entries in them that are vacant.

use crate::engine::aside::Walk;
use crate::engine::closed::{CloseReason, Closed};
use crate::engine::core::{Core, Slot};
use crate::engine::extra::State;
use crate::engine::shard::{CELLS_PER_HOLD, CELLS_PER_TIMER, Phase, Shard};
use crate::id::TimerId;
use crate::observe;
use crate::queue::Doorbell;
use crate::tick::Tick;
use crate::wheel::{At, Cursor};

impl<T> Core<T> {
    /// Ends every live timer, and then everybody who works for this engine.
    pub(crate) fn shut_down(&self) -> Vec<Closed<T>> {
        let now = self.tick_now();
        let live: Vec<usize> = self.shards.iter().map(|slot| self.close(slot)).collect();
        // Here, because under a lock nothing should have to grow.
        let mut closed = Vec::with_capacity(live.iter().sum());
        let mut walk = Walk::begin();
        for (slot, live) in self.shards.iter().zip(live) {
            if live > 0 {
                self.end_all(slot, now, &mut walk, &mut closed);
            }
        }
        self.stop(closed.len());
        self.idle.notify();
        closed
    }

    /// Lets workers, ticker and loop end; for readers of reports see `reports.rs`.
    /// The doorbells' channels have room for one stop, and an engine is shut down
    /// again when its last handle is dropped. The bells come first: a caller's
    /// loop that the alarm calls looks for them once.
    fn stop(&self, closed: usize) {
        let queues = &self.doorbells[..self.queues()];
        let close_queues = || queues.iter().for_each(Doorbell::stop);
        if self.alarm.stop(close_queues) {
            observe::shut_down(self.first, closed);
        } else if self.is_driven && closed > 0 {
            // Another shutdown has called the loop, and this one had not ended.
            self.alarm.call_again();
        }
    }

    /// Has a shard refuse everything. Returns how many live timers it has.
    fn close(&self, slot: &Slot<T>) -> usize {
        let mut held = self.hold(slot);
        let live = held.shard.close();
        slot.set_next(Tick::MAX);
        self.release(held);
        live
    }

    /// Ends the live timers of a closed shard.
    fn end_all(&self, slot: &Slot<T>, now: Tick, walk: &mut Walk, closed: &mut Vec<Closed<T>>) {
        let mut cursor = Cursor::START;
        loop {
            let mut held = self.hold(slot);
            let done = held.shard.close_some(&mut cursor, now, closed);
            self.release(held);
            if done {
                break;
            }
            // Who waits would not get in by itself: it is about to sleep each time
            // that the walk lets go for a moment.
            slot.step_aside_in(walk);
        }
    }
}

impl<T> Shard<T> {
    /// Refuses everything from now on. Returns how many live timers there are.
    fn close(&mut self) -> usize {
        self.close_for_good();
        self.drains.clear();
        self.live()
    }

    /// Goes on with the walk that ends every live timer of a closed shard, for a
    /// bounded number of cells. Returns whether that was all.
    ///
    /// A timer that will not fire again in any case, whose last firing runs or
    /// that was cancelled while one does, is left to end by itself.
    fn close_some(&mut self, cursor: &mut Cursor, now: Tick, closed: &mut Vec<Closed<T>>) -> bool {
        debug_assert!(self.phase == Phase::Closed);
        let mut budget = CELLS_PER_HOLD;
        while let Some(at) = self.wheel.next_entry(cursor, &mut budget) {
            budget = budget.saturating_sub(CELLS_PER_TIMER);
            closed.extend(self.close_one(at, now));
        }
        self.live() == 0 || self.wheel.is_at_end(*cursor)
    }

    fn close_one(&mut self, at: At, now: Tick) -> Option<Closed<T>> {
        let id = self.wheel.id(at);
        if let Some(key) = self.extra_of(at) {
            return self.close_extra(at, id, key, now);
        }
        Some(Closed {
            id,
            queue: self.tag(at).queue(),
            tick: now,
            firings: 0,
            reason: CloseReason::ShutDown,
            payload: Some(self.close_plain(at)),
        })
    }

    /// One that waits for its deadline is not unlinked: its neighbours would be
    /// cache misses, and no wheel of a closed shard is advanced.
    fn close_plain(&mut self, at: At) -> T {
        let reason = CloseReason::ShutDown;
        if self.tag(at).is_ready() {
            self.unlink(at);
            return self.end_plain(at, reason);
        }
        self.ledger.ended(reason);
        self.credit.put();
        // SAFETY: the tag says that the body is a payload.
        unsafe { self.wheel.take_for_good(at).into_payload() }
    }

    fn close_extra(&mut self, at: At, id: TimerId, key: usize, now: Tick) -> Option<Closed<T>> {
        let reason = CloseReason::ShutDown;
        let extra = &mut self.extras[key];
        let is_last = extra.is_last();
        let mut closed = Closed {
            id,
            queue: extra.queue,
            tick: now,
            firings: extra.firings,
            reason,
            payload: None,
        };
        match &mut extra.state {
            State::Waiting => {
                closed.payload = extra.payload.take_if(|_| !extra.notified);
                self.unlink(at);
                self.end_extra(at, reason, now);
            }
            State::Lent { ending: Some(_) } => return None,
            // Its task is told when the firing is done.
            State::Lent { ending } if !is_last && extra.notified => {
                *ending = Some((reason, now));
                self.unname(key);
            }
            State::Lent { .. } if !is_last => {
                self.enter(key, State::Abandoned { tick: now });
                self.unname(key);
                self.ledger.ended(reason);
            }
            _ => return None,
        }
        Some(closed)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::engine::{Cancel, Engine, Refusal, Timer};
    use std::collections::HashSet;
    use std::time::Duration;

    const MS: Duration = Duration::from_millis(1);
    const TIMERS: usize = 3 * CELLS_PER_HOLD / CELLS_PER_TIMER;

    #[test]
    fn a_timer_that_a_walk_has_ended_is_not_the_earliest() {
        let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
        let [first, second] = [3 * MS, 5 * MS].map(|delay| {
            let id = engine.schedule(Timer::after(delay, ())).unwrap();
            (id, engine.deadline(id))
        });
        let slot = &engine.core.shards[0];
        assert_eq!(engine.core.close(slot), 2);
        assert_eq!(engine.earliest_deadline(), first.1);
        let mut shard = slot.lock();
        let at = shard.wheel.find(first.0).unwrap();
        assert!(shard.close_one(at, Tick(0)).is_some());
        drop(shard);
        assert_eq!(engine.earliest_deadline(), second.1);
    }

    /// What others do between two holds: each timer ends once, one way or another.
    #[test]
    fn between_two_holds_timers_are_cancelled_taken_and_moved_and_end_once() {
        let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
        let timer = |n: usize| match n % 5 {
            0 => Timer::after(MS, n), // expired when it begins
            1 => Timer::every(500 * MS, n).reported(),
            _ => Timer::after((2 + n as u32 % 3) * MS, n),
        };
        let ids: Vec<_> = (0..TIMERS)
            .map(|n| engine.schedule(timer(n)).unwrap())
            .collect();
        clock.advance(MS);
        let (core, now) = (&engine.core, engine.tick());
        let slot = &core.shards[0];
        assert_eq!(core.close(slot), TIMERS);

        let (mut cursor, mut closed, mut others) = (Cursor::START, Vec::new(), Vec::new());
        let mut holds = 1;
        while !core
            .hold(slot)
            .shard
            .close_some(&mut cursor, now, &mut closed)
        {
            holds += 1;
            let refused = engine.schedule(Timer::after(MS, 0)).unwrap_err();
            assert_eq!(refused.reason(), Refusal::Closed);
            for &id in ids.iter().skip(holds).step_by(11) {
                others.extend(engine.cancel(id).payload());
            }
            for &id in ids.iter().skip(holds).step_by(3) {
                let _ = engine.reschedule(id, Duration::ZERO);
            }
            clock.advance(10 * MS);
            engine.shrink();
            let queue = engine.queue(0);
            let taken = queue.try_iter().take(5);
            others.extend(taken.map(|expired| expired.into_payload()));
            assert!(engine.ledger().is_balanced());
            assert_eq!(engine.ledger().live, engine.live().count() as u64);
        }
        assert!(holds > 2 && others.len() > 100, "{holds}");
        let closed = closed.into_iter().filter_map(|closed| closed.payload);
        let all: Vec<usize> = closed.chain(others).collect();
        assert_eq!(all.len(), TIMERS);
        assert_eq!(all.into_iter().collect::<HashSet<_>>().len(), TIMERS);
        assert_eq!(engine.ledger().live, 0);
        assert!(ids.iter().all(|&id| engine.cancel(id) == Cancel::Gone));
    }
}
