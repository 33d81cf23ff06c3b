//! Walking over live timers: all at once, in the order of their firing, or a bounded part at
//! a time; and the search for the earliest deadline.

use alloc::vec::{self, Vec};

use super::Wheel;
use super::entries::{DUE, Entries, EntryIndex, IN_HEAP, OVERDUE};
use crate::id::TimerId;
use crate::tick::Tick;

/// The position of a walk over a wheel's entries. Timers may be added or may end
/// between two parts of the walk; a timer that stays is seen exactly once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cursor(u32);

impl Cursor {
    pub(crate) const START: Cursor = Cursor(0);

    /// Returns whether the walk has passed an entry.
    #[cfg(test)]
    pub(crate) fn is_past(self, entry: EntryIndex) -> bool {
        entry.index() < self.0
    }
}

impl<T> Wheel<T> {
    /// Returns the next timer of a walk that may pass `budget` entries, and
    /// subtracts the entries passed from `budget`.
    pub(crate) fn next_entry(&self, cursor: &mut Cursor, budget: &mut usize) -> Option<EntryIndex> {
        while let Some(entry) = self.entry_after(*cursor) {
            *budget = budget.checked_sub(1)?;
            cursor.0 = entry.index() + Entries::<T>::STRIDE;
            if self.entries.is_timer(entry) {
                return Some(entry);
            }
        }
        None
    }

    /// Returns whether a walk that has begun has reached its end.
    pub(crate) fn is_at_end(&self, cursor: Cursor) -> bool {
        self.entry_after(cursor).is_none()
    }

    fn entry_after(&self, cursor: Cursor) -> Option<EntryIndex> {
        let index = cursor.0.max(self.entries.first);
        self.entries.entry_at(index.into())
    }

