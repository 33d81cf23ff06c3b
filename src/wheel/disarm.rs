//! Timers whose deadline changes without touching a list: they are postponed, or put off
//! for ever and armed again.
//!
//! A postponed timer stays in the slot where it is, and is linked again when the slot's
//! turn comes. A timer at [`Tick::MAX`] never fires, so it is *disarmed*, and stays there
//! as well. When it is armed again, a store is enough if the slot's turn comes before the
//! new deadline. To know that, the entry keeps the deadline that it had, with the highest
//! bit set. It is then later than the present, and the slot is left as for any
//! postponement. A bit in the tag says that such a deadline stands for [`Tick::MAX`]. The
//! bit means nothing while the timer is armed, so arming leaves it set.
//!
//! When the slot's turn comes, the entry is linked again for [`Tick::MAX`], and its old
//! deadline is forgotten.

use super::Wheel;
use super::entries::EntryIndex;
use crate::tick::Tick;

/// The tag bit of a timer that has been disarmed since it was linked. It is disarmed
/// while its deadline is `FAR` or later.
pub(super) const REUSED: u16 = 1 << 2;

/// The first tick with the highest bit set. A timer of this tick or a later one is
/// disarmed without the tag bit, and is linked again when it is armed.
pub(super) const FAR: u64 = 1 << 63;

impl<T> Wheel<T> {
    /// Changes the deadline of a linked entry and leaves the entry in its slot, to be
    /// linked again when the slot's turn comes. Returns `false` for a deadline before that
    /// turn, for a due entry, which may not be in any slot, and for `FAR` and all later
    /// deadlines except [`Tick::MAX`]: storing is then not enough.
    #[inline]
    pub(crate) fn set_in_place(&mut self, entry: EntryIndex, deadline: u64) -> bool {
        match deadline < FAR {
            true => self.postpone_or_arm(entry, deadline),
            false => deadline == Tick::MAX.0 && self.disarm(entry),
        }
    }

    /// Postpones a timer, or arms one that is disarmed in its slot.
    #[inline]
    fn postpone_or_arm(&mut self, entry: EntryIndex, deadline: u64) -> bool {
        let now = self.now;
        let is_later_than = |old: u64| now < old && old <= deadline;
        let stored = self.entries.get_mut(entry);
        // In two arms, so that only arming looks at the tag.
        let is_enough = match stored.deadline < FAR {
            true => is_later_than(stored.deadline),
            false => stored.stamp().tag() & REUSED != 0 && is_later_than(stored.deadline & !FAR),
        };
        if is_enough {
            stored.deadline = deadline;
        }
        is_enough
    }

    /// Disarms a timer in its slot, unless that is one of the far half of time.
    #[inline]
    fn disarm(&mut self, entry: EntryIndex) -> bool {
        let now = self.now;
        let stored = self.entries.get_mut(entry);
        if stored.deadline >= FAR {
            return self.is_disarmed(entry);
        }
        let is_enough = now < stored.deadline;
        if is_enough {
            stored.deadline |= FAR;
            stored.mark(REUSED);
        }
        is_enough
    }

    /// Returns the deadline for which an entry was linked or postponed. Its slot's turn
    /// comes no later.
    #[cfg(test)]
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
        stored.unmark(REUSED);
    }

    #[inline]
    pub(super) fn is_disarmed(&self, entry: EntryIndex) -> bool {
        self.entries.deadline(entry) >= FAR && self.entries.stamp(entry).tag() & REUSED != 0
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
    fn a_timer_that_is_disarmed_twice_stays_in_its_slot() {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(70), 7);
        assert!(wheel.reschedule(id, Tick::MAX) && wheel.reschedule(id, Tick::MAX));
        assert_eq!(
            (wheel.deadline(id), places(&wheel)),
            (Some(Tick::MAX), vec![(1, 1)])
        );
        assert!(wheel.reschedule(id, Tick(71)));
        assert_eq!(wheel.pop_due(Tick(100)).unwrap().deadline, Tick(71));
    }

    #[test]
    fn a_timer_that_was_armed_again_can_be_put_off_to_the_far_half_of_time() {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(70), 7);
        for next in [Tick::MAX, Tick(80), Tick(FAR + 3)] {
            assert!(wheel.reschedule(id, next));
            assert_eq!(wheel.deadline(id), Some(next));
            wheel.assert_consistent();
        }
        assert!(wheel.pop_due(Tick(FAR + 2)).is_none());
        assert_eq!(wheel.pop_due(Tick::MAX).unwrap().deadline, Tick(FAR + 3));
    }

    #[test]
    fn a_timer_that_was_armed_again_moves_on_with_its_slot() {
        // Through cascades, and past its first deadline, with the mark still set.
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(5_000), 7);
        assert!(wheel.reschedule(id, Tick::MAX) && wheel.reschedule(id, Tick(9_000)));
        for now in [4_096, 5_000, 8_191, 8_192, 8_999] {
            assert!(wheel.pop_due(Tick(now)).is_none());
            assert_eq!(wheel.deadline(id), Some(Tick(9_000)));
            wheel.assert_consistent();
        }
        assert_eq!(wheel.pop_due(Tick(9_000)).unwrap().deadline, Tick(9_000));
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
