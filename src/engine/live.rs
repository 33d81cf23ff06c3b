//! Looking for live timers while others go on using the engine.

use std::collections::VecDeque;

use crate::engine::core::{Core, Slot};
use crate::engine::extra::State;
use crate::engine::shard::{CELLS_PER_HOLD, CELLS_PER_TIMER, Phase, Shard};
use crate::id::TimerId;
use crate::tick::Tick;
use crate::time::{NEVER, Time};
use crate::wheel::{At, Cursor, OverBudget};

/// What a timer that is found counts for among the cells of a hold: few are
/// found at a time that nobody may ask for.
const CELLS_PER_FOUND: usize = CELLS_PER_HOLD / 256;

/// How many entries the search for the earliest deadline visits in one hold of a
/// shard's lock, each a cache miss, before it passes through the cells instead.
const VISITS_PER_HOLD: usize = 512;

/// A live timer, as it was when it was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LiveTimer {
    /// The timer.
    pub id: TimerId,
    /// When it is due next (or was, if it waits to be taken or runs).
    pub deadline: Tick,
    /// The queue that it fires into.
    pub queue: usize,
}

/// Iterator over live timers, from [`Engine::live`](crate::Engine::live).
///
/// It holds a shard's lock only for some hundred entries at a time. A timer
/// that lives through the whole walk is seen exactly once; one that is
/// scheduled or ends meanwhile may be seen or not.
pub struct LiveTimers<'a, T> {
    core: &'a Core<T>,
    shard: usize,
    cursor: Cursor,
    found: VecDeque<LiveTimer>,
}

impl<'a, T> LiveTimers<'a, T> {
    pub(crate) fn new(core: &'a Core<T>) -> LiveTimers<'a, T> {
        LiveTimers {
            core,
            shard: 0,
            cursor: Cursor::START,
            found: VecDeque::new(),
        }
    }

    /// Passes through the next few cells; `false` when there are none.
    fn look(&mut self) -> bool {
        let (cursor, found) = (&mut self.cursor, &mut self.found);
        let look = |shard: &mut Shard<T>| {
            if *cursor == Cursor::START {
                shard.begin_walk();
            }
            let done = shard.find_live(cursor, found);
            if done {
                shard.end_walk();
            }
            done
        };
        match self.core.look_at_shard(self.shard, look) {
            None => return false,
            Some(false) => self.core.shards[self.shard].step_aside(),
            Some(true) => {
                self.shard += 1;
                self.cursor = Cursor::START;
            }
        }
        true
    }
}

/// A walk that ends before its end does not keep its shard from shrinking.
impl<T> Drop for LiveTimers<'_, T> {
    fn drop(&mut self) {
        if self.cursor != Cursor::START {
            self.core.look_at_shard(self.shard, Shard::end_walk);
        }
    }
}

impl<T> Iterator for LiveTimers<'_, T> {
    type Item = LiveTimer;

    fn next(&mut self) -> Option<LiveTimer> {
        while self.found.is_empty() {
            if !self.look() {
                return None;
            }
        }
        self.found.pop_front()
    }
}

impl<T> Core<T> {
    /// The earliest deadline of what has not expired; none for what is never
    /// due.
    pub(crate) fn earliest_deadline(&self) -> Option<Time> {
        let deadlines = self.shards.iter().filter_map(|slot| self.earliest_in(slot));
        let earliest = deadlines.filter(|&deadline| deadline < NEVER).min()?;
        Some(self.tick.start_of(earliest))
    }

    fn earliest_in(&self, slot: &Slot<T>) -> Option<Tick> {
        let searched = slot.lock().earliest_by_slots();
        searched.unwrap_or_else(|OverBudget| self.earliest_by_cells(slot))
    }

    /// The same for a shard that has too many timers in the slot that matters, or
    /// no slots any more.
    fn earliest_by_cells(&self, slot: &Slot<T>) -> Option<Tick> {
        let (mut cursor, mut earliest) = (Cursor::START, None);
        slot.lock().begin_walk();
        while !slot.lock().find_earliest(&mut cursor, &mut earliest) {
            slot.step_aside();
        }
        slot.lock().end_walk();
        earliest
    }
}

