//! The fill of a wheel's levels, for viewers: slots, hands, and how many timers wait
//! where.
//!
//! A slot keeps no count, because every schedule and every cancel would have to maintain
//! it. A count is therefore a walk along the slot's lists. The caller bounds the walk,
//! and the bitmaps alone answer where the slot's lanes suffice.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::Wheel;

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

impl<T> Wheel<T> {
    /// Returns the levels that deadlines have needed so far, from the finest on, with
    /// the number of timers in each slot. Counts at most `most` timers of a slot; with a
    /// `most` of 1, a count says whether the slot is occupied.
    ///
    /// Due timers that are waiting to be taken are not in any slot. [`Wheel::slots`]
    /// names the timers in each slot.
    ///
    /// # Cost
    /// Reads a few words per slot, and at most `most` entries of it. A `most` of 1
    /// reads no entry.
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
        let size = self.geometry().size();
        for (index, level) in levels.iter_mut().enumerate() {
            level.timers = vec![0; size];
            self.count_in_slots(index, 0..size, most, &mut level.timers);
        }
        levels
    }

    /// Returns the same levels, without room for counts: the caller may hold a lock, and
    /// the room grows with the wheel's size.
    pub(crate) fn uncounted_levels(&self) -> Vec<Level> {
        let level = |level| Level {
            slot_ticks: self.geometry().unit(level),
            hand: self.geometry().slot(level, self.now),
            timers: Vec::new(),
        };
        (0..self.needed_levels()).map(level).collect()
    }

    /// Returns the number of levels up to the last one that has list heads, at least one.
    fn needed_levels(&self) -> usize {
        let is_needed = |&level: &usize| self.levels.head(&self.entries, level, 0, 0).is_some();
        let last = (0..self.geometry().levels()).rev().find(is_needed);
        last.map_or(1, |last| last + 1)
    }

    /// Counts the timers in some slots of a level, each up to `most`.
    pub(crate) fn count_in_slots(
        &self,
        level: usize,
        slots: Range<usize>,
        most: usize,
        counts: &mut [usize],
    ) {
        for slot in slots {
            counts[slot] = self.count_in_slot(level, slot, most);
        }
    }

    fn count_in_slot(&self, level: usize, slot: usize, most: usize) -> usize {
        // Each occupied lane has a timer at least.
        let lanes = self.levels.occupied_lanes(level, slot).count_ones() as usize;
        match lanes {
            0 => 0,
            _ if lanes >= most => most,
            _ => self.in_slot(level, slot).take(most).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tick::Tick;

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
    fn levels_count_what_slots_name() {
        for size in [2, 20, 64, 100, 256] {
            let wheel = filled(size);
            for most in [0, 1, 2, 7, 8, 9, 50, usize::MAX] {
                let levels = wheel.levels(most);
                let mut named = wheel.uncounted_levels();
                named
                    .iter_mut()
                    .for_each(|level| level.timers = vec![0; size]);
                for slot in wheel.slots() {
                    named[slot.level].timers[slot.index] = slot.timers.len().min(most);
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
    fn a_wheel_without_timers_has_one_level() {
        let levels = Wheel::<()>::new(64).levels(1);
        assert_eq!(levels.len(), 1);
        assert_eq!(levels[0].timers, [0; 64]);
    }
}
