//! Looking into a wheel: how many timers wait where, for viewers, and its invariants, for
//! tests.
//!
//! A slot keeps no count, because every schedule and every cancel would have to maintain
//! it. A count is therefore a walk along the slot's list, which the caller bounds.

use alloc::vec::Vec;

use super::Wheel;
use crate::id::TimerId;
use crate::tick::Tick;

/// A level of a wheel, from [`Wheel::levels`] or
/// [`Engine::inspect`](crate::Engine::inspect).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Level {
    /// The number of ticks that a slot covers: `size^k` on level k.
    pub slot_ticks: u64,
    /// The slot that covers the tick that the wheel has reached.
    pub hand: usize,
    /// The number of timers in each slot, up to the limit that the caller set. A
    /// postponed timer stays in its old slot until that slot's turn comes.
    pub timers: Vec<usize>,
}

/// An occupied slot, from [`Wheel::slots`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Slot {
    /// The level, counted from 0: slots of level k cover `size^k` ticks. Timers beyond the
    /// [last level](crate::wheel::Geometry::max_levels) are in a slot of one more.
    pub level: usize,
    /// The slot's position within its level, from 0 to the wheel's size minus one.
    pub index: usize,
    /// The first tick that the slot covers. At that tick the slot fires (level 0)
    /// or is re-filed inward.
    pub start: Tick,
    /// The timers in the slot. A postponed timer stays in its old slot until that
    /// slot's turn comes.
    pub timers: Vec<TimerId>,
}

impl<T> Wheel<T> {
    /// Returns the levels up to the last one that has timers, from the finest on, with
    /// the number of timers in each slot. Counts at most `most` timers of a slot; with a
    /// `most` of 1, a count says whether the slot is occupied.
    ///
    /// Due timers that are waiting to be taken are not in any slot, and timers beyond the
    /// [last level](crate::wheel::Geometry::max_levels) in none of these. [`Wheel::slots`] names
    /// the timers in each slot.
    ///
    /// # Cost
    /// Reads a few words per slot, and at most `most` entries of it.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::starting_at(Tick(6), 10);
    /// wheel.schedule_at(Tick(8), "in two ticks");
    /// for n in 0..100 {
    ///     wheel.schedule_at(Tick(30 + n % 10), "later");
    /// }
    /// let levels = wheel.levels(20);
    /// assert_eq!((levels[0].slot_ticks, levels[0].hand, levels[0].timers[8]), (1, 6, 1));
    /// assert_eq!((levels[1].slot_ticks, levels[1].hand, levels[1].timers[3]), (10, 0, 20));
    /// assert_eq!(levels.len(), 2);
    /// ```
    #[must_use]
    pub fn levels(&self, most: usize) -> Vec<Level> {
        let mut levels = self.uncounted_levels();
        for (index, level) in levels.iter_mut().enumerate() {
            let slots = 0..self.geometry().size();
            level.timers = slots.map(|slot| self.count_in_slot(index, slot, most)).collect();
        }
        levels
    }

    /// Returns the same levels, without room for counts: the caller may hold a lock, and
    /// the room grows with the wheel's size.
    pub(crate) fn uncounted_levels(&self) -> Vec<Level> {
        let level = |level| Level {
            slot_ticks: self.geometry().unit(level),
            hand: self.geometry().slot(level, self.slots.now),
            timers: Vec::new(),
        };
        (0..self.geometry().levels().min(self.slots.last_level() + 1)).map(level).collect()
    }

    /// Returns the number of timers in a slot of a level, up to `most`.
    pub(crate) fn count_in_slot(&self, level: usize, slot: usize, most: usize) -> usize {
        let timers = self.slots.lists(level, slot).flat_map(|list| self.entries.on_list(list));
        timers.take(most).count()
    }

