//! Timers that are put off for ever and armed again without touching a list.
//!
//! A timer at [`Tick::MAX`] never fires, so it is *disarmed*. Its entry stays in the
//! slot where it is, as that of any postponed timer does. When it is armed again, a
//! store is enough if the slot's turn comes before the new deadline. To know that,
//! the entry keeps the deadline that it had, with the highest bit set. It is then
//! later than the present, and the slot is left as for any postponement. A bit in the
//! tag says that the timer's deadline is [`Tick::MAX`].
//!
//! When the slot's turn comes, the entry is linked again for [`Tick::MAX`], and its old
//! deadline is forgotten.

use super::Wheel;
use super::entries::EntryIndex;
use crate::tick::Tick;

/// The tag bit of a disarmed timer that is still in the slot of its old deadline.
pub(super) const DISARMED: u16 = 1 << 2;

/// The first tick with the highest bit set. A timer of this tick or a later one is
/// disarmed without the tag bit, and is linked again when it is armed.
pub(super) const FAR: u64 = 1 << 63;

impl<T> Wheel<T> {
    /// Does what [`Wheel::postpone`] does, if the old deadline or the new one is `FAR`
    /// or later. Returns `false` for other deadlines.
    #[inline]
    pub(crate) fn disarm_or_arm(&mut self, entry: EntryIndex, deadline: u64) -> bool {
        let is_far = (self.entries.deadline(entry) | deadline) >= FAR;
        let old = self.linked_for(entry);
        let is_enough = is_far && old <= deadline && old > self.now;
        if is_enough {
            self.set_deadline(entry, Tick(deadline));
            if deadline == Tick::MAX.0 && old < FAR {
                let stored = self.entries.get_mut(entry);
                stored.deadline = old | FAR;
                stored.mark(DISARMED);
            }
        }
        is_enough
    }

    /// Returns the deadline for which an entry was linked or postponed. Its slot's turn
    /// comes no later.
    pub(super) fn linked_for(&self, entry: EntryIndex) -> u64 {
        let deadline = self.entries.deadline(entry);
        match self.is_disarmed(entry) {
            true => deadline & !FAR,
            false => deadline,
        }
    }

    /// Returns the deadline that was set, even if it has passed.
    #[inline]
    pub(crate) fn deadline_of(&self, entry: EntryIndex) -> Tick {
        match self.is_disarmed(entry) {
            true => Tick::MAX,
            false => Tick(self.entries.deadline(entry)),
        }
    }

    /// Sets the deadline of an entry without linking it.
    pub(crate) fn set_deadline(&mut self, entry: EntryIndex, deadline: Tick) {
        let stored = self.entries.get_mut(entry);
        stored.deadline = deadline.0;
        stored.unmark(DISARMED);
    }

    #[inline]
    pub(super) fn is_disarmed(&self, entry: EntryIndex) -> bool {
        self.entries.stamp(entry).tag() & DISARMED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TimerId;

    fn entry(wheel: &Wheel<u64>, id: TimerId) -> EntryIndex {
        wheel.find(id).unwrap()
    }

    /// Returns the slots of a wheel without their timers.
    fn places(wheel: &Wheel<u64>) -> Vec<(usize, usize)> {
        wheel.slots().map(|slot| (slot.level, slot.index)).collect()
    }

    #[test]
    fn a_timer_is_disarmed_and_armed_in_its_slot() {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(70), 7);
        for next in [70, 71, 5_000, FAR - 1] {
            assert!(wheel.reschedule(id, Tick::MAX));
            assert!(wheel.is_disarmed(entry(&wheel, id)));
            assert_eq!(wheel.deadline(id), Some(Tick::MAX));
            assert_eq!(wheel.earliest_deadline(), Some(Tick::MAX));
            assert_eq!(places(&wheel), [(1, 1)]);
            wheel.assert_consistent();
            assert!(wheel.reschedule(id, Tick(next)));
            assert!(!wheel.is_disarmed(entry(&wheel, id)));
            assert_eq!(wheel.deadline(id), Some(Tick(next)));
            assert_eq!(places(&wheel), [(1, 1)]);
            wheel.assert_consistent();
        }
    }

