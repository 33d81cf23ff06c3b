//! Walking through live timers while other threads use the engine.

use std::collections::VecDeque;
use std::fmt;

use crate::engine::Engine;
use crate::hub::{Core, Walk};
use crate::id::TimerId;
use crate::shard::Shard;
use crate::timer::LiveTimer;
use crate::wheel::Cursor;

/// Iterator over live timers, from [`Engine::live`](crate::Engine::live).
///
/// Holds a shard's lock for a few hundred entries at a time. Returns a
/// timer that lives through the whole walk exactly once. May miss a timer
/// that is scheduled or ends meanwhile.
#[must_use = "an iterator does nothing until it is advanced"]
pub struct LiveTimers<'a, T> {
    core: &'a Core<T>,
    shard: usize,
    cursor: Cursor,
    found: VecDeque<LiveTimer>,
    pace: Walk,
}

impl<T> fmt::Debug for LiveTimers<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveTimers").finish_non_exhaustive()
    }
}

impl<T> Engine<T> {
    /// Returns an iterator over the live timers, in no particular order; see
    /// [`LiveTimers`].
    pub fn live(&self) -> LiveTimers<'_, T> {
        LiveTimers {
            core: &self.core,
            shard: 0,
            cursor: Cursor::START,
            found: VecDeque::new(),
            pace: Walk::begin(),
        }
    }

    /// Returns the live timer with this id, or `None` if it has ended, has not started or
    /// never existed.
    ///
    /// # Cost
    /// One short lock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let engine = Engine::builder().start()?;
    /// let lease = engine.schedule(Timer::after(Duration::from_secs(30), 7).named("lease"))?;
    /// assert_eq!(engine.find(lease).unwrap().name.as_deref(), Some("lease"));
    /// assert!(engine.cancel(lease).is_cancelled());
    /// assert_eq!(engine.find(lease), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn find(&self, id: TimerId) -> Option<LiveTimer> {
        self.core.find(id)
    }
}

impl<T> LiveTimers<'_, T> {
    /// Passes through the next few cells. Returns `false` if none are left.
    fn refill(&mut self) -> bool {
        let (cursor, found) = (&mut self.cursor, &mut self.found);
        let find = |shard: &mut Shard<T>| shard.find_live(cursor, found);
        match self.core.with_shard(self.shard, find) {
            None => return false,
            // A hold may be longer than a waiter polls, so it gets the time to wake up.
            Some(false) => self.core.shards[self.shard].step_aside_in(&mut self.pace),
            Some(true) => {
                self.shard += 1;
                self.cursor = Cursor::START;
            }
        }
        true
    }
}

impl<T> Iterator for LiveTimers<'_, T> {
    type Item = LiveTimer;

    fn next(&mut self) -> Option<LiveTimer> {
        while self.found.is_empty() {
            if !self.refill() {
                return None;
            }
        }
        self.found.pop_front()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::engine::Engine;
    use crate::shard::CELLS_PER_HOLD;
    use crate::shard::walk::VISITS_PER_HOLD;
    use crate::timer::Timer;
    use crate::wheel::OverBudget;
    use std::time::Duration;

    #[test]
    fn one_hold_passes_a_bounded_number_of_cells_whatever_is_in_them() {
        const PEAK: usize = 10 * CELLS_PER_HOLD;
        let builder = Engine::builder().shards(1);
        let (engine, _clock) = builder.start_virtual().unwrap();
        let far = |n| engine.schedule(Timer::after(Duration::from_secs(9), n));
        let ids: Vec<_> = (0..PEAK).map(|n| far(n).unwrap()).collect();
        // The last one keeps the entries of the others.
        let cancelled = engine.cancel_many(&ids[..PEAK - 1]);
        assert_eq!(cancelled.len(), PEAK - 1);

        let mut live = engine.live();
        let holds = std::iter::from_fn(|| live.refill().then_some(())).count();
        assert!((10..20).contains(&holds), "{holds}");
        assert_eq!(live.found.len(), 1);
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
        assert!(live.refill());
        assert!((1..=256).contains(&live.found.len()));
        assert_eq!(live.count(), 2_000);
    }

    #[test]
    fn a_crowded_slot_is_searched_by_cells_and_the_answer_is_the_same() {
        let builder = Engine::builder().shards(1);
        let (engine, clock) = builder.start_virtual().unwrap();
        let schedule = |timer| engine.schedule(timer).unwrap();
        // Timers outside the wheel: expired, lent, ended and unread, unstarted.
        let ms = Duration::from_millis(1);
        schedule(Timer::after(ms, 0).queue(0));
        schedule(Timer::every(ms, 0).queue(0));
        clock.advance(ms);
        let _lent = [(); 2].map(|()| engine.queue(0).recv().unwrap());
        schedule(Timer::after(ms, 0));
        clock.advance(ms);
        let reported = schedule(Timer::after(ms, 0).reported());
        assert!(engine.cancel(reported).into_payload().is_some());
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
