//! Expired timers, or unread reports, on their way to one queue's workers.
//!
//! They stay in their entries, linked to a list, so that they can be cancelled until a
//! worker takes them.

use std::collections::VecDeque;

use crate::wheel::{EntryIndex, Wheel};

/// The number of entries that are prefetched before their turn. Without prefetching, each
/// entry is a cache miss that waits for the one before it, which takes four times as long
/// (DESIGN.md, "Workers prefetch what they take next").
const PREFETCHED_AHEAD: usize = 12;

/// The maximum number of strays, entries that left the list out of turn, that `ahead`
/// keeps. If the list is longer than this, the list's length is the maximum.
const MOST_STRAYS: usize = 1_024;

pub(crate) struct Ready {
    list: EntryIndex,
    len: usize,
    /// The entries to be taken next, in order, and strays among them. Used only for
    /// prefetching.
    ahead: VecDeque<EntryIndex>,
    /// The number of entries at the front of `ahead` that were prefetched.
    prefetched: usize,
    /// Whether `ahead` contains the whole list.
    is_known: bool,
    /// Whether a bell for this list is in the queue's channel or with a worker. Always true
    /// while the list is not empty. A worker that answers a bell and leaves the list empty
    /// sets it to false.
    pub(crate) rung: bool,
}

impl Ready {
    pub(crate) fn new<B>(wheel: &mut Wheel<B>) -> Ready {
        Ready {
            list: wheel.add_list(),
            len: 0,
            ahead: VecDeque::new(),
            prefetched: 0,
            is_known: true,
            rung: false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn first<B>(&self, wheel: &Wheel<B>) -> Option<EntryIndex> {
        wheel.first_of(self.list)
    }

    /// Returns the first entry, for a worker that will take it, and prefetches the next
    /// ones.
    #[inline]
    pub(crate) fn first_to_take<B>(&mut self, wheel: &Wheel<B>) -> Option<EntryIndex> {
        let first = self.first(wheel)?;
        self.look_ahead(wheel, first);
        Some(first)
    }

    #[inline]
    fn look_ahead<B>(&mut self, wheel: &Wheel<B>, first: EntryIndex) {
        if self.is_known {
            self.pass_over(first);
            self.prefetch_ahead(wheel);
        }
    }

    /// Returns the entry after one that a worker takes, and prefetches the next ones. The
    /// worker takes all entries that it passes off the list with [`Ready::cut_before`].
    #[inline]
    pub(crate) fn pass<B>(&mut self, wheel: &Wheel<B>, at: EntryIndex) -> Option<EntryIndex> {
        self.look_ahead(wheel, at);
        wheel.next_on(self.list, at)
    }

    /// Removes the `passed` entries before `first` from the list, or all entries.
    #[inline]
    pub(crate) fn cut_before<B>(
        &mut self,
        wheel: &mut Wheel<B>,
        first: Option<EntryIndex>,
        passed: usize,
    ) {
        if passed > 0 {
            wheel.cut_before(self.list, first.unwrap_or(self.list));
            self.len -= passed;
            self.check_ahead();
        }
    }

    /// Removes the list's first entry, and all strays before it, from `ahead`.
    #[inline]
    fn pass_over(&mut self, first: EntryIndex) {
        while let Some(passed) = self.ahead.pop_front() {
            self.prefetched = self.prefetched.saturating_sub(1);
            if passed == first {
                break;
            }
        }
    }

    #[inline]
    fn prefetch_ahead<B>(&mut self, wheel: &Wheel<B>) {
        while self.prefetched < PREFETCHED_AHEAD {
            let Some(&next) = self.ahead.get(self.prefetched) else {
                break;
            };
            wheel.prefetch_entry(next);
            self.prefetched += 1;
        }
    }

    /// Appends an entry to the list. Returns whether to ring for it.
    #[inline]
    pub(crate) fn append<B>(&mut self, wheel: &mut Wheel<B>, at: EntryIndex) -> bool {
        wheel.append_to(self.list, at);
        self.len += 1;
        if self.is_known {
            self.ahead.push_back(at);
        }
        !std::mem::replace(&mut self.rung, true)
    }

    /// Removes an entry from any place in the list.
    #[inline]
    pub(crate) fn unlink<B>(&mut self, wheel: &mut Wheel<B>, at: EntryIndex) {
        wheel.unlink(at);
        self.len -= 1;
        self.check_ahead();
    }

    /// Clears `ahead` if there are too many strays.
    #[inline]
    fn check_ahead(&mut self) {
        let strays = self.ahead.len().saturating_sub(self.len);
        if self.len == 0 || strays > self.len.max(MOST_STRAYS) {
            self.forget_ahead();
        }
    }

    /// Clears `ahead`. The entries on the list are then taken without a prefetch.
    #[inline]
    fn forget_ahead(&mut self) {
        self.ahead.clear();
        self.prefetched = 0;
        self.is_known = self.len == 0;
    }

    /// Clears `ahead` and returns its memory.
    pub(crate) fn take_ahead(&mut self) -> VecDeque<EntryIndex> {
        let ahead = std::mem::take(&mut self.ahead);
        self.forget_ahead();
        ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tick::Tick;

    /// Returns a wheel, a list, and the `count` entries on it.
    fn with_ready(count: usize) -> (Wheel<usize>, Ready, Vec<EntryIndex>) {
        let mut wheel = Wheel::new(64);
        let mut ready = Ready::new(&mut wheel);
        let mut entries = Vec::new();
        for n in 0..count {
            let at = wheel.insert(Tick(5).0, 0, n);
            ready.append(&mut wheel, at);
            entries.push(at);
        }
        (wheel, ready, entries)
    }

    fn take(wheel: &mut Wheel<usize>, ready: &mut Ready) -> Option<EntryIndex> {
        let first = ready.first_to_take(wheel)?;
        ready.unlink(wheel, first);
        Some(first)
    }

    #[test]
    fn the_next_entries_are_prefetched_once_each() {
        let (mut wheel, mut ready, entries) = with_ready(100);
        for n in 1..100 {
            assert_eq!(take(&mut wheel, &mut ready), Some(entries[n - 1]));
            assert_eq!(ready.prefetched, PREFETCHED_AHEAD.min(100 - n));
            assert_eq!(ready.ahead.front(), Some(&entries[n]));
        }
    }

    #[test]
    fn an_entry_that_left_out_of_turn_is_passed_over() {
        let (mut wheel, mut ready, entries) = with_ready(100);
        take(&mut wheel, &mut ready);
        for &at in &entries[1..50] {
            ready.unlink(&mut wheel, at);
        }
        assert_eq!(take(&mut wheel, &mut ready), Some(entries[50]));
        assert!(ready.ahead.iter().eq(&entries[51..]));
        assert_eq!(ready.prefetched, PREFETCHED_AHEAD);
    }

    #[test]
    fn strays_take_a_bounded_place_and_an_empty_list_begins_anew() {
        let (mut wheel, mut ready, entries) = with_ready(1);
        for n in 0..5 * MOST_STRAYS {
            let at = wheel.insert(5, 0, n);
            ready.append(&mut wheel, at);
            ready.unlink(&mut wheel, at);
            wheel.remove(at);
            assert!(ready.ahead.len() <= MOST_STRAYS + 2);
        }
        assert_eq!(take(&mut wheel, &mut ready), Some(entries[0]));
        let at = wheel.insert(5, 0, 0);
        ready.append(&mut wheel, at);
        assert!(ready.ahead.iter().eq([&at]));
    }
}
