//! An entry into its slot, and out of it: a new one, one that comes again, one
//! that is overdue.

use super::Wheel;
use super::entries::At;
use super::work::SORTING;
use crate::id::TimerId;
use crate::tick::Tick;

/// What a call that schedules a timer returns.
pub(crate) struct Scheduled {
    pub(crate) id: TimerId,
    /// The tick at which the timer is due.
    pub(crate) due: Tick,
}

impl<T> Wheel<T> {
    /// Schedules a timer whose entry has a tag.
    #[inline(always)]
    pub(crate) fn schedule_tagged(&mut self, deadline: Tick, tag: u16, payload: T) -> Scheduled {
        let at = self.insert(deadline.0, tag, payload);
        let due = self.link_new(at);
        Scheduled {
            id: self.id_of_youngest(at),
            due,
        }
    }

    /// Stores a timer that hangs on no list yet.
    #[inline]
    pub(crate) fn insert(&mut self, deadline: u64, tag: u16, payload: T) -> At {
        let following = self.youngest.following();
        self.youngest = following.expect("2^52 timers were scheduled");
        self.entries
            .insert(deadline, self.youngest.with(tag), payload)
    }

    /// As [`Wheel::id`], for the timer that was inserted last.
    #[inline]
    fn id_of_youngest(&self, at: At) -> TimerId {
        TimerId::new(self.number, self.youngest.sequence(), at.index())
    }

    /// Links an entry that is younger than every other. Returns the tick at
    /// which it is due.
    #[inline(always)]
    pub(crate) fn link_new(&mut self, at: At) -> Tick {
        let deadline = self.entries.entry(at).deadline;
        if deadline <= self.now {
            self.link_overdue(at);
            return self.now();
        }
        let place = self.levels.place(self.now, deadline);
        self.lower_next_turn(place.start);
        self.levels.append(&mut self.entries, place, at);
        Tick(deadline)
    }

    /// Links an entry that may be older than others of its slot.
    pub(crate) fn relink(&mut self, at: At) {
        let entry = self.entries.entry_mut(at);
        entry.unmark(SORTING);
        let deadline = entry.deadline;
        if deadline <= self.now {
            return self.link_overdue(at);
        }
        let place = self.levels.place(self.now, deadline);
        self.lower_next_turn(place.start);
        self.levels.append_checked(&mut self.entries, place, at);
    }

    /// Something hangs in the slot that begins at `start` now.
    #[inline]
    fn lower_next_turn(&mut self, start: u64) {
        self.next_turn = self.next_turn.min(start);
    }

    #[cold]
    fn link_overdue(&mut self, at: At) {
        self.entries.append(self.overdue, at);
        self.next_turn = 0;
    }

    /// Gives a linked entry a later deadline, if storing it is all that takes:
    /// its slot comes up before, and links it again. What is due already may hang
    /// in none.
    #[inline]
    pub(crate) fn postpone(&mut self, at: At, deadline: u64) -> bool {
        let now = self.now;
        let entry = self.entries.entry_mut(at);
        let is_enough = deadline >= entry.deadline && entry.deadline > now;
        if is_enough {
            entry.deadline = deadline;
        }
        is_enough
    }

    /// Gives a linked entry another deadline.
    #[inline]
    pub(crate) fn move_to(&mut self, at: At, deadline: u64) {
        if self.postpone(at, deadline) {
            return;
        }
        self.set_deadline(at, Tick(deadline));
        self.unlink(at);
        self.relink(at);
    }

    /// Gives an entry that hangs on no list a deadline, and links it.
    pub(crate) fn relink_at(&mut self, at: At, deadline: Tick) {
        self.set_deadline(at, deadline);
        self.relink(at);
    }

    #[inline]
    pub(crate) fn unlink(&mut self, at: At) {
        if let Some(list) = self.entries.unlink(at) {
            let bitmap_index = self.entries.bitmap_index(list);
            self.levels.list_is_empty(bitmap_index);
        }
    }
}
