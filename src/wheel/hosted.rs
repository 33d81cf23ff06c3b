//! What a shard needs of its wheel beside the public calls: entries by index,
//! tags, lists of its own.

use super::Wheel;
use super::entries::At;
use super::work::SORTING;
use crate::id::TimerId;
use crate::tick::Tick;

impl<T> Wheel<T> {
    #[inline]
    pub(crate) fn id(&self, at: At) -> TimerId {
        let sequence = self.entries.entry(at).stamp().sequence();
        TimerId::new(self.number, sequence, self.entries.index_of(at))
    }

    #[inline]
    pub(crate) fn find(&self, id: TimerId) -> Option<At> {
        if !id.is_of(self.number) {
            return None;
        }
        self.find_own(id)
    }

    /// As [`Wheel::find`], but finds no timer that was moved to another entry.
    #[inline]
    pub(crate) fn find_at_home(&self, id: TimerId) -> Option<At> {
        if !id.is_of(self.number) {
            return None;
        }
        self.entries.find_at_home(id.index(), id.sequence())
    }

    /// As [`Wheel::find`], for an id that is known to be this wheel's.
    #[inline]
    pub(crate) fn find_own(&self, id: TimerId) -> Option<At> {
        debug_assert!(id.is_of(self.number));
        self.entries.find(id.index(), id.sequence())
    }

    /// Asks the processor for the timer's entry.
    #[inline]
    pub(crate) fn prefetch(&self, id: TimerId) {
        if let Some(at) = self.entries.at(id.index()) {
            self.entries.prefetch(at);
        }
    }

    #[inline]
    pub(crate) fn prefetch_entry(&self, at: At) {
        self.entries.prefetch(at);
    }

    /// How many entries the storage has, vacant ones included.
    #[cfg(test)]
    pub(crate) fn entries_in_use(&self) -> usize {
        self.entries.used() as usize
    }

    /// Notes that a timer hangs on no list, and will not for a while.
    pub(crate) fn set_aside(&mut self, at: At) {
        self.entries.set_aside(at);
    }

    /// Takes a timer's payload and frees its entry; it must be unlinked.
    #[inline]
    pub(crate) fn remove(&mut self, at: At) -> T {
        self.entries.remove(at)
    }

    /// As [`Wheel::remove`], without unlinking the entry first, in a wheel that
    /// will not be advanced any more: see [`Entries::take_for_good`](super::entries::Entries::take_for_good).
    #[inline]
    pub(crate) fn take_for_good(&mut self, at: At) -> T {
        self.entries.take_for_good(at)
    }

    /// The deadline that was asked for, which may have passed long ago.
    #[inline]
    pub(crate) fn deadline_of(&self, at: At) -> Tick {
        Tick(self.entries.entry(at).deadline)
    }

    /// When it can fire: at its deadline, or now if that has passed.
    #[inline]
    pub(crate) fn due_at(&self, at: At) -> Tick {
        self.deadline_of(at).max(self.now())
    }

    pub(crate) fn set_deadline(&mut self, at: At, deadline: Tick) {
        self.entries.entry_mut(at).deadline = deadline.0;
    }

    #[inline]
    pub(crate) fn tag(&self, at: At) -> u16 {
        self.entries.entry(at).stamp().tag()
    }

    pub(crate) fn set_tag(&mut self, at: At, tag: u16) {
        self.entries.entry_mut(at).set_tag(tag);
    }

    #[inline]
    pub(crate) fn payload(&self, at: At) -> &T {
        self.entries.payload(at)
    }

    pub(crate) fn payload_mut(&mut self, at: At) -> &mut T {
        self.entries.payload_mut(at)
    }

    /// A list for entries that are not in the wheel's care; [`Wheel::unlink`]
    /// takes them off it again.
    pub(crate) fn add_list(&mut self) -> At {
        self.entries.add_list()
    }

    pub(crate) fn append_to(&mut self, list: At, at: At) {
        // It may have been taken off a slot that is being sorted, which still
        // counts on it.
        let entry = self.entries.entry_mut(at);
        entry.unmark(SORTING);
        self.entries.append(list, at);
    }

    pub(crate) fn first_of(&self, list: At) -> Option<At> {
        let first = self.entries.next(list);
        (first != list).then_some(first)
    }
}
