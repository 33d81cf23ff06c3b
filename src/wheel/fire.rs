//! Firing the slot whose turn has come, oldest timer first.
//!
//! Unless a slot is marked as unsorted, each of its lanes is in order, and the
//! lanes are merged. A marked slot is sorted first.

use core::cmp::Reverse;

use super::Wheel;
use super::entries::EntryIndex;
use super::work::{HeapEntry, SORTING, Work};

impl<T> Wheel<T> {
    /// Begins to fire the slot of the current tick, whose occupied lanes are `open`.
    pub(super) fn begin_slot(&mut self, slot: usize, open: u32) {
        if self.levels.is_unsorted(0, slot) {
            self.work = Work::Sort;
            return;
        }
        let first = self.levels.head(&self.entries, 0, slot, 0);
        match first.filter(|_| open != 0) {
            Some(first) => self.note_fronts(first, open),
            None => self.work = Work::Nothing,
        }
    }

    /// Returns the entry of a slot that has exactly one, and the entry's list. The
    /// slot's occupied lanes are `open`.
    #[inline(always)]
    pub(super) fn sole_in(
        &self,
        level: usize,
        slot: usize,
        open: u32,
    ) -> Option<(EntryIndex, EntryIndex)> {
        if !open.is_power_of_two() {
            return None;
        }
        let lane = open.trailing_zeros() as usize;
        let head = self.levels.head(&self.entries, level, slot, lane)?;
        Some((head, self.entries.sole(head)?))
    }

    /// Takes the only entry out of a slot whose turn has come. Returns the entry if
    /// its timer is due, and otherwise links it again.
    #[inline]
    pub(super) fn take_sole(
        &mut self,
        level: usize,
        head: EntryIndex,
        entry: EntryIndex,
    ) -> Option<EntryIndex> {
        if self.is_due(entry) {
            self.drain_last(head);
            return Some(entry);
        }
        self.drain(head);
        self.refile_sole(entry, level);
        None
    }

    /// Notes that no entry of the current slot is left, and when the next slot's
    /// turn comes.
    #[inline(never)]
    pub(super) fn end_slot(&mut self) {
        self.work = Work::Nothing;
        self.note_next_turn(self.levels.next_start(self.now));
    }

    /// Empties the last list of the current slot that has an entry, and notes when the
    /// next slot's turn comes. Reads the bitmaps before it stores to one of them, as
    /// [`Levels::innermost_turn`](super::levels::Levels::innermost_turn) does.
    #[inline(never)]
    pub(super) fn drain_last(&mut self, head: EntryIndex) {
        let others = self.levels.innermost_but(self.now);
        self.drain(head);
        self.work = Work::Nothing;
        let start = match others {
            Some(others) => self.levels.next_start_after(self.now, others),
            None => self.levels.next_start(self.now),
        };
        self.note_next_turn(start);
    }

    /// Notes when the next slot's turn comes, unless overdue timers come first.
    #[inline]
    pub(super) fn note_next_turn(&mut self, start: u64) {
        if !self.has_overdue() {
            self.next_turn = start;
        }
    }

    /// Notes the fronts of the slot that is being fired. Those of a single lane need no
    /// keys, because they are not compared.
    pub(super) fn note_fronts(&mut self, first: EntryIndex, lanes: u32) {
        self.work = Work::Fire;
        self.fronts.begin(first, lanes);
        if self.fronts.sole_lane().is_some() {
            return;
        }
        let mut open = lanes;
        while open != 0 {
            let lane = open.trailing_zeros() as usize;
            open &= open - 1;
            let head = self.entries.nth(first, lane as u32);
            let front = self.entries.next(head);
            self.note_front(lane, front);
        }
    }

    #[inline]
    fn note_front(&mut self, lane: usize, front: EntryIndex) {
        let sequence = self.entries.stamp(front).sequence();
        let behind = self.read_behind(front);
        self.fronts.note(lane, sequence, behind);
    }

    /// Returns the sequence number of the entry after `front`, which may be the list's
    /// head, and prefetches the next entry but one. It will soon be read, because two
    /// timers of one lane often follow each other.
    #[inline]
    fn read_behind(&self, front: EntryIndex) -> u64 {
        let behind = self.entries.next(front);
        self.entries.prefetch(self.entries.next(behind));
        self.entries.stamp(behind).sequence()
    }