    /// Returns an iterator over all timers in the wheel, with their deadlines, in
    /// no particular order.
    ///
    /// Visits every entry of the storage, so the cost grows with the largest number
    /// of timers that the wheel has held since it last gave memory back.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// wheel.schedule_at(Tick(5), 'a');
    /// wheel.schedule_at(Tick(9), 'b');
    /// let due_soon = wheel.iter().filter(|&(_, deadline, _)| deadline < Tick(6));
    /// assert_eq!(due_soon.count(), 1);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (TimerId, Tick, &T)> {
        self.entries.all_timers().map(|entry| self.timer(entry))
    }

    /// Returns an iterator like [`Wheel::iter`] that allows changing the payloads.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// let id = wheel.schedule_at(Tick(5), 7);
    /// wheel.iter_mut().for_each(|(_, _, payload)| *payload += 1);
    /// assert_eq!(wheel.get(id), Some(&8));
    /// ```
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (TimerId, Tick, &mut T)> {
        let timers: Vec<_> = self.iter().map(|(id, due, _)| (id, due)).collect();
        let payloads = self.entries.payloads_mut();
        timers.into_iter().zip(payloads).map(|((id, due), payload)| (id, due, payload))
    }

    /// Returns all timers in the order in which they will fire if nothing else happens, with
    /// their deadlines. While a [pass](Wheel::pop_due) is under way, a timer that has become
    /// overdue since it began stands first, and fires after its end.
    ///
    /// Sorts all timers.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// let late = wheel.schedule_at(Tick(5), "scheduled first, and put off");
    /// wheel.schedule_at(Tick(9), "scheduled second");
    /// assert!(wheel.reschedule(late, Tick(9)));
    /// let order: Vec<_> = wheel.iter_in_order().map(|(.., payload)| *payload).collect();
    /// assert_eq!(order, ["scheduled first, and put off", "scheduled second"]);
    /// ```
    ///
    /// # Saving a game
    /// Save the timers between two passes in the order of their ids, which is the order in which
    /// they were scheduled, and schedule them in that order into a new wheel that starts at the
    /// same tick. Within a tick they then fire as they would have, also those that are re-armed or
    /// rescheduled after loading, for which the order of this iterator would not do. Only
    /// [overdue](Wheel#order) timers may change places, because nothing tells the deadlines that
    /// they were given.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut game = Wheel::new(64);
    /// game.schedule_at(Tick(9), "shield");
    /// game.schedule_at(Tick(5), "poison");
    /// let mut saved: Vec<_> = game.iter().collect();
    /// saved.sort_by_key(|&(id, ..)| id);
    /// let mut loaded = Wheel::starting_at(game.now(), 64);
    /// for (_, tick, buff) in saved {
    ///     loaded.schedule_at(tick, *buff);
    /// }
    /// for wheel in [&mut game, &mut loaded] {
    ///     let poison = wheel.pop_due(Tick(5)).unwrap();
    ///     assert!(wheel.rearm(poison, Tick(9)).is_ok());
    ///     assert_eq!(wheel.pop_due(Tick(9)).unwrap().payload, "shield");
    /// }
    /// ```
    pub fn iter_in_order(&self) -> impl ExactSizeIterator<Item = (TimerId, Tick, &T)> {
        let key = |at| (self.deadline_of(at), self.entries.get(at).stamp, at);
        let mut timers: Vec<_> = self.entries.all_timers().map(key).collect();
        timers.sort_unstable();
        timers.into_iter().map(|(.., entry)| self.timer(entry))
    }

    fn timer(&self, entry: EntryIndex) -> (TimerId, Tick, &T) {
        (self.id(entry), self.due_at(entry), self.entries.payload(entry))
    }

    /// Removes all timers and keeps the clock. Moves the payloads into a vector first: if dropping
    /// one of them panics, all timers have been removed already, and the others are dropped, too.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// wheel.schedule_at(Tick(5), "never fires");
    /// wheel.clear();
    /// assert!(wheel.is_empty());
    /// ```
    pub fn clear(&mut self) {
        let (mut cursor, mut payloads) = (Cursor::START, Vec::with_capacity(self.len()));
        while let Some(entry) = self.next_entry(&mut cursor, &mut { usize::MAX }) {
            self.entries.forget_if_moved(entry);
            payloads.push(self.remove_linked(entry));
        }
        // The payloads are dropped last, because that runs the caller's code.
        drop(self.give_back());
    }

    /// Returns the earliest deadline of all timers. It is [`Tick::MAX`], which never comes, if
    /// all timers are [disarmed](Wheel::reschedule).
    ///
    /// Unlike [`Wheel::next_wakeup`], which returns a lower bound, this may search a whole slot.
    /// A postponed timer stays in its slot for a while. If all timers of the first slots were
    /// postponed, these slots are searched as well: all timers, at worst.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// wheel.schedule_at(Tick(900), ());
    /// assert_eq!(wheel.earliest_deadline(), Some(Tick(900)));
    /// ```
    #[must_use]
    pub fn earliest_deadline(&self) -> Option<Tick> {
        let earliest = self.earliest_within(usize::MAX).expect("no more entries than that");
        (!self.is_empty()).then(|| earliest.max(self.now()))
    }

    /// Returns the earliest deadline that was set, even if it has passed, or [`Tick::MAX`] if
    /// no timer waits for one. Returns `None` rather than visit more than `budget` entries.
    pub(crate) fn earliest_within(&self, mut budget: usize) -> Option<Tick> {
        let mut earliest = Tick::MAX;
        // A postponed timer may be due later than timers in later slots.
        for (list, start) in self.lists() {
            for entry in self.entries.on_list(list) {
                if earliest <= Tick(start) {
                    return Some(earliest);
                }
                budget = budget.checked_sub(1)?;
                earliest = earliest.min(self.deadline_of(entry));
            }
        }
        Some(earliest)
    }

    /// Returns the lists that timers of the wheel are on, each with a tick before which none
    /// of its timers is due, in the order of these ticks.
    pub(super) fn lists(&self) -> impl Iterator<Item = (EntryIndex, u64)> + '_ {
        let own = [OVERDUE, DUE, IN_HEAP].into_iter().chain(self.cascading());
        let slots = self.slots.occupied().map(|list| (list, self.slots.start_of_part(list)));
        own.map(|list| (list, 0)).chain(slots)
    }
}

/// Returns what [`Wheel::iter`] does, but collects it into a vector first.
impl<'a, T> IntoIterator for &'a Wheel<T> {
    type Item = (TimerId, Tick, &'a T);
    type IntoIter = vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().collect::<Vec<_>>().into_iter()
    }
}

/// Returns every timer exactly once, in no particular order. Moves all of them into a vector.
impl<T> IntoIterator for Wheel<T> {
    type Item = (TimerId, Tick, T);
    type IntoIter = vec::IntoIter<(TimerId, Tick, T)>;

