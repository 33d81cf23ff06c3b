//! Re-filing an outer slot inward when its turn has come.
//!
//! The cascade of a large wheel mostly waits for entries that are not in a cache nearby.
//! The more lists it walks side by side, the less it waits. While it walks each lane from
//! the front, it also looks at the lane from the back, one entry at each step, so that
//! the second half of a lane is in a cache once the walk comes there.
//!
//! Whether an entry is the last one of its lane cannot be predicted. The first entries
//! of each lane are therefore taken without branches.

use super::Wheel;
use super::entries::{EntryIndex, LANES};
use super::geometry::Place;
use super::levels::{Below, List};
use super::work::{Cascade, Work};

/// The position of a cascade in each lane of its slot.
struct Lanes {
    /// A set bit for each unfinished lane.
    open: u32,
    head: [EntryIndex; LANES],
    front: [EntryIndex; LANES],
}

/// The largest number of timers whose entries are expected to be in a cache nearby.
const FEW: usize = if cfg!(test) { 16 } else { 1 << 15 };

/// The number of entries of each lane that are taken without branches.
const DEPTH: usize = 2;

const LEADERS: usize = LANES * DEPTH;

impl<T> Wheel<T> {
    /// Links the entry again that was the only one of its slot. Lower levels are
    /// empty, so the next turn is that of the entry's new slot, if that is inward.
    pub(super) fn refile_sole(&mut self, entry: EntryIndex, level: usize) {
        debug_assert!(self.levels.is_empty_before(level));
        let place = self.refile(entry, level, false);
        if place.level < level {
            self.note_next_turn(place.start);
        }
    }

    /// Re-files an outer slot inward, walking all its lanes side by side.
    pub(super) fn cascade(&mut self, cascade: Cascade, budget: &mut usize) {
        let Place { level, slot, .. } = cascade.place;
        let check_all = cascade.resumed || self.levels.is_unsorted(level, slot);
        if !self.cascade_within(level, slot, check_all, budget) {
            self.work = Work::Cascade(Cascade {
                resumed: true,
                ..cascade
            });
            return;
        }
        self.levels.set_unsorted(level, slot, false);
        let current = self.levels.geometry.slot(0, self.now);
        self.begin_slot(current, self.levels.occupied_lanes(0, current));
    }

    /// Re-files an outer slot within a budget. Returns whether the budget was enough.
    fn cascade_within(
        &mut self,
        level: usize,
        slot: usize,
        check: bool,
        budget: &mut usize,
    ) -> bool {
        let below = self.levels.below(level, self.now);
        let mut lanes = self.lanes_of(level, slot);
        if !check && *budget >= LEADERS {
            *budget -= self.refile_leaders(level, slot, below.as_ref(), &mut lanes);
        }
        let looks_ahead = self.len() > FEW;
        // The entries that were last looked at. They may be in other lanes by now.
        let mut back = lanes.head;
        while lanes.open != 0 {
            let mut round = lanes.open;
            while round != 0 {
                let lane = round.trailing_zeros() as usize;
                round &= round - 1;
                if *budget == 0 {
                    self.reattach(&lanes);
                    return false;
                }
                *budget -= 1;
                let entry = lanes.front[lane];
                let next = self.entries.next(entry);
                lanes.front[lane] = next;
                if next == lanes.head[lane] {
                    lanes.open &= !(1 << lane);
                    self.drain(next);
                } else {
                    self.entries.prefetch(next);
                    if looks_ahead {
                        back[lane] = self.entries.prev(back[lane]);
                        self.entries.prefetch(back[lane]);
                    }
                }
                self.refile_below(below.as_ref(), lane, entry, level, check);
            }
        }
        true
    }

    /// Re-files the first entries of each lane of a slot, and returns their number. In a
    /// sparse wheel these are most entries of the slot.
    fn refile_leaders(
        &mut self,
        level: usize,
        slot: usize,
        below: Option<&Below>,
        lanes: &mut Lanes,
    ) -> usize {
        let mut leaders = [self.overdue; LEADERS];
        let count = self.take_leaders(lanes, &mut leaders);
        self.levels.close_lanes(level, slot, lanes.open);
        for &entry in &leaders[..count] {
            let lane = entry.lane() & (self.levels.lanes() - 1);
            self.refile_below(below, lane, entry, level, false);
        }
        count
    }

    /// Takes the first entries off each lane's list. Those of a lane stand in order. The
    /// loops have fixed numbers of steps, and no step depends on the length of a lane.
    fn take_leaders(&mut self, lanes: &mut Lanes, leaders: &mut [EntryIndex; LEADERS]) -> usize {
        let mut count = 0;
        for lane in 0..self.levels.lanes() {
            let head = lanes.head[lane];
            let mut entry = lanes.front[lane];
            for _ in 0..DEPTH {
                leaders[count % LEADERS] = entry;
                count += usize::from(entry != head);
                let next = self.entries.next(entry);
                entry = if entry == head { head } else { next };
            }
            lanes.front[lane] = entry;
            lanes.open &= !(u32::from(entry == head) << lane);
            self.entries.cut_before(head, entry);
        }
        count
    }

