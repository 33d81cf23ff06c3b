//! Looking at an engine's timers while other threads use it, in bounded holds of one shard's
//! lock after the other: one timer, all live ones, those of a name, the earliest deadline,
//! inspection, and freeing memory. And counts over all shards.

use core::time::Duration;
use std::collections::VecDeque;
use std::iter::from_fn;

use crate::engine::{Core, Engine, ShardCell};
use crate::id::TimerId;
use crate::rounding::NEVER;
use crate::shard::Shard;
use crate::shard::walk::TRIMMED_PER_HOLD;
use crate::stats::{InspectedShard, Inspection, Ledger, LiveTimer, Snapshot};
use crate::sync::Ordering;
use crate::tick::Tick;
use crate::timeline::Time;
use crate::wheel::{Cursor, Level};

impl<T> Core<T> {
    pub(crate) fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::default();
        for cell in &self.shards {
            ledger.add(&cell.lock().ledger());
        }
        ledger
    }

    /// Calls `visit` with a shard until it returns true, each time in another hold of the
    /// shard's lock.
    pub(super) fn walk(&self, cell: &ShardCell<T>, mut visit: impl FnMut(&mut Shard<T>) -> bool) {
        while !self.walk_once(cell, &mut visit) {}
    }

    /// Does one hold of a walk. Returns whether that was the last one.
    pub(super) fn walk_once(
        &self,
        cell: &ShardCell<T>,
        visit: impl FnOnce(&mut Shard<T>) -> bool,
    ) -> bool {
        let mut held = self.hold(cell);
        let is_complete = visit(&mut held.shard);
        self.release(held);
        if !is_complete {
            cell.let_sleepers_in();
        }
        is_complete
    }
}

/// Iterates over what `refill` finds, a few at a time, until it finds no more.
fn a_few_at_a_time<I>(mut refill: impl FnMut(&mut VecDeque<I>) -> bool) -> impl Iterator<Item = I> {
    let (mut found, mut is_complete) = (VecDeque::new(), false);
    from_fn(move || {
        while found.is_empty() && !is_complete {
            is_complete = refill(&mut found);
        }
        found.pop_front()
    })
}