    /// Takes the oldest timer out of the slot that is being fired, if it is known and
    /// due. [`Wheel::fire_slot`] does the rest.
    #[inline(always)]
    pub(super) fn fire_front(&mut self, budget: &mut usize) -> Option<EntryIndex> {
        if *budget == 0 {
            return None;
        }
        match self.fronts.sole_lane() {
            Some(lane) => self.fire_from_sole(lane, budget),
            None => self.fire_oldest(budget),
        }
    }

    /// Takes the first timer of the only lane that may have one. A lane is in order, so
    /// no sequence number is read.
    #[inline(always)]
    fn fire_from_sole(&mut self, lane: usize, budget: &mut usize) -> Option<EntryIndex> {
        let head = self.entries.nth(self.fronts.first(), lane as u32);
        let front = self.entries.next(head);
        if front == head || !self.is_due(front) {
            return None;
        }
        *budget -= 1;
        let next = self.entries.next(front);
        if next == head {
            self.fronts.forget();
            self.drain_last(head);
        } else {
            self.entries.cut_before(head, next);
            self.entries.prefetch(self.entries.next(next));
        }
        Some(front)
    }

    /// Takes the oldest timer of several lanes. Another lane may still have a front, so
    /// the slot is not over.
    #[inline(always)]
    fn fire_oldest(&mut self, budget: &mut usize) -> Option<EntryIndex> {
        let (lane, sequence) = self.fronts.oldest();
        let head = self.entries.nth(self.fronts.first(), lane as u32);
        let front = self.entries.next(head);
        // The sequence number of a list's head is no timer's.
        if self.entries.stamp(front).sequence() != sequence || !self.is_due(front) {
            return None;
        }
        *budget -= 1;
        self.take_front(lane, head, front);
        Some(front)
    }

    /// Takes the oldest timer out of the current slot. Passes over timers that were
    /// cancelled or rescheduled.
    pub(super) fn fire_slot(&mut self, budget: &mut usize) -> Option<EntryIndex> {
        while *budget > 0 {
            let Some(entry) = self.take_oldest() else {
                self.end_slot();
                return None;
            };
            *budget -= 1;
            if self.is_due(entry) {
                return Some(entry);
            }
            self.relink(entry);
        }
        None
    }

    fn take_oldest(&mut self) -> Option<EntryIndex> {
        while !self.fronts.are_none() {
            let sole = self.fronts.sole_lane();
            // The front of a sole lane is the oldest, whatever its sequence number.
            let (lane, sequence) = sole.map_or_else(|| self.fronts.oldest(), |lane| (lane, 0));
            let head = self.entries.nth(self.fronts.first(), lane as u32);
            let front = self.entries.next(head);
            if front == head {
                self.fronts.close(lane);
            } else if sole.is_none() && self.entries.stamp(front).sequence() != sequence {
                self.note_front(lane, front);
            } else {
                self.take_front(lane, head, front);
                return Some(front);
            }
        }
        None
    }

    #[inline(always)]
    fn take_front(&mut self, lane: usize, head: EntryIndex, front: EntryIndex) {
        let next = self.entries.next(front);
        if next == head {
            self.fronts.close(lane);
            self.drain(head);
        } else {
            self.entries.cut_before(head, next);
            let behind = self.read_behind(next);
            self.fronts.pass(lane, behind);
        }
    }

    /// Moves the whole slot into a heap, a bounded part at a time, and then takes
    /// the oldest timer out of the heap. Meanwhile the entries stay on a list, so
    /// that they can be cancelled and rescheduled like any other entries.
    pub(super) fn sort(&mut self, budget: &mut usize) -> Option<EntryIndex> {
        while *budget > 0 {
            if let Some(entry) = self.first_in_current_slot() {
                *budget -= 1;
                self.gather(entry);
            } else if let Some(Reverse(oldest)) = self.heap.pop() {
                *budget -= 1;
                let taken = self.take_sorted(oldest);
                if taken.is_some() {
                    return taken;
                }
            } else {
                let slot = self.levels.geometry.slot(0, self.now);
                self.levels.set_unsorted(0, slot, false);
                self.work = Work::Nothing;
                return None;
            }
        }
        None
    }

