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
        let stamp = sequence.stamp(tag);
        let entry = self.store(deadline.0, stamp, payload);
        // Linked first: the number of the wheel is then read where the id is made, and
        // need not be kept meanwhile.
        let due = self.link_new_for(entry, deadline.0);
        Scheduled {
            id: TimerId::issued(self.number, sequence.shifted(), entry.index()),
            due,
        }
    }

    /// Stores a timer without linking it to a list.
    #[inline]
    pub(crate) fn insert(&mut self, deadline: u64, tag: u16, payload: T) -> EntryIndex {
        let stamp = self.issue().stamp(tag);
        self.store(deadline, stamp, payload)
    }

    #[inline]
    fn store(&mut self, deadline: u64, stamp: Stamp, payload: T) -> EntryIndex {
        let entry = match self.entries.take_vacant() {
            Some(entry) => entry,
            None => self.add_vacant(),
        };
        self.entries.fill(entry, deadline, stamp, payload);
        entry
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
        self.link_new_for(entry, self.entries.deadline(entry))
    }

    /// Does the same for an entry whose deadline is at hand.
    #[inline(always)]
    fn link_new_for(&mut self, entry: EntryIndex, deadline: u64) -> Tick {
        if deadline <= self.now {
            self.link_overdue(entry);
            return self.now();
        }
        let place = self.levels.place(self.now, deadline);
        self.lower_next_turn(place.start);
        self.levels.append(&mut self.entries, place, entry);
        Tick(deadline)
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
        let place = self.levels.place(self.now, deadline);
        self.lower_next_turn(place.start);
        self.levels.append_checked(&mut self.entries, place, entry);
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
