//! Linking timers into their slots: new ones, rescheduled ones, overdue ones.
//!
//! A *postponed* timer stays in the slot where it is, and is linked again when the slot's
//! turn comes. A timer at [`Tick::MAX`] never fires. It is *disarmed*, and stays in its slot
//! as well. Arming it again then costs a store, too, if the slot's turn comes before the new
//! deadline. To know that, the entry keeps the deadline that it had, with the highest bit set,
//! and a bit of its tag says that this stands for [`Tick::MAX`]. The bit means nothing while
//! the deadline is before [`FAR`], so arming leaves it set.
//!
//! Each list is in the order in which its timers were first scheduled. A timer that comes back
//! may be older than the last one of its list. The list is then marked, and is sorted when it
//! fires (see `advance.rs`).

use super::Wheel;
use super::entries::{DISARMED, EntryIndex, OVERDUE, SORTING, Stamp};
use super::slots::Turn;
use crate::id::{MAX_SEQUENCE, TimerId};
use crate::tick::Tick;

/// The first tick with the highest bit set. A timer of this tick or a later one is linked
/// again when it is disarmed or armed.
pub(super) const FAR: u64 = 1 << 63;

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
        let stamp = Stamp::new(sequence, tag);
        let entry = self.entries.take_vacant();
        let due = if deadline.0 > self.now {
            // The list is looked up before the entry is written, because the compiler would
            // load the table again after a store to the block.
            let list = self.list_for_later(deadline.0);
            self.entries.fill(entry, deadline.0, stamp, payload);
            self.append(list, entry, stamp);
            deadline
        } else {
            self.entries.fill(entry, deadline.0, stamp, payload);
            self.link_overdue(entry)
        };
        let id = TimerId::new(self.number, sequence, entry.index());
        Scheduled { id, due }
    }

    /// Stores a timer without linking it to a list.
    #[inline]
    pub(crate) fn insert(&mut self, deadline: u64, tag: u16, payload: T) -> EntryIndex {
        let stamp = Stamp::new(self.issue(), tag);
        let entry = self.entries.take_vacant();
        self.entries.fill(entry, deadline, stamp, payload);
        entry
    }

    /// Returns a sequence number that no timer has had.
    #[inline]
    fn issue(&mut self) -> u64 {
        self.youngest += 1;
        assert!(self.youngest <= MAX_SEQUENCE, "2^52 timers were scheduled");
        self.youngest
    }

    /// Links a stored entry, which hangs on no list, for the deadline that it has.
    #[inline]
    pub(crate) fn link(&mut self, entry: EntryIndex) -> Tick {
        self.relink_at(entry, self.deadline_of(entry))
    }

    /// Sets the deadline of an entry that is not on any list and links the entry. Returns the
    /// tick at which its timer is due.
    #[inline]
    pub(crate) fn relink_at(&mut self, entry: EntryIndex, deadline: Tick) -> Tick {
        let stamp = self.settle(entry, deadline);
        if deadline.0 <= self.now {
            return self.link_overdue(entry);
        }
        let list = self.list_for_later(deadline.0);
        self.append_in_order(list, entry, stamp);
        deadline
    }

    /// Stores the deadline of an entry that is going to be linked, and clears its marks. Returns
    /// the stamp, because loading it right after a store to its tag would stall.
    #[inline(always)]
    fn settle(&mut self, entry: EntryIndex, deadline: Tick) -> Stamp {
        let header = self.entries.get_mut(entry);
        let stamp = header.stamp().without(SORTING | DISARMED);
        header.deadline = deadline.0;
        header.set_stamp(stamp);
        stamp
    }

    /// Returns the list for a deadline later than now, and counts it as occupied.
    #[inline(always)]
    fn list_for_later(&mut self, deadline: u64) -> EntryIndex {
        let turn = self.slots.turn_for(&mut self.entries, self.now, deadline);
        self.slots.occupy(turn.list);
        if turn.start < self.next.start {
            self.next = turn;
        }
        turn.list
    }

    /// Links an entry again while its slot is cascaded at the slot's first tick.
    #[inline(always)]
    pub(super) fn link_inward(&mut self, entry: EntryIndex) {
        let deadline = self.deadline_of(entry);
        let stamp = self.settle(entry, deadline);
        let Turn { list, .. } = self.slots.turn_for(&mut self.entries, self.now, deadline.0);
        self.slots.occupy(list);
        self.append_in_order(list, entry, stamp);
    }

    #[inline(always)]
    fn append(&mut self, list: EntryIndex, entry: EntryIndex, stamp: Stamp) {
        self.entries.append(list, entry);
        let entries = &mut self.entries;
        self.landmarks.appended(entries, list, entry, stamp);
    }

    /// Appends an entry to the list of a slot, and marks the list if the entry is older than
    /// the one before it. The stamp of a head is less than that of any timer.
    #[inline(always)]
    fn append_in_order(&mut self, list: EntryIndex, entry: EntryIndex, stamp: Stamp) {
        let last = self.entries.prev(list);
        let is_older = stamp < self.entries.get(last).stamp();
        self.append(list, entry, stamp);
        // Without a branch, which would be mispredicted half of the time.
        self.entries.mark_out_of_order(list, is_older);
    }

    /// Links an entry whose deadline has been reached. Overdue timers fire by deadline.
    #[cold]
    fn link_overdue(&mut self, entry: EntryIndex) -> Tick {
        let header = self.entries.get(entry);
        let (deadline, stamp) = (header.deadline, header.stamp());
        if deadline == Tick::MAX.0 {
            // It never fires, even though the clock is there.
            self.now -= 1;
            let list = self.list_for_later(deadline);
            self.now += 1;
            self.append_in_order(list, entry, stamp);
            return Tick::MAX;
        }
        let last = self.entries.get(self.entries.prev(OVERDUE));
        let is_before = (deadline, stamp) < (last.deadline, last.stamp());
        self.entries.append(OVERDUE, entry);
        self.entries.mark_out_of_order(OVERDUE, is_before);
        self.next = Turn::NOW;
        self.now()
    }

    /// Changes the deadline of a linked entry and links the entry accordingly.
    #[inline]
    pub(crate) fn move_to(&mut self, entry: EntryIndex, deadline: u64) {
        if !self.set_in_place(entry, deadline) {
            self.move_elsewhere(entry, deadline);
        }
    }

    #[inline(never)]
    fn move_elsewhere(&mut self, entry: EntryIndex, deadline: u64) {
        self.unlink(entry);
        self.relink_at(entry, Tick(deadline));
    }

    /// Changes the deadline of a linked entry and leaves the entry in its slot, to be
    /// linked again when the slot's turn comes. Returns `false` for a deadline before that
    /// turn, for a due entry, which may not be in any slot, and for `FAR` and all later
    /// deadlines except [`Tick::MAX`]: storing is then not enough.
    #[inline]
    pub(crate) fn set_in_place(&mut self, entry: EntryIndex, deadline: u64) -> bool {
        let now = self.now;
        let header = self.entries.get_mut(entry);
        let old = match header.deadline < FAR {
            true => header.deadline,
            false if header.has(DISARMED) => header.deadline & !FAR,
            false => return header.deadline == Tick::MAX.0 && deadline == Tick::MAX.0,
        };
        if deadline == Tick::MAX.0 && now < old {
            header.deadline = old | FAR;
            header.mark(DISARMED);
            return true;
        }
        let is_enough = now < old && old <= deadline && deadline < FAR;
        if is_enough {
            header.deadline = deadline;
        }
        is_enough
    }

    /// Returns the deadline that was set, even if it has passed.
    #[inline]
    pub(crate) fn deadline_of(&self, entry: EntryIndex) -> Tick {
        let header = self.entries.get(entry);
        match header.deadline >= FAR && header.has(DISARMED) {
            true => Tick::MAX,
            false => Tick(header.deadline),
        }
    }

    /// Returns the tick at which the timer can fire: its deadline, or now if that
    /// has passed.
    #[inline]
    pub(crate) fn due_at(&self, entry: EntryIndex) -> Tick {
        self.deadline_of(entry).max(self.now())
    }

    /// Sets the deadline of an entry without linking it.
    pub(crate) fn set_deadline(&mut self, entry: EntryIndex, deadline: Tick) {
        let header = self.entries.get_mut(entry);
        header.deadline = deadline.0;
        header.unmark(DISARMED);
    }

    #[inline]
    pub(super) fn is_due(&self, entry: EntryIndex) -> bool {
        self.entries.get(entry).deadline <= self.now
    }

    /// Takes an entry off its list.
    #[inline]
    pub(crate) fn unlink(&mut self, entry: EntryIndex) {
        if let Some(list) = self.entries.unlink(entry) {
            self.entries.clear_mark(list);
            self.slots.vacate(list);
        }
    }
}