    /// Returns the occupied slots, in the order of their turns, for debugging and
    /// testing. Due timers that are waiting to be taken are not in any slot.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(20);
    /// let id = wheel.schedule_at(Tick(350), ());
    /// let slot = wheel.slots().next().unwrap();
    /// assert_eq!((slot.level, slot.index, slot.start), (1, 17, Tick(340)));
    /// assert_eq!(slot.timers, [id]);
    /// ```
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        let slots = &self.slots;
        slots.occupied().filter_map(|list| {
            let (level, index) = slots.slot_of(list);
            // The first part tells the timers of all.
            slots.lists(level, index).next().filter(|&first| first == list)?;
            let entries = slots.lists(level, index).flat_map(|list| self.entries.on_list(list));
            let mut timers: Vec<_> = entries.map(|entry| self.id(entry)).collect();
            timers.sort_unstable();
            Some(Slot { level, index, start: Tick(slots.start_of(list)), timers })
        })
    }

    /// Asserts that all lists, bitmaps and bounds agree.
    #[cfg(test)]
    pub(crate) fn assert_consistent(&self) {
        self.assert_consistent_beside(0);
    }

    /// Asserts the same of a wheel that has this many timers on lists of its owner, or
    /// on no list.
    #[cfg(test)]
    pub(crate) fn assert_consistent_beside(&self, elsewhere: usize) {
        use super::entries::{DUE, EntryIndex, IN_HEAP, OVERDUE, OWN_LISTS, SORTING};

        self.entries.assert_consistent();
        let on = |list| self.entries.on_list(list);
        let mut seen = elsewhere;
        for (list, start) in self.lists() {
            for at in on(list) {
                assert!(self.entries.get(at).deadline >= start);
                assert_eq!(self.entries.links(self.entries.links(at).prev).next, at);
                seen += 1;
            }
        }
        assert_eq!(seen, self.len());
        assert!(on(OVERDUE).all(|at| self.is_due(at)));
        assert!(on(IN_HEAP).all(|at| self.entries.get(at).has(SORTING)));
        assert!(self.heap.len() >= on(IN_HEAP).count());
        assert!(self.is_sorting || self.heap.is_empty() && self.entries.is_empty(IN_HEAP));
        assert!(self.pass != self.ended || self.entries.is_empty(DUE));
        let cascading: Vec<_> = self.cascading().collect();
        let last = self.slots.last_level();
        let lists = (OWN_LISTS..self.slots.end()).map(EntryIndex::new);
        for list in lists.take_while(|&list| self.slots.slot_of(list).0 <= last) {
            let has_bit = !cascading.contains(&list) && !self.entries.is_empty(list);
            assert_eq!(self.slots.is_occupied(list), has_bit);
            let stamps = on(list).map(|at| self.entries.get(at).stamp);
            let is_unordered = self.slots.unsorted.get(list.index() as usize);
            assert!(stamps.is_sorted() || *is_unordered.unwrap_or(&true));
        }
        let turn = |list| (self.slots.start_of(list), list);
        let turns: Vec<_> = self.slots.occupied().map(turn).collect();
        assert!(turns.is_sorted_by_key(|&(start, _)| start));
        let next = self.slots.next_turn();
        let next = (next.lists != 0).then_some((next.start, next.list));
        assert_eq!(next, turns.first().copied());
        if self.slots.known.lists != 0 && self.slots.next != 0 {
            assert_eq!(self.slots.next, self.slots.known.start);
        }
        // What is left at the end of time is never due.
        let reached = self.slots.now.min(u64::MAX - 1);
        assert!(turns.iter().all(|&(start, _)| self.slots.next <= start && reached < start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel::{KeyedWheel, Step};

    /// Returns a wheel whose timers lie in slots of many levels, dense and sparse.
    fn filled(size: usize) -> Wheel<u64> {
        let mut wheel = Wheel::starting_at(Tick(1_000), size);
        for n in 0..400 {
            wheel.schedule_after(n * n * n % 5_000 + 1, n);
            wheel.schedule_after(3_000, n);
        }
        let _ = wheel.advance(Tick(1_500), usize::MAX, |_, _| ());
        wheel
    }

    #[test]
    fn debug_output_of_a_wheel_shows_its_state() {
        let mut wheel = Wheel::starting_at(Tick(40), 20);
        wheel.schedule_after(1, ());
        let said = format!("{wheel:?}");
        assert_eq!(said, "Wheel { now: Tick(40), len: 1, size: 20, .. }");

        let mut keyed = KeyedWheel::starting_at(Tick(40), 20);
        keyed.insert('k', Tick(41), ());
        let said = format!("{keyed:?}");
        assert_eq!(said, "KeyedWheel { now: Tick(40), len: 1, .. }");

        let refused = keyed.try_insert('k', Tick(42), ()).unwrap_err();
        assert_eq!(format!("{refused:?}"), "DuplicateKey { key: 'k', .. }");
        assert!(refused.to_string().contains("a timer with the key 'k' has not ended"));
    }

    #[test]
    fn levels_count_what_slots_name() {
        for size in [2, 20, 64, 100, 256] {
            let wheel = filled(size);
            for most in [0, 1, 2, 7, 8, 9, 50, usize::MAX] {
                let levels = wheel.levels(most);
                let mut named = wheel.uncounted_levels();
                named.iter_mut().for_each(|level| level.timers = vec![0; size]);
                for slot in wheel.slots() {
                    named[slot.level].timers[slot.index] = slot.timers.len().min(most);
                    assert!(slot.timers.is_sorted());
                }
                assert_eq!(levels, named, "size {size}, most {most}");
            }
        }
    }

    #[test]
    fn a_hand_points_to_the_slot_of_now() {
        let wheel = filled(20);
        let hands: Vec<_> = wheel.levels(1).iter().map(|level| level.hand).collect();
        let by_digit = [1_500, 1_500 / 20, 1_500 / 400].map(|digits| digits % 20);
        assert_eq!(hands, by_digit);
    }

    #[test]
    fn a_cascade_moves_no_more_timers_than_its_budget() {
        let mut wheel = Wheel::new(64);
        (0..50).for_each(|n| _ = wheel.schedule_at(Tick(70 + n), n));
        let mut budget = 10;
        assert_eq!((wheel.step(Tick(64), &mut budget, true), budget), (Step::Paused, 0));
        let inward = &wheel.levels(usize::MAX)[0].timers;
        assert_eq!(inward.iter().sum::<usize>(), 10);
        // Nor do the turns of slots, if each has one timer that was postponed.
        let mut wheel = Wheel::new(64);
        let ids: Vec<_> = (1..50).map(|n| wheel.schedule_at(Tick(n), n)).collect();
        ids.into_iter().for_each(|id| assert!(wheel.reschedule(id, Tick(60))));
        budget = 10;
        assert_eq!((wheel.step(Tick(59), &mut budget, true), budget), (Step::Paused, 0));
    }

    #[test]
    fn what_lies_beyond_the_levels_is_in_none_of_them() {
        let geometry = crate::wheel::Geometry::new(10).unwrap().max_levels(2).unwrap();
        let mut wheel = Wheel::with_geometry(Tick(0), geometry);
        let id = wheel.schedule_at(Tick(1_234), ());
        let units: Vec<_> = wheel.levels(1).iter().map(|level| level.slot_ticks).collect();
        assert_eq!(units, [1, 10]);
        let beyond = Slot { level: 2, index: 0, start: Tick(1_200), timers: vec![id] };
        assert!(wheel.slots().eq([beyond]));
    }

    #[test]
    fn a_wheel_without_timers_has_one_level() {
        let levels = Wheel::<()>::new(64).levels(1);
        assert_eq!(levels.len(), 1);
        assert_eq!(levels[0].timers, [0; 64]);
    }
}
