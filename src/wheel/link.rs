//! Linking timers into their slots: new ones, rescheduled ones, overdue ones.
//!
//! A *postponed* timer stays in the slot where it is, and is linked again when the slot's
//! turn comes. A timer at [`Tick::MAX`] never fires. It is *disarmed*, and stays in its slot
//! as well. Arming it again then costs a store, too, if the slot's turn comes before the new
//! deadline. To know that, the entry keeps the deadline that it had, and a bit of its tag says
//! that this stands for [`Tick::MAX`].
//!
//! The list of a tick is in the order in which its timers were first scheduled. A timer that
//! comes back may be older than the last one of its list. The list is then marked, and is sorted
//! when it fires (see `advance.rs`). Lists of outer slots need no order but that of arrival,
//! because cascades keep it.

use super::Wheel;
use super::entries::{DISARMED, DUE, EntryIndex, Header, OVERDUE, SORTING, Stamp, Tag};
use crate::id::TimerId;
use crate::tick::Tick;

impl<T> Wheel<T> {
    /// Schedules a timer and gives its entry this tag. Returns the tick at which it is due.
    #[inline(always)]
    pub(crate) fn schedule_tagged(
        &mut self,
        deadline: Tick,
        tag: Tag,
        payload: T,
    ) -> (TimerId, Tick) {
        // What is seldom needed is in a call at the end, so that nothing is saved for it.
        if deadline.0 > self.slots.now {
            if let Some((list, start)) = self.slots.list_for(deadline.0) {
                if let Some(entry) = self.entries.pop_vacant() {
                    let stamp = self.issue();
                    self.entries.fill(entry, deadline.0, stamp.with(tag), payload);
                    if self.entries.append(list, entry) == list {
                        self.slots.occupy(list, start);
                    }
                    return (TimerId::new(self.number, stamp.sequence(), entry.index()), deadline);
                }
            }
        }
        self.schedule_slowly(deadline, tag, payload)
    }

    #[cold]
    #[inline(never)]
    fn schedule_slowly(&mut self, deadline: Tick, tag: Tag, payload: T) -> (TimerId, Tick) {
        let entry = self.insert(deadline, tag, payload);
        let due = self.link(entry);
        (self.id(entry), due)
    }

    /// Stores a timer without linking it to a list.
    pub(crate) fn insert(&mut self, deadline: Tick, tag: Tag, payload: T) -> EntryIndex {
        let stamp = self.issue().with(tag);
        let entry = self.entries.take_vacant();
        self.entries.fill(entry, deadline.0, stamp, payload);
        entry
    }

    /// Returns a stamp that no timer has had.
    #[inline(always)]
    fn issue(&mut self) -> Stamp {
        let next = self.youngest.next();
        self.youngest = next.expect("2^52 timers were scheduled");
        self.youngest
    }

    /// Links a stored entry, which hangs on no list, for the deadline that it has.
    pub(crate) fn link(&mut self, entry: EntryIndex) -> Tick {
        self.relink_at(entry, self.deadline_of(entry))
    }

    /// Sets the deadline of an entry that is not on any list and links the entry. Returns the
    /// tick at which its timer is due.
    pub(crate) fn relink_at(&mut self, entry: EntryIndex, deadline: Tick) -> Tick {
        self.set_deadline(entry, deadline);
        // At the end of time, nothing is due even though the clock is there.
        if deadline <= self.now() && deadline < Tick::MAX {
            return self.link_overdue(entry);
        }
        let (list, start) = self.list_for(deadline.0);
        if self.append_in_order(list, entry) == list {
            self.slots.occupy(list, start);
        }
        deadline
    }

    /// Returns the list for a deadline from now on, and the first tick of its slot.
    #[inline(always)]
    fn list_for(&mut self, deadline: u64) -> (EntryIndex, u64) {
        let found = self.slots.list_for(deadline);
        found.unwrap_or_else(|| self.slots.list_by_division(deadline))
    }

    /// Links an entry again while its slot is cascaded at the slot's first tick, at which it may
    /// be due.
    #[inline(always)]
    pub(super) fn link_inward(&mut self, entry: EntryIndex) {
        // A disarmed timer goes the way of its last deadline, too.
        let deadline = self.entries.get(entry).deadline;
        if deadline == self.slots.now {
            self.append_in_order(DUE, entry);
        } else {
            let (list, _) = self.list_for(deadline);
            // Even if it is occupied: whether it is cannot be predicted here.
            self.slots.mark(list);
            self.append_in_order(list, entry);
        }
    }

    /// Appends an entry to a list, and returns what was the last one. If the list is that of a
    /// tick and the entry is older than the one before it, marks the list.
    #[inline(always)]
    fn append_in_order(&mut self, list: EntryIndex, entry: EntryIndex) -> EntryIndex {
        let last = self.entries.append(list, entry);
        if let Some(unsorted) = self.slots.unsorted.get_mut(list.index() as usize) {
            // Without a branch, which would be mispredicted half of the time.
            let before = if last == list { entry } else { last };
            *unsorted |= self.entries.get(entry).stamp < self.entries.get(before).stamp;
        }
        last
    }

