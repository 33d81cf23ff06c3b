//! The calls that a shard needs besides the public ones: entries by index, tags,
//! and lists of its own.

use super::entries::{EntryIndex, IN_HEAP, SORTING, Sorted, Stamp, Tag};
use super::{BinaryHeap, Wheel};
use crate::id::TimerId;
use crate::tick::Tick;

impl<T> Wheel<T> {
    #[inline]
    pub(crate) fn id(&self, entry: EntryIndex) -> TimerId {
        let index = self.entries.index_in_id(entry);
        TimerId::new(self.number, self.sequence(entry), index)
    }

    /// Returns the number of bytes of the wheel's entries, with the places of payloads.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.bytes()
    }

    /// Returns the sequence number of a timer. A younger timer has a higher one.
    pub(crate) fn sequence(&self, entry: EntryIndex) -> u64 {
        self.entries.get(entry).stamp.sequence()
    }

    /// Returns the sequence number of the youngest timer that the wheel ever had.
    pub(crate) fn youngest(&self) -> u64 {
        self.youngest.sequence()
    }

    pub(crate) fn find(&self, id: TimerId) -> Option<EntryIndex> {
        let (index, stamp) = (id.index_in(self.number)?, Stamp::of(id));
        match self.entries.find(index, stamp) {
            Some(entry) => Some(entry),
            None => self.entries.find_moved(index, stamp),
        }
    }

    /// Finds a timer by an id that is known to belong to this wheel.
    #[inline]
    pub(crate) fn find_own(&self, id: TimerId) -> Option<EntryIndex> {
        debug_assert!(id.is_of(self.number));
        // No owner of a shared wheel re-arms timers, so all are where their ids say.
        self.entries.find(id.index().into(), Stamp::of(id))
    }

    /// Prefetches the timer's entry.
    pub(crate) fn prefetch(&self, id: TimerId) {
        if let Some(entry) = self.entries.entry_at(id.index().into()) {
            self.entries.prefetch(entry);
        }
    }

    pub(crate) fn prefetch_entry(&self, entry: EntryIndex) {
        self.entries.prefetch(entry);
    }

    /// Loads the next entry on the way from the end of a tick's list to its beginning. A caller
    /// that does so for each due timer waits for two cold entries at a time, and no longer for
    /// any in the second half.
    #[inline(always)]
    pub(crate) fn look_ahead(&mut self) {
        self.ahead = self.entries.before(self.ahead);
    }

    /// Notes that a timer is not on any list for now.
    pub(crate) fn set_aside(&mut self, entry: EntryIndex) {
        self.entries.set_apart(entry);
    }

    /// Takes a timer's payload and frees its entry, which is not on any list.
    #[inline]
    pub(crate) fn remove(&mut self, entry: EntryIndex) -> T {
        let payload = self.entries.take(entry);
        self.entries.vacate(entry);
        payload
    }

    /// Takes a timer's payload, unlinks its entry and frees it.
    #[inline(always)]
    pub(crate) fn remove_linked(&mut self, entry: EntryIndex) -> T {
        self.unlink(entry);
        self.remove(entry)
    }

    /// Takes a timer's payload and leaves its entry on its list, in a wheel that is no longer
    /// used.
    pub(crate) fn take_for_good(&mut self, entry: EntryIndex) -> T {
        self.entries.take(entry)
    }

    /// Returns the deadline of a timer that has expired, in fewer instructions than
    /// [`Wheel::deadline_of`].
    pub(crate) fn expired_deadline_of(&self, entry: EntryIndex) -> Tick {
        Tick(self.entries.get(entry).deadline)
    }

    pub(crate) fn tag(&self, entry: EntryIndex) -> Tag {
        self.entries.get(entry).stamp.tag()
    }

    pub(crate) fn set_tag(&mut self, entry: EntryIndex, tag: Tag) {
        let header = self.entries.get_mut(entry);
        header.stamp = header.stamp.with(tag);
    }

    pub(crate) fn payload(&self, entry: EntryIndex) -> &T {
        self.entries.payload(entry)
    }

    pub(crate) fn payload_mut(&mut self, entry: EntryIndex) -> &mut T {
        self.entries.payload_mut(entry)
    }

    /// Returns one of the lists that were added for the owner, for entries that the wheel
    /// does not fire by itself. [`Wheel::unlink`] takes them off the list.
    pub(crate) fn list(&self, number: u32) -> EntryIndex {
        EntryIndex::list(self.slots.end() + number)
    }

    pub(crate) fn append_to(&mut self, list: EntryIndex, entry: EntryIndex) {
        // The entry may come from the heap. Without the mark, the heap passes over it.
        self.entries.get_mut(entry).unmark(SORTING);
        self.entries.append(list, entry);
    }

    /// Makes `first` the first entry of a list of the owner, or empties the list if
    /// `first` is the list itself. The timers before it have been removed.
    pub(crate) fn cut_before(&mut self, list: EntryIndex, first: EntryIndex) {
        self.entries.cut_before(list, first);
    }

    /// Returns the first entry of a list, or `None` if the list is empty.
    pub(crate) fn first_of(&self, list: EntryIndex) -> Option<EntryIndex> {
        self.entries.first_of(list)
    }

    /// Returns whether the wheel is empty and has memory that is worth giving back.
    pub(crate) fn is_worth_freeing(&self) -> bool {
        self.entries.is_worth_freeing()
    }

    /// Returns that memory, to be dropped after the lock is released.
    #[inline]
    pub(crate) fn give_back(&mut self) -> Option<impl Sized + use<T>> {
        self.is_worth_freeing().then(|| (self.entries.give_back(), self.take_idle_heap()))
    }

    /// Takes the memory in which lists were sorted, unless timers wait there.
    pub(crate) fn take_idle_heap(&mut self) -> Option<BinaryHeap<Sorted>> {
        self.entries.is_empty(IN_HEAP).then(|| core::mem::take(&mut self.heap))
    }

    /// Passes at most `budget` vacant entries behind the last timer. Gives their memory back
    /// once it has passed all of them, and returns whether it has.
    pub(crate) fn trim_some(&mut self, budget: &mut usize) -> bool {
        self.entries.trim_some(budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WheelNumber;
    use crate::wheel::{Advance, Geometry};

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
        assert_eq!(wheel.first_of(list), Some(at));
        wheel.assert_consistent_beside(1);
    }
}