    #[test]
    fn a_timer_that_is_armed_for_an_earlier_tick_moves_to_its_slot() {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(70), 7);
        assert!(wheel.reschedule(id, Tick::MAX));
        assert!(wheel.reschedule(id, Tick(69)));
        assert_eq!(
            (wheel.deadline(id), places(&wheel)),
            (Some(Tick(69)), vec![(1, 1)])
        );
        assert!(wheel.reschedule(id, Tick::MAX));
        assert!(wheel.reschedule(id, Tick(63)));
        assert_eq!(places(&wheel), [(0, 63)]);
        assert_eq!(wheel.pop_due(Tick(100)).unwrap().deadline, Tick(63));
    }

    /// Disarms a timer that is due at 70 and lets its slots pass. Then arms it.
    fn arms_after_its_slot(passed: Tick) {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(70), 7);
        assert!(wheel.reschedule(id, Tick::MAX));
        assert!(wheel.pop_due(passed).is_none());
        assert!(!wheel.is_disarmed(entry(&wheel, id)));
        assert_eq!(wheel.deadline(id), Some(Tick::MAX));
        assert_eq!(wheel.next_wakeup(), Some(Tick(15 << 60)));
        assert!(wheel.reschedule(id, Tick(200)));
        assert_eq!(wheel.pop_due(Tick(1_000)).unwrap().deadline, Tick(200));
    }

    #[test]
    fn a_disarmed_timer_leaves_its_slot_when_the_slots_turn_comes() {
        // The first slot is cascaded at 64, and one of level 0 would fire at 70.
        arms_after_its_slot(Tick(64));
        arms_after_its_slot(Tick(70));
        arms_after_its_slot(Tick(71));
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(9), 7);
        assert!(wheel.reschedule(id, Tick::MAX));
        assert!(wheel.pop_due(Tick(9)).is_none());
        assert_eq!(wheel.next_wakeup(), Some(Tick(15 << 60)));
    }

    #[test]
    fn a_timer_of_the_far_half_of_time_is_disarmed_without_a_mark() {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(FAR), 7);
        assert!(wheel.reschedule(id, Tick::MAX));
        assert!(!wheel.is_disarmed(entry(&wheel, id)));
        assert!(wheel.reschedule(id, Tick(FAR)));
        assert_eq!(wheel.deadline(id), Some(Tick(FAR)));
        assert_eq!(wheel.pop_due(Tick::MAX).unwrap().deadline, Tick(FAR));
    }

    #[test]
    fn an_overdue_timer_is_disarmed_and_leaves_the_list_of_those() {
        let mut wheel = Wheel::starting_at(Tick(50), 64);
        let id = wheel.schedule_at(Tick(9), 7);
        assert!(wheel.reschedule(id, Tick::MAX));
        assert!(wheel.pop_due(Tick(60)).is_none());
        assert!(wheel.reschedule(id, Tick(61)));
        assert_eq!(wheel.pop_due(Tick(100)).unwrap().deadline, Tick(61));
    }

    #[test]
    fn a_disarmed_timer_fires_at_the_end_of_time_alone() {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(70), 7);
        assert!(wheel.reschedule(id, Tick::MAX));
        assert!(wheel.pop_due(Tick(u64::MAX - 1)).is_none());
        assert_eq!(wheel.pop_due(Tick::MAX).unwrap().id(), id);
    }

    #[test]
    fn an_armed_timer_fires_in_the_place_of_its_first_scheduling() {
        let mut wheel = Wheel::new(64);
        let oldest = wheel.schedule_at(Tick(3), 0);
        (1..20).for_each(|n| _ = wheel.schedule_at(Tick(9), n));
        assert!(wheel.reschedule(oldest, Tick::MAX) && wheel.reschedule(oldest, Tick(9)));
        let fired = core::iter::from_fn(|| wheel.pop_due(Tick(9)).map(|e| e.payload));
        assert!(fired.eq(0..20));
    }
}