    /// Links an entry whose deadline has been reached. Overdue timers fire by deadline.
    #[cold]
    fn link_overdue(&mut self, entry: EntryIndex) -> Tick {
        let key = |header: &Header| (header.deadline, header.stamp);
        let late = key(self.entries.get(entry));
        self.slots.next = 0;
        let last = self.entries.append(OVERDUE, entry);
        if last != OVERDUE && late < key(self.entries.get(last)) {
            self.slots.unsorted[OVERDUE.index() as usize] = true;
        }
        self.now()
    }

    /// Changes the deadline of a linked entry and links the entry accordingly.
    pub(crate) fn move_to(&mut self, entry: EntryIndex, deadline: Tick) {
        if !self.set_in_place(entry, deadline) {
            self.move_elsewhere(entry, deadline);
        }
    }

    #[inline(never)]
    fn move_elsewhere(&mut self, entry: EntryIndex, deadline: Tick) {
        self.unlink(entry);
        self.relink_at(entry, deadline);
    }

    /// Changes the deadline of a linked entry and leaves the entry in its slot, to be linked
    /// again when the slot's turn comes. Returns `false` if storing is not enough: for a
    /// deadline before that turn, and for a due entry, which may not be in any slot.
    pub(crate) fn set_in_place(&mut self, entry: EntryIndex, deadline: Tick) -> bool {
        let now = self.slots.now;
        let header = self.entries.get_mut(entry);
        let is_enough = header.deadline <= deadline.0 && now < header.deadline;
        if is_enough && deadline == Tick::MAX {
            header.mark(DISARMED);
        } else if is_enough {
            header.deadline = deadline.0;
            header.unmark(DISARMED);
        }
        is_enough
    }

    /// Returns the deadline that was set, even if it has passed.
    #[inline(always)]
    pub(crate) fn deadline_of(&self, entry: EntryIndex) -> Tick {
        let header = self.entries.get(entry);
        if header.has(DISARMED) { Tick::MAX } else { Tick(header.deadline) }
    }

    /// Returns the tick at which the timer can fire: its deadline, or now if that
    /// has passed.
    pub(crate) fn due_at(&self, entry: EntryIndex) -> Tick {
        self.deadline_of(entry).max(self.now())
    }

    /// Sets the deadline of an entry without linking it.
    pub(crate) fn set_deadline(&mut self, entry: EntryIndex, deadline: Tick) {
        let header = self.entries.get_mut(entry);
        header.deadline = deadline.0;
        header.unmark(SORTING | DISARMED);
    }

    pub(super) fn is_due(&self, entry: EntryIndex) -> bool {
        let header = self.entries.get(entry);
        header.deadline <= self.slots.now && !header.has(DISARMED)
    }

    /// Takes an entry off its list.
    pub(crate) fn unlink(&mut self, entry: EntryIndex) {
        if let Some(list) = self.entries.unlink(entry) {
            self.slots.vacate(list, 1 << (list.index() % u64::BITS));
        }
    }

    /// Returns one of the lists that were added for the owner, for entries that the wheel
    /// does not fire by itself. [`Wheel::unlink`] takes them off the list.
    pub(crate) fn list(&self, number: u32) -> EntryIndex {
        EntryIndex::new(self.slots.end() + number)
    }

    pub(crate) fn append_to(&mut self, list: EntryIndex, entry: EntryIndex) {
        // The entry may come from the heap. Without the mark, the heap passes over it.
        self.entries.get_mut(entry).unmark(SORTING);
        self.entries.append(list, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WheelNumber;
    use crate::wheel::{Advance, Geometry};

    /// So each costs a store or two.
    #[test]
    fn a_timer_that_is_put_off_disarmed_or_armed_again_stays_in_its_slot() {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(30), ());
        for deadline in [Tick(40), Tick::MAX, Tick::MAX, Tick(5_000), Tick(5_000), Tick::MAX] {
            assert!(wheel.reschedule(id, deadline));
            assert_eq!(wheel.deadline(id), Some(deadline));
            assert!(wheel.slots().map(|slot| slot.start).eq([Tick(30)]));
        }
    }

    #[test]
    fn what_the_owner_took_out_of_the_heap_stays_on_the_list_of_the_owner() {
        let geometry = Geometry::new(64).unwrap();
        let mut wheel = Wheel::numbered(Tick(100), geometry, WheelNumber::reserve(1), 1);
        let [taken, ..] = [95, 90, 97].map(|tick| wheel.schedule_at(Tick(tick), tick));
        assert_eq!(wheel.advance(Tick(200), 3, |_, _| panic!("fired")), Advance::More);
        let (at, list) = (wheel.find(taken).unwrap(), wheel.list(0));
        wheel.unlink(at);
        wheel.append_to(list, at);
        let fired = core::iter::from_fn(|| wheel.pop_due(Tick(200)).map(|e| e.payload));
        assert!(fired.eq([90, 97]));
        assert_eq!(wheel.entries.first_of(list), Some(at));
        wheel.assert_consistent_beside(1);
    }
}