    fn into_iter(mut self) -> Self::IntoIter {
        let entries: Vec<_> = self.entries.all_timers().collect();
        let take = |at| (self.id(at), self.due_at(at), self.entries.take(at));
        entries.into_iter().map(take).collect::<Vec<_>>().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Returns a wheel that once held `peak` timers and now holds every hundredth
    /// of them, with the payloads that are left.
    fn after_a_peak(peak: u64) -> (Wheel<u64>, HashSet<u64>) {
        let mut wheel = Wheel::new(64);
        let ids: Vec<_> = (0..peak).map(|n| wheel.schedule_at(Tick(n + 9), n)).collect();
        let stay = |n: &u64| n % 100 == 0;
        for (n, id) in (0..).zip(ids).filter(|(n, _)| !stay(n)) {
            assert_eq!(wheel.cancel(id), Some(n));
        }
        (wheel, (0..peak).filter(stay).collect())
    }

    #[test]
    fn a_part_of_a_walk_passes_no_more_entries_than_its_budget_vacant_ones_included() {
        const BUDGET: usize = 100;
        let (wheel, stay) = after_a_peak(5_000);
        let (mut cursor, mut seen) = (Cursor::START, HashSet::new());
        while !wheel.is_at_end(cursor) {
            let (before, mut budget) = (cursor.0.max(wheel.entries.first), BUDGET);
            while let Some(entry) = wheel.next_entry(&mut cursor, &mut budget) {
                assert!(cursor.is_past(entry));
                assert!(seen.insert(*wheel.entries.payload(entry)), "seen twice");
            }
            let passed = ((cursor.0 - before) / Entries::<u64>::STRIDE) as usize;
            assert!(passed + budget == BUDGET && passed > 0, "{passed}");
        }
        assert_eq!(seen, stay);
    }

    #[test]
    fn a_wheel_that_becomes_empty_gives_its_memory_back() {
        let ways: [fn(&mut Wheel<u64>); 4] = [
            Wheel::clear,
            |wheel| while wheel.pop_due(Tick(1 << 60)).is_some() {},
            |wheel| _ = wheel.advance(Tick(1 << 60), usize::MAX, |_, _| ()),
            |wheel| {
                let ids: Vec<_> = wheel.iter().map(|(id, ..)| id).collect();
                ids.into_iter().for_each(|id| _ = wheel.cancel(id));
            },
        ];
        for empty in ways {
            let (mut wheel, _) = after_a_peak(10_000);
            (0..2).for_each(|n| _ = wheel.schedule_at(Tick(1 << 50), n));
            wheel.heap.reserve(10_000);
            empty(&mut wheel);
            assert_eq!(wheel.entries.bytes(), Wheel::<u64>::new(64).entries.bytes());
            assert_eq!(wheel.heap.capacity(), 0);
            wheel.assert_consistent();
        }
    }

    #[test]
    fn a_wheel_that_becomes_empty_keeps_a_little_memory() {
        // To make the heads of many slots anew takes longer than that little is worth.
        for (size, timers, is_little) in
            [(64, 4_080, true), (64, 4_096, false), (65_536, 4_096, true)]
        {
            let mut wheel = Wheel::new(size);
            (0..timers).for_each(|n| _ = wheel.schedule_at(Tick(n), n));
            let bytes = wheel.entries.bytes();
            while wheel.pop_due(Tick(5_000)).is_some() {}
            assert_eq!(wheel.entries.bytes() == bytes, is_little, "{timers}");
            wheel.shrink();
            assert!(wheel.entries.bytes() < bytes - 16 * timers as usize, "{timers}");
        }
    }

    /// What is little is told in bytes, not in timers.
    #[test]
    fn a_wheel_of_large_payloads_gives_their_memory_back() {
        let mut wheel = Wheel::new(64);
        let new = wheel.entries.bytes();
        (0..8).for_each(|n| _ = wheel.schedule_at(Tick(n), [n; 4_096]));
        assert!(wheel.entries.bytes() > new);
        while wheel.pop_due(Tick(9)).is_some() {}
        assert_eq!(wheel.entries.bytes(), new);
    }

    #[test]
    fn a_shrink_makes_no_wheel_larger() {
        let mut wheel = Wheel::new(64);
        wheel.schedule_at(Tick(1), [0; 4_096]);
        let bytes = wheel.entries.bytes();
        wheel.shrink();
        assert_eq!(wheel.entries.bytes(), bytes);
    }

    #[test]
    fn a_search_visits_no_more_entries_than_its_budget() {
        let mut wheel = Wheel::new(64);
        for n in 0..1_000 {
            wheel.schedule_at(Tick(100 - n % 2), n);
        }
        assert_eq!(wheel.earliest_within(999), None);
        assert_eq!(wheel.earliest_within(1_000), Some(Tick(99)));
    }

    #[test]
    fn a_search_goes_on_to_the_last_slot_of_a_level() {
        for size in [64, 10, 100] {
            let mut wheel = Wheel::new(size);
            let last = size as u64 - 1;
            let postponed = wheel.schedule_at(Tick(last - 1), ());
            wheel.schedule_at(Tick(last), ());
            assert!(wheel.reschedule(postponed, Tick(1_000_000)));
            assert_eq!(wheel.earliest_deadline(), Some(Tick(last)));
        }
    }

    #[test]
    fn a_search_ends_once_no_deadline_can_be_earlier() {
        let mut wheel = Wheel::new(64);
        let postponed = wheel.schedule_at(Tick(20), 0);
        for n in 0..1_000 {
            wheel.schedule_at(Tick(9 + n % 3), n);
        }
        assert!(wheel.reschedule(postponed, Tick(9_000)));
        assert_eq!(wheel.earliest_within(1), Some(Tick(9)));
        assert!(wheel.pop_due(Tick(8)).is_none());
        assert_eq!(wheel.earliest_deadline(), Some(Tick(9)));
    }
}