    /// Links an entry of this lane at the level below, if it goes there, or else at its
    /// place relative to now.
    #[inline(always)]
    fn refile_below(
        &mut self,
        below: Option<&Below>,
        lane: usize,
        entry: EntryIndex,
        from_level: usize,
        check: bool,
    ) {
        match self.list_below(below, lane, entry) {
            Some(list) if check => {
                let entries = &mut self.entries;
                self.levels.append_to_checked(entries, list, entry);
            }
            Some(list) => self.levels.append_to(&mut self.entries, list, entry),
            None => _ = self.refile(entry, from_level, check),
        }
    }

    /// Returns the list of the level below for an entry of this lane, if the entry
    /// goes to that level.
    #[inline]
    fn list_below(&self, below: Option<&Below>, lane: usize, entry: EntryIndex) -> Option<List> {
        let below = below?;
        let slot = below.slot(self.entries.deadline(entry))?;
        Some(below.list(&self.entries, slot, lane))
    }

    /// Links an entry of a slot whose turn has come, at its place relative to now.
    #[inline(always)]
    fn refile(&mut self, entry: EntryIndex, from_level: usize, check: bool) -> Place {
        let place = self.place_from_now(entry);
        // An entry that was postponed beyond its slot may follow younger entries.
        if check || place.level >= from_level {
            self.refile_checked(entry, place);
        } else {
            self.levels.append(&mut self.entries, place, entry);
        }
        place
    }

    #[inline(never)]
    fn refile_checked(&mut self, entry: EntryIndex, place: Place) {
        match self.is_disarmed(entry) {
            true => self.relink(entry),
            false => self.levels.append_checked(&mut self.entries, place, entry),
        }
    }

    /// Returns the place for an entry from a slot whose turn has come.
    #[inline]
    fn place_from_now(&mut self, entry: EntryIndex) -> Place {
        let deadline = self.entries.deadline(entry);
        if deadline > self.now {
            return self.levels.place(self.now, deadline);
        }
        Place {
            level: 0,
            slot: self.levels.geometry.slot(0, self.now),
            start: self.now,
        }
    }

    fn lanes_of(&self, level: usize, slot: usize) -> Lanes {
        let mut lanes = Lanes {
            open: self.levels.occupied_lanes(level, slot),
            head: [self.overdue; LANES],
            front: [self.overdue; LANES],
        };
        for lane in 0..self.levels.lanes() {
            if let Some(head) = self.levels.head(&self.entries, level, slot, lane) {
                lanes.head[lane] = head;
                lanes.front[lane] = self.entries.next(head);
                self.entries.prefetch(lanes.front[lane]);
            }
        }
        lanes
    }

    /// Makes the lists of a slot begin where its cascade stopped.
    fn reattach(&mut self, lanes: &Lanes) {
        for lane in 0..self.levels.lanes() {
            if lanes.open >> lane & 1 == 1 {
                self.entries.cut_before(lanes.head[lane], lanes.front[lane]);
            }
        }
    }

    pub(super) fn drain(&mut self, list: EntryIndex) {
        self.entries.cut_before(list, list);
        let bitmap_index = self.entries.bitmap_index(list);
        self.levels.list_is_empty(bitmap_index);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Advance, Step};
    use super::*;
    use crate::tick::Tick;