impl<T> Shard<T> {
    /// Looks for live timers in a bounded number of cells. Returns whether those
    /// were the last.
    fn find_live(&self, cursor: &mut Cursor, found: &mut VecDeque<LiveTimer>) -> bool {
        let mut budget = CELLS_PER_HOLD;
        while let Some(at) = self.wheel.next_entry(cursor, &mut budget) {
            if self.is_live(at) {
                budget = budget.saturating_sub(CELLS_PER_FOUND);
                found.push_back(LiveTimer {
                    id: self.wheel.id(at),
                    deadline: self.wheel.deadline_of(at),
                    queue: self.queue_of(at),
                });
            }
        }
        self.wheel.is_at_end(*cursor)
    }

    fn earliest_by_slots(&self) -> Result<Option<Tick>, OverBudget> {
        match self.phase {
            Phase::Closed => Err(OverBudget),
            _ => self.wheel.earliest_within(VISITS_PER_HOLD),
        }
    }

    /// Looks for an earlier deadline in a bounded number of cells. Returns
    /// whether those were the last.
    fn find_earliest(&self, cursor: &mut Cursor, earliest: &mut Option<Tick>) -> bool {
        let mut budget = CELLS_PER_HOLD;
        while let Some(at) = self.wheel.next_entry(cursor, &mut budget) {
            budget = budget.saturating_sub(CELLS_PER_TIMER);
            if self.is_in_wheel(at) {
                let deadline = self.wheel.deadline_of(at);
                *earliest = earliest.iter().copied().chain([deadline]).min();
            }
        }
        self.wheel.is_at_end(*cursor)
    }

    /// Whether a timer waits for its deadline.
    fn is_in_wheel(&self, at: At) -> bool {
        let waits = |key: usize| self.extras[key].state == State::Waiting;
        !self.tag(at).is_ready() && self.extra_of(at).is_none_or(waits)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::engine::{Engine, Timer};
    use std::time::Duration;

    #[test]
    fn one_hold_passes_a_bounded_number_of_cells_whatever_is_in_them() {
        const PEAK: usize = 10 * CELLS_PER_HOLD;
        let builder = Engine::builder().shards(1);
        let (engine, _clock) = builder.start_virtual().unwrap();
        let far = |n| engine.schedule(Timer::after(Duration::from_secs(9), n));
        let ids: Vec<_> = (0..PEAK).map(|n| far(n).unwrap()).collect();
        let cancelled = engine.cancel_many(&ids);
        assert!(
            cancelled
                .into_iter()
                .map(|it| it.payload().unwrap())
                .eq(0..PEAK)
        );

        let mut live = engine.live();
        let looks = std::iter::from_fn(|| live.look().then_some(())).count();
        assert!((10..20).contains(&looks), "{looks}");
        assert!(live.found.is_empty());
    }

    #[test]
    fn few_are_found_at_a_time_and_each_once() {
        let builder = Engine::builder().shards(1);
        let (engine, _clock) = builder.start_virtual().unwrap();
        for n in 0..2_000 {
            engine
                .schedule(Timer::after(Duration::from_secs(9), n))
                .unwrap();
        }
        let mut live = engine.live();
        assert!(live.look());
        assert!((1..=256).contains(&live.found.len()));
        assert_eq!(live.count(), 2_000);
    }

    #[test]
    fn a_crowded_slot_is_searched_by_cells_and_the_answer_is_the_same() {
        let builder = Engine::builder().shards(1);
        let (engine, clock) = builder.start_virtual().unwrap();
        let schedule = |timer| engine.schedule(timer).unwrap();
        // What is not in the wheel: expired, lent, ended and unread, unstarted.
        let ms = Duration::from_millis(1);
        schedule(Timer::after(ms, 0).queue(0));
        schedule(Timer::every(ms, 0).queue(0));
        clock.advance(ms);
        let _lent = [
            engine.queue(0).recv().unwrap(),
            engine.queue(0).recv().unwrap(),
        ];
        schedule(Timer::after(ms, 0));
        clock.advance(ms);
        let reported = schedule(Timer::after(ms, 0).reported());
        assert!(engine.cancel(reported).payload().is_some());
        let _unstarted = engine.create(Timer::after(ms, 0)).unwrap();
        let slot = engine.now() + Duration::from_secs(100);
        for n in 0..2 * VISITS_PER_HOLD {
            schedule(Timer::at(slot + (n as u32 % 100) * ms, n));
        }
        let by_slots = engine.core.shards[0]
            .lock()
            .wheel
            .earliest_within(VISITS_PER_HOLD);
        assert_eq!(by_slots, Err(OverBudget));
        assert_eq!(engine.earliest_deadline(), Some(slot));
    }
}