impl<T> Engine<T> {
    /// Returns the account of all timers. It is exact only while no other call is
    /// running. Prefer [`snapshot`](Engine::snapshot) for monitoring.
    ///
    /// # Cost
    /// Locks each shard once, whatever the number of timers.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.core.ledger()
    }

    /// Returns all counts, for monitoring: ledger, queue depths, lateness, work,
    /// wake-ups, panics.
    ///
    /// # Cost
    /// Locks each shard once, whatever the number of timers.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let core = &self.core;
        let of_wakers: u64 = core.doorbells.iter().map(|bells| bells.panics()).sum();
        let mut snapshot = Snapshot {
            name: core.name.clone(),
            queued: vec![0; core.queues()],
            wakeups: core.alarm.wakeups(),
            panics: core.panics.load(Ordering::Relaxed) + of_wakers,
            workers: core.workers.wanted(),
            max_timers: core.max_timers,
            // Zero if the tick at which a shard has to be visited has not come.
            behind: core.clock.now() - core.tick.start_of(core.next_due()),
            ..Snapshot::default()
        };
        for cell in &core.shards {
            let shard = cell.lock();
            let (reports, queues) = shard.ready.split_last().expect("the last is the reports'");
            snapshot.reports += reports.len();
            for (queued, ready) in snapshot.queued.iter_mut().zip(queues) {
                *queued += ready.len();
            }
            snapshot.held += shard.lent;
            if let Some(measured) = &shard.measured {
                snapshot.lateness_at_start.add(&measured.lateness_at_start);
                snapshot.durations.add(&measured.durations);
            }
            snapshot.ledger.add(&shard.ledger());
            snapshot.lateness.add(&shard.lateness);
            snapshot.refused.add(&shard.refused);
            snapshot.memory += shard.bytes();
        }
        snapshot
    }

    /// Returns the exact earliest deadline of all unexpired timers, or `None` if
    /// no timer can ever expire. A repeating timer has no deadline while a firing
    /// of it waits in its queue or is held by a worker.
    ///
    /// Exact if no other call schedules or moves timers meanwhile. A loop that
    /// computes the time to sleep should use the cheaper
    /// [`Driver::next_wakeup`](crate::Driver::next_wakeup).
    ///
    /// # Cost
    /// Searches at most a few hundred entries of each shard. If very many
    /// timers share a slot, walks through that shard, a bounded part per
    /// hold of its lock.
    ///
    /// ```
    /// use tickwheel::{Engine, Time, Timer};
    ///
    /// // A simulation: from one event to the next.
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// engine.schedule(Timer::at(Time::from_millis(350), "arrival"))?;
    /// engine.schedule(Timer::at(Time::from_secs(3_600), "closing time"))?;
    /// let mut events = Vec::new();
    /// while let Some(time) = engine.earliest_deadline() {
    ///     clock.advance_to(time);
    ///     let due = engine.queue(0).recv()?;
    ///     events.push((time, due.into_payload()));
    /// }
    /// assert_eq!(events[0], (Time::from_millis(350), "arrival"));
    /// assert_eq!(events[1], (Time::from_secs(3_600), "closing time"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn earliest_deadline(&self) -> Option<Time> {
        let core = &self.core;
        let deadlines = core.shards.iter().map(|cell| core.earliest_in(cell));
        let earliest = deadlines.filter(|&deadline| deadline < NEVER).min()?;
        Some(core.tick.start_of(earliest))
    }

    /// Gives back memory that live timers do not need. By itself, the engine gives back
    /// only that of a shard without timers that has had some thousands. Call this after a
    /// peak, or now and then if peaks move from thread to thread.
    ///
    /// What lies before the last timer stays. Records of repeating, named, reported and other
    /// such timers are given back when a shard has none of them left.
    ///
    /// # Cost
    /// Grows with the largest number of timers live since the last call. A hold
    /// of a shard's lock touches at most a few hundred entries, and each queue.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let schedule = |n| engine.schedule(Timer::after(Duration::from_secs(9), n));
    /// let ids = (0..1_000).map(schedule).collect::<Result<Vec<_>, _>>()?;
    /// ids[..999].iter().for_each(|&id| _ = engine.cancel(id));
    /// engine.shrink();
    /// assert_eq!(engine.cancel(ids[999]).into_payload(), Some(999));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shrink(&self) {
        for cell in &self.core.shards {
            let unneeded = cell.lock().begin_shrink();
            drop(unneeded);
            self.core.walk(cell, |shard| shard.shrink_some(TRIMMED_PER_HOLD));
        }
    }

    /// Returns an iterator over the live timers, in no particular order.
    ///
    /// Costs what [`shrink`](Engine::shrink) does. Holds a shard's lock for a few hundred
    /// timers at a time. Returns a timer that lives through the whole walk exactly once. May
    /// miss a timer that is scheduled or ends meanwhile.
    pub fn live(&self) -> impl Iterator<Item = LiveTimer> {
        let mut cells = self.core.shards.iter();
        let mut cursor = Cursor::START;
        a_few_at_a_time(move |found| {
            let Some(cell) = cells.as_slice().first() else {
                return true;
            };
            if self.core.walk_once(cell, |shard| shard.find_live(&mut cursor, found)) {
                cells.next();
                cursor = Cursor::START;
            }
            false
        })
    }

    /// Returns a live timer's next deadline, or the last one if the timer
    /// is running or waiting to be taken. Returns `None` if it is not live.
    #[must_use]
    pub fn deadline(&self, id: TimerId) -> Option<Time> {
        let tick = self.core.cell_of(id)?.lock().deadline(id)?;
        Some(self.core.tick.start_of(tick))
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
        self.core.cell_of(id)?.lock().find_one(id)
    }
}

impl<T> Engine<T> {
    /// Returns an iterator over the ids of the timers that have this name, oldest first:
    /// live and [unstarted](Engine::create) ones.
    ///
    /// Holds the lock of a shard for a few dozen timers at a time. Returns a timer that has
    /// the name during the whole walk exactly once, and no timer that is created meanwhile.
    /// A returned timer may have ended since. A timer is no longer found by its name when it
    /// has ended, or when it was cancelled during a firing that is not its last. For the names
    /// of all live timers, read [`LiveTimer::name`](crate::stats::LiveTimer::name) from
    /// [`live`](Engine::live).
    ///
    /// # Cost
    /// Grows with the number of timers that the iterator returns, not with the number of
    /// timers in the engine.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let engine = Engine::builder().start()?;
    /// let schedule = |n: u32, name: &str| {
    ///     engine.schedule(Timer::after(Duration::from_secs(30), n).named(name))
    /// };
    /// let sessions = [schedule(1, "session")?, schedule(2, "session")?];
    /// schedule(3, "backup")?;
    /// assert!(engine.find_by_name("session").eq(sessions));
    ///
    /// for id in engine.find_by_name("session") {
    ///     // Answers `Gone` if the timer has ended meanwhile.
    ///     let _ = engine.reschedule(id, Duration::from_secs(60));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find_by_name(&self, name: &str) -> impl Iterator<Item = TimerId> {
        let (core, hash) = (&self.core, self.core.hash(name));
        let cell = core.cell_of_name(hash);
        let mut namesakes = cell.lock().namesakes(name, hash);
        a_few_at_a_time(move |found| {
            core.walk_once(cell, |shard| shard.find_namesakes(&mut namesakes, found))
        })
    }
}

impl<T> Core<T> {
    fn earliest_in(&self, cell: &ShardCell<T>) -> Tick {
        // Not a `match`, which would keep the lock.
        let searched = cell.lock().earliest_by_slots();
        searched.unwrap_or_else(|| {
            // Too many timers are in the earliest slot, or there are no slots any more.
            let (mut cursor, mut earliest) = (Cursor::START, Tick::MAX);
            self.walk(cell, |shard| shard.find_earliest(&mut cursor, &mut earliest));
            earliest
        })
    }
}

