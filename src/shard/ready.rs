//! Expired timers, or unread reports, on their way to one queue's workers.
//!
//! They stay in their entries, linked to a list, so that they can be cancelled until a
//! worker takes them.

use std::collections::VecDeque;

use crate::wheel::{EntryIndex, Wheel};

/// How far before its turn an entry is prefetched. Without that, each entry is a cache miss
/// that waits for the one before it (DESIGN.md, "Workers prefetch what they take next").
pub(super) const AHEAD: usize = 12;

pub(crate) struct Ready {
    list: EntryIndex,
    len: usize,
    /// What was appended last, as many entries as the list has. Those of them that have left
    /// from its middle stand in for the first ones, until takes have passed them.
    hints: VecDeque<EntryIndex>,
    /// Whether a bell for this list is in the queue's channel or with a worker. Always
    /// true while the list is not empty. A worker that answers a bell and leaves the list
    /// empty sets it to false.
    pub(crate) rung: bool,
}

impl Ready {
    pub(crate) fn new<B>(wheel: &Wheel<B>, queue: usize) -> Ready {
        Ready { list: wheel.list(queue as u32), len: 0, hints: VecDeque::new(), rung: false }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of bytes of the hints.
    pub(crate) fn bytes(&self) -> usize {
        self.hints.capacity() * size_of::<EntryIndex>()
    }

    #[inline]
    pub(crate) fn first<B>(&self, wheel: &Wheel<B>) -> Option<EntryIndex> {
        wheel.entries.first_of(self.list)
    }

    /// Returns the first entry, for a worker that takes it, and prefetches a later one.
    #[inline]
    pub(crate) fn first_to_take<B>(&self, wheel: &Wheel<B>) -> Option<EntryIndex> {
        if let Some(&hint) = self.hints.get(AHEAD) {
            wheel.entries.prefetch(hint);
        }
        self.first(wheel)
    }

    /// Takes out the hints for a worker that will take many, if they are exactly the entries of
    /// the list, and otherwise nothing. The worker gives them back with [`Ready::cut`].
    #[inline]
    pub(crate) fn begin_taking<B>(&mut self, wheel: &Wheel<B>) -> VecDeque<EntryIndex> {
        let Some(first) = self.first(wheel) else {
            return VecDeque::new();
        };
        // There are as many hints as entries. If both begin alike, none of the others has left.
        let is_exact = self.hints.len() == self.len && self.hints.front() == Some(&first);
        if is_exact { std::mem::take(&mut self.hints) } else { VecDeque::new() }
    }

    /// Appends an entry to the list. Returns whether to ring for it.
    #[inline]
    pub(crate) fn append<B>(&mut self, wheel: &mut Wheel<B>, at: EntryIndex) -> bool {
        wheel.append_to(self.list, at);
        self.len += 1;
        self.hints.push_back(at);
        !std::mem::replace(&mut self.rung, true)
    }

    /// Removes an entry from any place in the list.
    #[inline]
    pub(crate) fn unlink<B>(&mut self, wheel: &mut Wheel<B>, at: EntryIndex) {
        wheel.unlink(at);
        self.len -= 1;
        if self.hints.len() > self.len {
            self.hints.pop_front();
        }
    }

    /// Removes the first entries from the list, which the worker has taken, and takes back the
    /// hints.
    #[inline]
    pub(crate) fn cut<B>(
        &mut self,
        wheel: &mut Wheel<B>,
        mut hints: VecDeque<EntryIndex>,
        taken: usize,
    ) {
        if hints.is_empty() {
            return;
        }
        hints.drain(..taken);
        let first = hints.front().copied();
        self.hints = hints;
        if taken > 0 {
            wheel.entries.cut_before(self.list, first.unwrap_or(self.list));
            self.len -= taken;
        }
    }

    /// Forgets the hints and returns their memory.
    pub(crate) fn take_hints(&mut self) -> VecDeque<EntryIndex> {
        std::mem::take(&mut self.hints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WheelNumber;
    use crate::tick::Tick;
    use crate::wheel::{Geometry, Tag};

    /// Returns a wheel, a list, and the hundred entries on it.
    fn with_ready() -> (Wheel<usize>, Ready, Vec<EntryIndex>) {
        let geometry = Geometry::new(64).unwrap();
        let mut wheel = Wheel::numbered(Tick(0), geometry, WheelNumber::reserve(1), 1);
        let mut ready = Ready::new(&wheel, 0);
        let entries: Vec<_> = (0..100).map(|n| wheel.insert(Tick(5), Tag(0), n)).collect();
        entries.iter().for_each(|&at| _ = ready.append(&mut wheel, at));
        (wheel, ready, entries)
    }

    #[test]
    fn the_hints_are_the_entries_to_be_taken() {
        let (mut wheel, mut ready, entries) = with_ready();
        ready.unlink(&mut wheel, entries[0]);
        let hints = ready.begin_taking(&wheel);
        assert!(hints.iter().eq(&entries[1..]));
        ready.cut(&mut wheel, hints, 9);
        assert!(ready.hints.iter().eq(&entries[10..]));
        assert_eq!((ready.len(), ready.first(&wheel)), (90, Some(entries[10])));
        let hints = ready.begin_taking(&wheel);
        ready.cut(&mut wheel, hints, 90);
        assert_eq!((ready.len(), ready.first(&wheel)), (0, None));
        assert!(ready.hints.is_empty() && ready.hints.capacity() > 0);
        assert!(ready.begin_taking(&wheel).is_empty() && ready.hints.capacity() > 0);
    }

    #[test]
    fn many_are_taken_only_if_the_hints_are_exact() {
        let (mut wheel, mut ready, entries) = with_ready();
        ready.unlink(&mut wheel, entries[40]);
        for &at in &entries[..40] {
            assert!(ready.begin_taking(&wheel).is_empty());
            assert_eq!(ready.first_to_take(&wheel), Some(at));
            ready.unlink(&mut wheel, at);
        }
        let hints = ready.begin_taking(&wheel);
        assert!(hints.iter().eq(&entries[41..]));
        ready.cut(&mut wheel, hints, 0);
        ready.unlink(&mut wheel, entries[99]);
        ready.append(&mut wheel, entries[99]);
        assert!(ready.begin_taking(&wheel).is_empty());
    }

    #[test]
    fn there_are_no_more_hints_than_entries() {
        let (mut wheel, mut ready, entries) = with_ready();
        for (left, &at) in entries.iter().rev().enumerate() {
            assert_eq!((ready.hints.len(), ready.len()), (100 - left, 100 - left));
            ready.unlink(&mut wheel, at);
        }
        entries.iter().for_each(|&at| _ = ready.append(&mut wheel, at));
        assert!(ready.take_hints().iter().eq(&entries));
        ready.unlink(&mut wheel, entries[0]);
        ready.append(&mut wheel, entries[0]);
        assert!(ready.hints.iter().eq(&entries[..1]));
    }
}
