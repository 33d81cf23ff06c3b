//! Firing the slot whose turn has come, oldest timer first.
//!
//! Unless a slot is marked as unsorted, each of its lanes is in order, and the
//! lanes are merged. A marked slot is sorted first.

use core::cmp::Reverse;

use super::Wheel;
use super::entries::EntryIndex;
use super::work::{Fronts, HeapEntry, SORTING, Work};

impl<T> Wheel<T> {
    /// Begins to fire the slot of the current tick.
    pub(super) fn begin_slot(&mut self) {
        let slot = self.levels.geometry.slot(0, self.now);
        if self.levels.is_unsorted(0, slot) {
            self.work = Work::Sort;
            return;
        }
        self.work = Work::Fire;
        self.note_fronts(slot);
    }

    #[inline]
    pub(super) fn note_fronts(&mut self, slot: usize) {
        let Some(first) = self.levels.head(&self.entries, 0, slot, 0) else {
            self.fronts = Fronts::none(self.overdue);
            return;
        };
        self.fronts = Fronts::none(first);
        let mut open = self.levels.occupied_lanes(0, slot);
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
        self.fronts.note(lane, sequence);
        self.entries.prefetch(self.entries.next(front));
    }

    /// Takes the oldest timer out of the current slot.
    pub(super) fn fire_slot(&mut self, budget: &mut usize) -> Option<EntryIndex> {
        while *budget > 0 {
            let Some(entry) = self.take_oldest() else {
                self.work = Work::Nothing;
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

    #[inline]
    fn take_oldest(&mut self) -> Option<EntryIndex> {
        while let Some((lane, sequence)) = self.fronts.oldest() {
            let head = self.entries.nth(self.fronts.first(), lane as u32);
            let front = self.entries.next(head);
            if front == head {
                self.fronts.close(lane);
            } else if self.entries.stamp(front).sequence() != sequence {
                self.note_front(lane, front);
            } else {
                self.take_front(lane, head, front);
                return Some(front);
            }
        }
        None
    }

    #[inline]
    fn take_front(&mut self, lane: usize, head: EntryIndex, front: EntryIndex) {
        let next = self.entries.next(front);
        self.entries.cut_before(head, next);
        if next == head {
            self.fronts.close(lane);
            let bitmap_index = self.entries.bitmap_index(head);
            self.levels.list_is_empty(bitmap_index);
        } else {
            self.note_front(lane, next);
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

        // Each entry is touched twice: on its way into the heap and on its way out.
        let mut sorted = with_an_unsorted_slot(Tick(9));
        (0..91).for_each(|n| schedule(&mut sorted, Tick(9), n));
        assert_eq!(calls_to_fire(&mut sorted, Tick(9)), 20);
    }
}