    /// Schedules `count` timers into one outer slot, postpones every seventh, and
    /// asserts that all fire in order.
    fn fires_in_order(size: usize, count: u64) {
        let start = (size * size) as u64;
        let mut wheel = Wheel::new(size);
        let mut expected = Vec::new();
        for n in 0..count {
            let mut deadline = start + n * 7_919 % start;
            let id = wheel.schedule_at(Tick(deadline), n);
            if n % 7 == 0 {
                deadline += n % 5 * start;
                assert!(wheel.reschedule(id, Tick(deadline)));
            }
            expected.push((deadline, n));
        }
        expected.sort_unstable();
        let pop = || {
            wheel
                .pop_due(Tick(start * 9))
                .map(|e| (e.deadline.0, e.payload))
        };
        assert_eq!(std::iter::from_fn(pop).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_cascade_keeps_the_order_of_its_slot() {
        for size in [2, 20, 64, 100] {
            for count in (0..40).chain([1_000]) {
                fires_in_order(size, count);
            }
        }
    }

    /// Cascades the second slot of the third level and asserts that every entry is in
    /// the slot of its deadline, and that all fire in order.
    fn entries_go_to_their_places(size: u64, count: u64, budget: usize) {
        let (start, span) = (size * size, size * size * size);
        let mut wheel = Wheel::new(size as usize);
        // Every level has been needed.
        for tick in [1, size, start * 2, span] {
            wheel.schedule_at(Tick(tick), u64::MAX);
        }
        let mut expected = Vec::new();
        for n in 0..count {
            let deadline = start + n * n * 7_919 % start;
            let id = wheel.schedule_at(Tick(deadline), n);
            let later = deadline + [0, 0, 0, 1, size, start, span][n as usize % 7];
            assert!(wheel.reschedule(id, Tick(later)));
            expected.push((later, n));
        }
        expected.sort_unstable();
        let mut fired = Vec::new();
        while wheel.advance(Tick(start), budget, |wheel, e| {
            fired.push((e.deadline.0, e.payload));
            wheel.assert_consistent();
        }) == Advance::More
        {}
        let places: Vec<Place> = wheel
            .slots()
            .flat_map(|slot| {
                let deadlines = slot.timers.iter().map(|&id| wheel.deadline(id).unwrap());
                let places = deadlines.map(|to| wheel.geometry().place(start, to.0));
                let here = (slot.level, slot.index);
                places
                    .inspect(move |place| assert_eq!((place.level, place.slot), here))
                    .collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(places.len(), wheel.len());
        let pop = || {
            wheel
                .pop_due(Tick(9 * span))
                .map(|e| (e.deadline.0, e.payload))
        };
        fired.extend(std::iter::from_fn(pop));
        fired.retain(|&(_, n)| n != u64::MAX);
        assert_eq!(fired, expected);
    }

    #[test]
    fn every_entry_of_a_slot_goes_to_its_place() {
        for size in [4, 20, 64] {
            for count in [1, 2, 7, 50, 500] {
                for budget in [1, 10, LEADERS + 4, usize::MAX] {
                    entries_go_to_their_places(size, count, budget);
                }
            }
        }
    }

    #[test]
    fn an_entry_that_passes_a_level_is_not_linked_there() {
        let mut wheel = Wheel::new(64);
        for n in 1..50 {
            wheel.schedule_at(Tick(64 * 64 + n), n);
        }
        // Level 1 has been needed.
        let id = wheel.schedule_at(Tick(64), 0);
        assert_eq!(wheel.cancel(id), Some(0));
        let mut budget = 1_000;
        assert_eq!(wheel.step(64 * 64, &mut budget), Step::Done);
        assert_eq!(1_000 - budget, 49);
    }

    #[test]
    fn a_single_timer_of_an_outer_slot_keeps_its_place_in_the_order() {
        let mut wheel = Wheel::new(64);
        wheel.schedule_at(Tick(70), "older");
        assert!(wheel.pop_due(Tick(64)).is_none());
        wheel.schedule_at(Tick(70), "younger");
        wheel.schedule_at(Tick(128), "at its slot's start");
        let pop = || wheel.pop_due(Tick(128)).map(|e| (e.deadline.0, e.payload));
        let fired: Vec<_> = std::iter::from_fn(pop).collect();
        assert_eq!(
            fired,
            [(70, "older"), (70, "younger"), (128, "at its slot's start")]
        );
    }

    #[test]
    fn a_single_timer_that_was_postponed_beyond_its_slot_hides_no_other() {
        let mut wheel = Wheel::new(64);
        let postponed = wheel.schedule_at(Tick(70), 0);
        wheel.schedule_at(Tick(130), 1);
        assert!(wheel.reschedule(postponed, Tick(5_000)));
        assert!(wheel.pop_due(Tick(100)).is_none());
        assert_eq!(wheel.next_wakeup(), Some(Tick(128)));
        let fired = [(); 2].map(|()| wheel.pop_due(Tick(5_000)).unwrap().deadline);
        assert_eq!(fired, [Tick(130), Tick(5_000)]);
    }

    /// Postpones two timers of one lane from slots 1 and 2 of level 1 to slot 3,
    /// where the younger one arrives first.
    fn postpones_beyond_their_slots(budget: usize) {
        let mut wheel = Wheel::new(64);
        let older = wheel.schedule_at(Tick(130), 0);
        for n in 1..LANES {
            wheel.schedule_at(Tick(1_000), n);
        }
        let younger = wheel.schedule_at(Tick(70), LANES);
        assert!(wheel.reschedule(older, Tick(200)) && wheel.reschedule(younger, Tick(200)));
        assert_eq!(wheel.step(64, &mut { budget }), Step::Done);
        assert!(!wheel.levels.is_unsorted(1, 3));
        assert_eq!(wheel.step(128, &mut { budget }), Step::Done);
        assert!(wheel.levels.is_unsorted(1, 3));
        assert_eq!(wheel.in_slot(1, 3).count(), 2);
    }

    #[test]
    fn a_timer_that_was_postponed_beyond_its_slot_marks_the_slot_that_it_comes_to() {
        postpones_beyond_their_slots(usize::MAX);
        postpones_beyond_their_slots(10);
    }
}
