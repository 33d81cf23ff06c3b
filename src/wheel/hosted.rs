//! The calls that a shard needs besides the public ones: entries by index, tags,
//! and lists of its own.

use super::Wheel;
use super::entries::EntryIndex;
use super::work::SORTING;
use crate::id::TimerId;
use crate::tick::Tick;

impl<T> Wheel<T> {
    #[inline]
    pub(crate) fn id(&self, entry: EntryIndex) -> TimerId {
        TimerId::new(
            self.number,
            self.sequence(entry),
            self.entries.index_of(entry),
        )
    }

    /// Returns the number of bytes of the wheel's entries, with the places of payloads.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.bytes()
    }

    /// Returns the sequence number of a timer. A younger timer has a higher one.
    #[inline]
    pub(crate) fn sequence(&self, entry: EntryIndex) -> u64 {
        self.entries.stamp(entry).sequence()
    }

    /// Returns the sequence number of the youngest timer that the wheel ever had.
    pub(crate) fn youngest(&self) -> u64 {
        self.next_sequence.stamp(0).sequence() - 1
    }

    #[inline]
    pub(crate) fn find(&self, id: TimerId) -> Option<EntryIndex> {
        if !id.is_of(self.number) {
            return None;
        }
        self.find_own(id)
    }

    /// Finds a timer as [`Wheel::find`] does, unless shrinking has moved it to
    /// another entry.
    #[inline]
    pub(crate) fn find_unmoved(&self, id: TimerId) -> Option<EntryIndex> {
        let index = id.index_in(self.number)?;
        self.entries.find_unmoved(index, id.sequence())
    }

    /// Does the same for an id that is known to belong to this wheel.
    #[inline]
    pub(crate) fn find_own_unmoved(&self, id: TimerId) -> Option<EntryIndex> {
        debug_assert!(id.is_of(self.number));
        self.entries.find_unmoved(id.index().into(), id.sequence())
    }

    /// Finds a timer as [`Wheel::find`] does, by an id that is known to belong to
    /// this wheel.
    #[inline]
    pub(crate) fn find_own(&self, id: TimerId) -> Option<EntryIndex> {
        debug_assert!(id.is_of(self.number));
        self.entries.find(id.index(), id.sequence())
    }

    /// Prefetches the timer's entry.
    #[inline]
    pub(crate) fn prefetch(&self, id: TimerId) {
        if let Some(entry) = self.entries.entry_at(id.index()) {
            self.entries.prefetch(entry);
        }
    }

    #[inline]
    pub(crate) fn prefetch_entry(&self, entry: EntryIndex) {
        self.entries.prefetch(entry);
    }

    /// Returns the number of entries, including vacant ones.
    #[cfg(test)]
    pub(crate) fn entries_in_use(&self) -> usize {
        self.entries.used() as usize
    }

    /// Notes that a timer is not on any list for now.
    pub(crate) fn set_aside(&mut self, entry: EntryIndex) {
        self.entries.set_aside(entry);
    }

    /// Takes a timer's payload and frees its entry, which is not on any list.
    #[inline]
    pub(crate) fn remove(&mut self, entry: EntryIndex) -> T {
        self.entries.remove(entry)
    }

    /// Takes a timer's payload, unlinks its entry and frees it. The stamp, which a caller
    /// has just compared, is cleared first: after a store to another entry, the compiler
    /// would load it again.
    #[inline]
    pub(crate) fn remove_linked(&mut self, entry: EntryIndex) -> T {
        let payload = self.entries.take_for_good(entry);
        self.unlink(entry);
        self.entries.note_vacated(entry);
        payload
    }

    /// Takes a timer's payload without unlinking its entry, in a wheel that is no
    /// longer used: see `Entries::take_for_good`.
    #[inline]
    pub(crate) fn take_for_good(&mut self, entry: EntryIndex) -> T {
        self.entries.take_for_good(entry)
    }

    /// Returns the deadline of a timer that has expired, in fewer instructions than
    /// [`Wheel::deadline_of`].
    #[inline]
    pub(crate) fn expired_deadline_of(&self, entry: EntryIndex) -> Tick {
        debug_assert!(!self.is_disarmed(entry));
        Tick(self.entries.deadline(entry))
    }

    /// Returns the tick at which the timer can fire: its deadline, or now if that
    /// has passed.
    #[inline]
    pub(crate) fn due_at(&self, entry: EntryIndex) -> Tick {
        self.deadline_of(entry).max(self.now())
    }

    #[inline]
    pub(crate) fn tag(&self, entry: EntryIndex) -> u16 {
        self.entries.stamp(entry).tag()
    }

    pub(crate) fn set_tag(&mut self, entry: EntryIndex, tag: u16) {
        self.entries.get_mut(entry).set_tag(tag);
    }

    #[inline]
    pub(crate) fn payload(&self, entry: EntryIndex) -> &T {
        self.entries.payload(entry)
    }

    pub(crate) fn payload_mut(&mut self, entry: EntryIndex) -> &mut T {
        self.entries.payload_mut(entry)
    }

    /// Adds a list for entries that the wheel does not fire by itself.
    /// [`Wheel::unlink`] takes them off the list.
    pub(crate) fn add_list(&mut self) -> EntryIndex {
        self.entries.add_list()
    }

    pub(crate) fn append_to(&mut self, list: EntryIndex, entry: EntryIndex) {
        // The entry may come from a slot that is being sorted. Without the mark,
        // the heap passes over it.
        let stored = self.entries.get_mut(entry);
        stored.unmark(SORTING);
        self.entries.append(list, entry);
    }

    /// Makes `first` the first entry of a list of the owner, or empties the list if
    /// `first` is the list itself. The timers before it have been removed.
    #[inline]
    pub(crate) fn cut_before(&mut self, list: EntryIndex, first: EntryIndex) {
        self.entries.cut_before(list, first);
    }

    /// Returns the first entry of a list, or `None` if the list is empty.
    #[inline]
    pub(crate) fn first_of(&self, list: EntryIndex) -> Option<EntryIndex> {
        let first = self.entries.next(list);
        (first != list).then_some(first)
    }
}
