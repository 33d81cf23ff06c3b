//! Inspecting a wheel: the timers in each slot, and the wheel's invariants.

use alloc::vec::Vec;

use super::Wheel;
use crate::id::TimerId;
use crate::tick::Tick;

/// An occupied slot, from [`Wheel::slots`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Slot {
    /// The level, counted from 0: slots of level k cover `size^k` ticks.
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
        let levels = 0..self.geometry().levels();
        let places = levels.flat_map(|level| self.levels.occupied_in_level(level, self.now));
        places.map(|place| Slot {
            level: place.level,
            index: place.slot,
            start: Tick(place.start),
            timers: self
                .in_slot(place.level, place.slot)
                .map(|entry| self.id(entry))
                .collect(),
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
        let mut seen = elsewhere;
        let size = self.geometry().size();
        for level in 0..self.geometry().levels() {
            for slot in 0..size {
                let occupied = self.levels.occupied_lanes(level, slot);
                for lane in 0..self.levels.lanes() {
                    let Some(head) = self.levels.head(&self.entries, level, slot, lane) else {
                        assert_eq!(occupied, 0);
                        continue;
                    };
                    let timers: Vec<_> = self.on_list(head).collect();
                    assert_eq!(occupied >> lane & 1 == 1, !timers.is_empty());
                    let stamps = timers.iter().map(|&entry| self.entries.stamp(entry));
                    assert!(self.levels.is_unsorted(level, slot) || stamps.is_sorted());
                    for entry in timers {
                        seen += 1;
                        assert_eq!(entry.lane() % self.levels.lanes(), lane);
                        assert_eq!(self.entries.next(self.entries.prev(entry)), entry);
                    }
                }
            }
        }
        for list in [self.overdue, self.round] {
            for entry in self.on_list(list) {
                seen += 1;
                assert!(self.is_due(entry), "an overdue timer is due");
                assert_eq!(self.next_turn, 0);
            }
        }
        seen += self.on_list(self.sort_list).count();
        assert_eq!(seen, self.len());
        self.entries.assert_consistent();
        for place in (0..self.geometry().levels())
            .flat_map(|level| self.levels.occupied_in_level(level, self.now))
        {
            assert!(self.next_turn <= place.start);
            for entry in self.in_slot(place.level, place.slot) {
                assert!(self.linked_for(entry) >= place.start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel::KeyedWheel;

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
    }
}