/// The number of slots that one hold of a shard's lock visits, or of entries in them unless a
/// single slot has more.
const LISTED_PER_HOLD: usize = 256;

fn inspect<T>(cell: &ShardCell<T>, size: usize, most: usize) -> InspectedShard {
    let mut inspected = cell.lock().inspect();
    inspected.next_wakeup = Some(cell.next()).filter(|&next| next < Tick::MAX);
    for (index, level) in inspected.levels.iter_mut().enumerate() {
        level.timers = vec![0; size];
        count(cell, index, level, most);
    }
    inspected
}

/// Counts a level's timers, a bounded number in each hold of the lock.
fn count<T>(cell: &ShardCell<T>, index: usize, level: &mut Level, most: usize) {
    let size = level.timers.len();
    let slots_per_hold = (LISTED_PER_HOLD / most.max(1)).max(1);
    for first in (0..size).step_by(slots_per_hold) {
        let slots = first..size.min(first + slots_per_hold);
        cell.lock().count_in_slots(index, level, slots, most);
        cell.step_aside();
    }
}

impl<T> Engine<T> {
    /// Returns where the timers wait: for each shard, the slots of its wheel, its ready
    /// lists, its account and its next wake-up. Counts at most `most` timers of a slot; with
    /// a `most` of 1, a count says whether the slot is occupied. Timers beyond
    /// [`max_levels`](crate::Builder::max_levels), overdue ones and those that a worker holds are
    /// in none.
    ///
    /// For viewers and for questions such as "do my deadlines share a few
    /// slots?"; [`snapshot`](Engine::snapshot) has the counts for monitoring. If
    /// other threads use the engine meanwhile, a timer that moves from slot to
    /// slot may be counted twice or not at all.
    ///
    /// # Cost
    /// Grows with the numbers of shards and slots and with `most`, and not with the
    /// number of timers. A hold of a shard's lock visits at most 256 slots, or 256 entries,
    /// or `most` entries of one slot: with a large `most`, callers may wait for as long as
    /// that takes. A `most` of 1 reads no entry.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let (engine, clock) = Engine::builder().shards(1).start_virtual()?;
    /// for seconds in [1, 1, 60] {
    ///     engine.schedule(Timer::after(Duration::from_secs(seconds), ()))?;
    /// }
    /// let shard = &engine.inspect(100).shards[0];
    /// let by_level: Vec<usize> = shard.levels.iter().map(|level| level.timers.iter().sum()).collect();
    /// assert_eq!(by_level, [0, 2, 1]);
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(engine.inspect(100).shards[0].queued, [2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn inspect(&self, most: usize) -> Inspection {
        let Core { shards, tick, .. } = &*self.core;
        let size = shards[0].lock().wheel.geometry().size();
        Inspection {
            tick: Duration::from_nanos(tick.as_nanos()),
            wheel_size: size,
            shards: shards.iter().map(|cell| inspect(cell, size, most)).collect(),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::shard::CELLS_PER_HOLD;
    use crate::shard::walk::VISITS_PER_HOLD;
    use crate::timer::Timer;

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

        let (mut holds, mut cursor, mut found) = (0, Cursor::START, VecDeque::new());
        engine.core.walk(&engine.core.shards[0], |shard| {
            holds += 1;
            shard.find_live(&mut cursor, &mut found)
        });
        assert!((10..20).contains(&holds), "{holds}");
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn few_are_found_at_a_time_and_each_once() {
        let builder = Engine::builder().shards(1);
        let (engine, _clock) = builder.start_virtual().unwrap();
        for n in 0..2_000 {
            engine.schedule(Timer::after(Duration::from_secs(9), n)).unwrap();
        }
        let (mut cursor, mut found) = (Cursor::START, VecDeque::new());
        let cell = &engine.core.shards[0];
        assert!(!engine.core.walk_once(cell, |shard| shard.find_live(&mut cursor, &mut found)));
        assert!((1..=256).contains(&found.len()));
        assert_eq!(engine.live().count(), 2_000);
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
        schedule(Timer::after(ms, 0).into_task(|it| it));
        clock.advance(ms);
        let _lent = [(); 3].map(|()| engine.queue(0).recv().unwrap());
        schedule(Timer::after(ms, 0));
        clock.advance(ms);
        let reported = schedule(Timer::after(ms, 0).reported());
        assert!(engine.cancel(reported).into_payload().is_some());
        let _unstarted = engine.create(Timer::after(ms, 0)).unwrap();
        let slot = engine.now() + Duration::from_secs(100);
        for n in 0..2 * VISITS_PER_HOLD {
            schedule(Timer::at(slot + (n as u32 % 100) * ms, n));
        }
        let by_slots = engine.core.shards[0].lock().wheel.earliest_within(VISITS_PER_HOLD);
        assert_eq!(by_slots, None);
        assert_eq!(engine.earliest_deadline(), Some(slot));
    }
}
