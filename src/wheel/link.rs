//! Linking entries, whether new, linked before or overdue, into their slots, and
//! unlinking them.

use super::Wheel;
use super::disarm::REUSED;
use super::entries::{EntryIndex, Sequence, Stamp};
use super::work::SORTING;
use crate::id::TimerId;
use crate::tick::Tick;

/// A newly scheduled timer.
pub(crate) struct Scheduled {
    pub(crate) id: TimerId,
    /// The tick at which the timer is due.
    pub(crate) due: Tick,
}

impl<T> Wheel<T> {
    /// Schedules a timer and gives its entry this tag.
    #[inline(always)]
    pub(crate) fn schedule_tagged(&mut self, deadline: Tick, tag: u16, payload: T) -> Scheduled {
        let sequence = self.issue();
        let entry = self.take_vacant();
        let due = self.fill_and_link(entry, deadline.0, sequence.stamp(tag), payload);
        // Made last: the number of the wheel is then read here, and need not be kept
        // meanwhile.
        Scheduled {
            id: TimerId::issued(self.number, sequence.shifted(), entry.index()),
            due,
        }
    }

    /// Stores a new timer in a vacant entry and links the entry. Finds its list first: after
    /// a store to an entry, the compiler would load again what that takes.
    #[inline(always)]
    fn fill_and_link(
        &mut self,
        entry: EntryIndex,
        deadline: u64,
        stamp: Stamp,
        payload: T,
    ) -> Tick {
        if deadline <= self.now {
            self.entries.fill(entry, deadline, stamp, payload);
            self.link_overdue(entry);
            return self.now();
        }
        let list = self.list_for_later(entry, deadline);
        self.entries.fill(entry, deadline, stamp, payload);
        self.levels.append_to_list(&mut self.entries, list, entry);
        Tick(deadline)
    }

    /// Stores a timer without linking it to a list.
    #[inline]
    pub(crate) fn insert(&mut self, deadline: u64, tag: u16, payload: T) -> EntryIndex {
        let stamp = self.issue().stamp(tag);
        let entry = self.take_vacant();
        self.entries.fill(entry, deadline, stamp, payload);
        entry
    }

    #[inline]
    fn take_vacant(&mut self) -> EntryIndex {
        match self.entries.take_vacant() {
            Some(entry) => entry,
            None => self.add_vacant(),
        }
    }

    /// Returns a sequence number that no timer has had.
    #[inline]
    fn issue(&mut self) -> Sequence {
        let sequence = self.next_sequence;
        let following = sequence.following();
        self.next_sequence = following.expect("2^52 timers were scheduled");
        sequence
    }

    /// Links an entry that is younger than all other entries. Returns the tick at
    /// which its timer is due.
    pub(crate) fn link_new(&mut self, entry: EntryIndex) -> Tick {
        let deadline = self.entries.deadline(entry);
        if deadline <= self.now {
            self.link_overdue(entry);
            return self.now();
        }
        let list = self.list_for_later(entry, deadline);
        self.levels.append_to_list(&mut self.entries, list, entry);
        Tick(deadline)
    }

    /// Returns the list for an entry whose deadline is later than now. Counts the list's
    /// slot as occupied from now on.
    #[inline(always)]
    fn list_for_later(&mut self, entry: EntryIndex, deadline: u64) -> EntryIndex {
        let entries = &mut self.entries;
        let (list, start) = self
            .levels
            .list_for_later(entries, self.now, deadline, entry);
        self.lower_next_turn(start);
        list
    }

    /// Links an entry that may be older than other entries of its slot.
    pub(crate) fn relink(&mut self, entry: EntryIndex) {
        self.set_deadline(entry, self.deadline_of(entry));
        self.link_returning(entry);
    }

    /// Links an entry for a deadline that it has just been given.
    fn link_returning(&mut self, entry: EntryIndex) {
        let stored = self.entries.get_mut(entry);
        stored.unmark(SORTING | REUSED);
        let deadline = stored.deadline;
        if deadline <= self.now {
            return self.link_overdue(entry);
        }
        let list = self.list_for_later(entry, deadline);
        let entries = &mut self.entries;
        self.levels.append_to_list_checked(entries, list, entry);
    }

    /// Notes that the slot starting at `start` is occupied.
    #[inline]
    fn lower_next_turn(&mut self, start: u64) {
        if start < self.next_turn {
            self.next_turn = start;
        }
    }

    #[cold]
    fn link_overdue(&mut self, entry: EntryIndex) {
        self.entries.append(self.overdue, entry);
        self.next_turn = 0;
    }

    /// Changes the deadline of a linked entry and links the entry accordingly.
    #[inline]
    pub(crate) fn move_to(&mut self, entry: EntryIndex, deadline: u64) {
        if !self.set_in_place(entry, deadline) {
            self.move_elsewhere(entry, deadline);
        }
    }

    /// Does the work of [`Wheel::move_to`] where a store is not enough.
    #[inline(never)]
    fn move_elsewhere(&mut self, entry: EntryIndex, deadline: u64) {
        self.entries.get_mut(entry).deadline = deadline;
        self.unlink(entry);
        self.link_returning(entry);
    }

    /// Sets the deadline of an entry that is not on any list and links the entry.
    pub(crate) fn relink_at(&mut self, entry: EntryIndex, deadline: Tick) {
        self.entries.get_mut(entry).deadline = deadline.0;
        self.link_returning(entry);
    }

    #[inline]
    pub(crate) fn unlink(&mut self, entry: EntryIndex) {
        if let Some(list) = self.entries.unlink(entry) {
            let bitmap_index = self.entries.bitmap_index(list);
            self.levels.list_is_empty(bitmap_index);
        }
    }
}