    fn first_in_current_slot(&self) -> Option<EntryIndex> {
        let slot = self.levels.geometry.slot(0, self.now);
        let open = self.levels.occupied_lanes(0, slot);
        let lane = (open != 0).then(|| open.trailing_zeros() as usize)?;
        let head = self.levels.head(&self.entries, 0, slot, lane)?;
        Some(self.entries.next(head))
    }

    fn gather(&mut self, entry: EntryIndex) {
        self.unlink(entry);
        if !self.is_due(entry) {
            return self.relink(entry);
        }
        self.entries.append(self.sort_list, entry);
        let stored = self.entries.get_mut(entry);
        stored.mark(SORTING);
        let sequence = stored.stamp().sequence();
        let index = entry.index();
        self.heap.push(Reverse(HeapEntry { sequence, index }));
    }

    /// Takes a sorted entry off its list, unless its timer has ended or has been
    /// rescheduled meanwhile.
    fn take_sorted(&mut self, next: HeapEntry) -> Option<EntryIndex> {
        let entry = self.entries.find(next.index, next.sequence)?;
        let stored = self.entries.get_mut(entry);
        if stored.stamp().tag() & SORTING == 0 {
            return None;
        }
        stored.unmark(SORTING);
        self.unlink(entry);
        if !self.is_due(entry) {
            self.relink(entry);
            return None;
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tick::Tick;
    use crate::wheel::Advance;
    use crate::wheel::entries::LANES;

    /// Creates a wheel in which timer 0 was postponed to `tick`, behind a younger
    /// timer of its lane.
    fn with_an_unsorted_slot(tick: Tick) -> Wheel<u64> {
        let mut wheel = Wheel::new(64);
        let oldest = wheel.schedule_at(Tick(3), 0);
        for n in 1..=LANES as u64 {
            wheel.schedule_at(tick, n);
        }
        assert!(wheel.reschedule(oldest, tick));
        assert!(wheel.pop_due(Tick(5)).is_none());
        wheel
    }

    #[test]
    fn a_single_timer_that_was_postponed_does_not_fire_in_its_old_slot() {
        for later in [9, 500, 5_000] {
            let mut wheel = Wheel::new(64);
            let id = wheel.schedule_at(Tick(5), 0);
            wheel.schedule_at(Tick(400), 1);
            assert!(wheel.reschedule(id, Tick(later)));
            assert!(wheel.pop_due(Tick(8)).is_none());
            wheel.assert_consistent();
            let mut expected = [(later, 0), (400, 1)];
            expected.sort_unstable();
            let fired = [(); 2].map(|()| wheel.pop_due(Tick(6_000)).unwrap());
            assert_eq!(fired.map(|e| (e.deadline.0, e.payload)), expected);
        }
    }

    #[test]
    fn the_next_turn_is_known_as_soon_as_the_last_timer_of_a_slot_has_fired() {
        let mut wheel = Wheel::new(64);
        let ticks = [5, 5, 40, 130, 150, 170, 5_000].into_iter();
        for (n, tick) in (0..).zip(ticks) {
            schedule(&mut wheel, Tick(tick), n);
        }
        let turns = [0, 40, 128, 150, 170, 4_096].into_iter().enumerate();
        for (n, turn) in turns {
            let fired = wheel.pop_due(Tick(1_000)).unwrap();
            assert_eq!((fired.payload, wheel.next_turn), (n as u64, turn));
        }
        assert!(wheel.pop_due(Tick(4_096)).is_none());
        assert_eq!(wheel.next_turn, 4_992);
    }

    #[test]
    fn a_timer_that_becomes_overdue_before_a_slot_is_over_fires_after_it() {
        let mut wheel = Wheel::new(64);
        schedule(&mut wheel, Tick(5), 0);
        schedule(&mut wheel, Tick(5), 1);
        assert_eq!(wheel.pop_due(Tick(5)).unwrap().payload, 0);
        schedule(&mut wheel, Tick(1), 2);
        assert_eq!(pop_all(&mut wheel, Tick(5)), [1, 2]);
    }

    fn pop_all(wheel: &mut Wheel<u64>, to: Tick) -> Vec<u64> {
        let pop = || wheel.pop_due(to).map(|expired| expired.payload);
        std::iter::from_fn(pop).collect()
    }

    #[test]
    fn a_slot_is_marked_as_unsorted_until_it_is_sorted() {
        let mut wheel = with_an_unsorted_slot(Tick(9));
        assert!(wheel.levels.is_unsorted(0, 9));
        assert!(
            pop_all(&mut wheel, Tick(9))
                .into_iter()
                .eq(0..=LANES as u64)
        );
        assert!(!wheel.levels.is_unsorted(0, 9));
    }

    #[test]
    fn a_cascade_of_a_marked_slot_marks_the_inner_slot() {
        let mut wheel = with_an_unsorted_slot(Tick(70));
        assert!(wheel.levels.is_unsorted(1, 1));
        assert!(wheel.pop_due(Tick(64)).is_none());
        assert!(!wheel.levels.is_unsorted(1, 1) && wheel.levels.is_unsorted(0, 6));
        assert!(
            pop_all(&mut wheel, Tick(70))
                .into_iter()
                .eq(0..=LANES as u64)
        );
    }

    #[test]
    fn timers_that_are_being_sorted_count_for_the_earliest_deadline() {
        let mut wheel = with_an_unsorted_slot(Tick(9));
        let all = wheel.len();
        let paused = wheel.advance(Tick(9), all, |_, _| unreachable!("all are gathered first"));
        assert_eq!(paused, Advance::More);
        assert_eq!(wheel.earliest_deadline(), Some(Tick(9)));
        assert_eq!(wheel.next_wakeup(), Some(Tick(9)));
    }

    #[test]
    fn a_timer_that_is_rescheduled_while_its_slot_is_sorted_fires_in_its_new_place() {
        let mut wheel = with_an_unsorted_slot(Tick(9));
        let all = wheel.len();
        let paused = wheel.advance(Tick(9), all, |_, _| unreachable!("all are gathered first"));
        assert_eq!(paused, Advance::More);
        let moved = wheel.iter().find(|&(_, _, &n)| n == 1);
        let moved = moved.map(|(id, ..)| id).unwrap();
        assert!(wheel.reschedule(moved, Tick(3)));
        let last = LANES as u64;
        let expected = [0].into_iter().chain(2..=last).chain([1]);
        assert!(pop_all(&mut wheel, Tick(9)).into_iter().eq(expected));
    }

    fn schedule(wheel: &mut Wheel<u64>, tick: Tick, n: u64) {
        wheel.schedule_at(tick, n);
    }

    /// Returns the number of calls of `advance`, each with a budget of ten, that
    /// fire all timers by `to`.
    fn calls_to_fire(wheel: &mut Wheel<u64>, to: Tick) -> usize {
        let mut calls = 1;
        while wheel.advance(to, 10, |_, _| {}) == Advance::More {
            calls += 1;
        }
        assert!(wheel.is_empty());
        calls
    }

    #[test]
    fn a_budget_counts_every_entry_that_is_touched() {
        let mut fired = Wheel::new(64);
        (0..100).for_each(|n| schedule(&mut fired, Tick(9), n));
        assert_eq!(calls_to_fire(&mut fired, Tick(9)), 10);

        let mut cascaded = Wheel::new(64);
        (0..100).for_each(|n| schedule(&mut cascaded, Tick(70), n));
        assert_eq!(calls_to_fire(&mut cascaded, Tick(70)), 20);

        let mut single = Wheel::new(64);
        schedule(&mut single, Tick(5_000), 0);
        for more in [Advance::More, Advance::More, Advance::Done] {
            assert_eq!(single.advance(Tick(6_000), 1, |_, _| {}), more);
        }

        // Each entry is touched twice: on its way into the heap and on its way out.
        let mut sorted = with_an_unsorted_slot(Tick(9));
        (0..91).for_each(|n| schedule(&mut sorted, Tick(9), n));
        assert_eq!(calls_to_fire(&mut sorted, Tick(9)), 20);
    }
}
