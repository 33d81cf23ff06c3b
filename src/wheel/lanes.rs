//! The number of lanes, which follows the number of timers.
//!
//! A small wheel has one lane per slot. Its entries are in the cache, so that more
//! lanes save nothing, while their heads would take more memory than the timers. If
//! the storage grows and holds more than [`MOST_IN_ONE_LANE`] timers, all slots get
//! all their lanes at once. Shrinking goes back to one lane.
//!
//! The change relinks every timer, of which there are few. No timer moves to another
//! entry, so that indices, ids and walks stay valid. Lists outside the levels keep
//! their entries.

use super::Wheel;
use super::entries::EntryIndex;
use super::work::{Fronts, Work};

/// The largest number of timers for which one lane per slot is enough. In unit
/// tests it is small and looked at more often, so that they see the change.
const MOST_IN_ONE_LANE: usize = if cfg!(test) { 16 } else { 4_096 };

impl<T> Wheel<T> {
    /// Adds a vacant entry, which the caller fills, because there is none.
    pub(super) fn add_vacant(&mut self) -> EntryIndex {
        match self.may_widen() {
            true => self.add_vacant_to_more(),
            false => self.entries.add_vacant(),
        }
    }

    /// Returns whether to look at the number of timers before another one is stored.
    #[inline]
    pub(super) fn may_widen(&self) -> bool {
        cfg!(test) || self.entries.is_full()
    }

    #[cold]
    #[inline(never)]
    fn add_vacant_to_more(&mut self) -> EntryIndex {
        self.widen_for(self.len() + 1);
        // The heads of the single lanes may have become vacant.
        let vacant = self.entries.take_vacant();
        vacant.unwrap_or_else(|| self.entries.add_vacant())
    }

    /// Gives the slots all their lanes if a wheel of `timers` timers needs them.
    #[cold]
    pub(super) fn widen_for(&mut self, timers: usize) {
        if timers > MOST_IN_ONE_LANE && self.levels.can_widen() {
            self.levels.widen(&mut self.entries);
            self.look_up_fronts();
        }
    }

    /// Goes back to one lane per slot if the wheel holds so few timers that they can
    /// double before it needs more. If shrinking then fails to remove the vacant
    /// entries, [`Wheel::widen_for`] gives the lanes back.
    pub(super) fn narrow(&mut self) {
        if self.len() <= MOST_IN_ONE_LANE / 2 && self.levels.can_narrow() {
            self.levels.narrow(&mut self.entries);
            self.look_up_fronts();
        }
    }

    /// Notes the fronts of the slot that is being fired, whose heads are others now.
    fn look_up_fronts(&mut self) {
        self.fronts = Fronts::none(self.overdue);
        if self.work == Work::Fire {
            let slot = self.levels.geometry.slot(0, self.now);
            let open = self.levels.occupied_lanes(0, slot);
            if let Some(first) = self.levels.head(&self.entries, 0, slot, 0) {
                self.note_fronts(first, open);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TimerId;
    use crate::tick::Tick;
    use crate::wheel::entries::LANES;

    const FEW: u64 = MOST_IN_ONE_LANE as u64;

    /// Adds `count` timers to the same few slots of several levels.
    fn add(wheel: &mut Wheel<u64>, count: u64) -> Vec<TimerId> {
        let deadline = |n: u64| wheel.now().after(1 + n % 3 * 70 + n % 2 * 5_000);
        let deadlines: Vec<Tick> = (0..count).map(deadline).collect();
        let ids = deadlines.into_iter().map(|at| wheel.schedule_at(at, at.0));
        ids.collect()
    }

    /// Pops all timers, and asserts that they fire in order, each at its tick.
    fn pop_all_in_order(wheel: &mut Wheel<u64>) -> usize {
        let mut popped = Vec::new();
        while let Some(expired) = wheel.pop_due(Tick(1_000_000)) {
            assert_eq!(expired.deadline.0, expired.payload);
            popped.push((expired.deadline, expired.id().sequence()));
        }
        assert!(popped.is_sorted());
        popped.len()
    }

    #[test]
    fn a_wheel_gets_lanes_with_the_timer_that_needs_them() {
        for size in [2, 20, 64] {
            let mut wheel = Wheel::new(size);
            add(&mut wheel, FEW);
            assert_eq!(wheel.levels.lanes(), 1);
            wheel.assert_consistent();
            add(&mut wheel, 1);
            assert_eq!(wheel.levels.lanes(), LANES);
            wheel.assert_consistent();
            assert_eq!(pop_all_in_order(&mut wheel), FEW as usize + 1);
        }
    }

    #[test]
    fn a_wheel_of_many_slots_keeps_its_one_lane() {
        let mut wheel = Wheel::new(100);
        add(&mut wheel, 2 * FEW);
        assert_eq!(wheel.levels.lanes(), 1);
        wheel.shrink();
        wheel.assert_consistent();
        assert_eq!(pop_all_in_order(&mut wheel), 2 * FEW as usize);
    }

    #[test]
    fn the_number_of_lanes_changes_while_a_slot_is_cascaded_or_fired() {
        for budget in 1..3 * FEW as usize {
            let mut wheel = Wheel::new(64);
            let ids = add(&mut wheel, FEW);
            // A postponed timer makes the slot that it comes to unsorted.
            assert!(wheel.reschedule(ids[2], Tick(142)));
            *wheel.get_mut(ids[2]).unwrap() = 142;
            let mut fired = Vec::new();
            let fire = |_: &mut Wheel<u64>, e: crate::wheel::Expired<u64>| fired.push(e.id());
            let _ = wheel.advance(Tick(141), budget, fire);
            let now = wheel.now();
            let more: Vec<_> = (0..FEW)
                .map(|_| wheel.schedule_at(now.after(2), now.0 + 2))
                .collect();
            assert!(more.iter().all(|&id| wheel.contains(id)));
            wheel.assert_consistent();
            let widened = wheel.levels.lanes();
            assert_eq!(widened == LANES, wheel.len() > FEW as usize);
            for id in more {
                wheel.cancel(id);
            }
            wheel.shrink();
            wheel.assert_consistent();
            assert_eq!(fired.len() + pop_all_in_order(&mut wheel), FEW as usize);
        }
    }

    #[test]
    fn shrinking_goes_back_to_one_lane() {
        let mut wheel = Wheel::new(64);
        let ids = add(&mut wheel, 2 * FEW);
        let kept = FEW / 2;
        for id in &ids[..2 * FEW as usize - kept as usize - 1] {
            wheel.cancel(*id);
        }
        wheel.shrink();
        assert_eq!(wheel.levels.lanes(), LANES);
        wheel.cancel(ids[2 * FEW as usize - 1]);
        let used = wheel.entries.used();
        wheel.shrink();
        assert_eq!(wheel.levels.lanes(), 1);
        assert!(wheel.entries.used() < used / 2);
        wheel.assert_consistent();
        assert_eq!(pop_all_in_order(&mut wheel), kept as usize);
    }

    #[test]
    fn a_reserved_wheel_has_its_lanes() {
        let mut wheel = Wheel::<u64>::new(64);
        wheel.reserve(FEW as usize);
        assert_eq!(wheel.levels.lanes(), 1);
        wheel.reserve(FEW as usize + 1);
        assert_eq!(wheel.levels.lanes(), LANES);
        let capacity = wheel.entries.capacity();
        for n in 0..=FEW {
            wheel.schedule_at(Tick(1 << n), n);
        }
        assert_eq!(wheel.entries.capacity(), capacity);
    }
}
