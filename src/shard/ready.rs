//! Expired timers, or unread reports, on their way to one queue's workers.
//!
//! They stay in their entries, linked to a list, so that they can be cancelled until a
//! worker takes them.

use std::collections::VecDeque;

use crate::stats::Histogram;
use crate::wheel::{EntryIndex, Wheel};

/// The number of entries that are prefetched before their turn. Without prefetching, each
/// entry is a cache miss that waits for the one before it, which takes four times as long
/// (DESIGN.md, "Workers prefetch what they take next").
pub(super) const PREFETCHED_AHEAD: usize = 12;

/// The maximum number of strays, entries that left the list out of turn, that `ahead`
/// keeps. If the list is longer than this, the list's length is the maximum.
const MOST_STRAYS: usize = 1_024;

/// The number of strays that one take passes over. Taking as many timers as one hold of
/// the shard's lock allows passes over as many strays as a walk passes cells.
const PASSED_PER_TAKE: usize = 256;

pub(crate) struct Ready {
    list: EntryIndex,
    len: usize,
    /// The entries to be taken next, in order, and strays among them. A worker that takes
    /// many takes these entries without a look at the list, so the entries must be
    /// forgotten before timers move to other entries.
    ahead: VecDeque<EntryIndex>,
    /// The number of entries at the front of `ahead` that were prefetched.
    prefetched: usize,
    /// Whether `ahead` contains the whole list.
    is_known: bool,
    /// Whether a bell for this list is in the queue's channel or with a worker. Always
    /// true while the list is not empty. A worker that answers a bell and leaves the list
    /// empty sets it to false.
    pub(crate) rung: bool,
}

impl Ready {
    pub(crate) fn new<B>(wheel: &Wheel<B>, queue: usize) -> Ready {
        Ready {
            list: wheel.list(queue as u32),
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
            if self.pass_one() != Some(first) {
                self.pass_strays(first);
            }
            self.prefetch_ahead(wheel);
        }
    }

    /// Takes out `ahead` for a worker that will take many, and prefetches the first
    /// entries. Returns nothing if there are strays. The worker gives it back with
    /// [`Ready::cut`].
    #[inline]
    pub(crate) fn begin_taking<B>(&mut self, wheel: &Wheel<B>) -> VecDeque<EntryIndex> {
        // All entries of the list are in `ahead`, so if there are no more, no other is.
        if self.len == 0 || !self.is_known || self.ahead.len() != self.len {
            return VecDeque::new();
        }
        self.prefetch_ahead(wheel);
        std::mem::take(&mut self.ahead)
    }

    /// Removes the first entries from the list, which the worker has taken from `ahead`.
    #[inline]
    pub(crate) fn cut<B>(
        &mut self,
        wheel: &mut Wheel<B>,
        mut ahead: VecDeque<EntryIndex>,
        taken: usize,
    ) {
        if ahead.is_empty() {
            return;
        }
        ahead.drain(..taken);
        self.prefetched = PREFETCHED_AHEAD.min(ahead.len());
        let first = ahead.front().copied();
        self.ahead = ahead;
        if taken > 0 {
            wheel.cut_before(self.list, first.unwrap_or(self.list));
            self.len -= taken;
            self.check_ahead();
        }
    }

    /// Removes strays before the list's first entry, and the entry itself, from `ahead`. If
    /// there are many, leaves some to the next takes, and the first entry becomes one of them.
    #[cold]
    fn pass_strays(&mut self, first: EntryIndex) {
        for _ in 0..PASSED_PER_TAKE {
            if self.pass_one().is_none_or(|passed| passed == first) {
                break;
            }
        }
    }

    #[inline]
    fn pass_one(&mut self) -> Option<EntryIndex> {
        let passed = self.ahead.pop_front()?;
        self.prefetched = self.prefetched.saturating_sub(1);
        Some(passed)
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

    /// Clears `ahead`. The entries on the list are then taken one after the other,
    /// without a prefetch.
    #[inline]
    pub(crate) fn forget_ahead(&mut self) {
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

/// What a call leaves to be done after the lock of the shard is released.
#[derive(Default)]
pub(crate) struct Signals {
    /// A queue whose bell is to be rung. There is rarely more than one, so the ticker
    /// rarely allocates; an allocation could make it wait for another thread.
    bell: Option<usize>,
    more_bells: Vec<usize>,
    /// Whether a task became ready although no timer came due. A loop that runs tasks
    /// itself must be woken for it.
    pub(crate) wake_driver: bool,
    /// Whether this shard will make no further report.
    pub(crate) settled: bool,
    /// Whether the last timer that a drain waited for is gone.
    pub(crate) drained: bool,
}

impl Signals {
    #[cold]
    pub(super) fn ring(&mut self, queue: usize) {
        match self.bell {
            None => self.bell = Some(queue),
            Some(_) => self.more_bells.push(queue),
        }
    }

    #[inline]
    pub(crate) fn bells(&self) -> impl Iterator<Item = usize> {
        self.bell.into_iter().chain(self.more_bells.iter().copied())
    }
}

/// The work on a shard's firings.
#[derive(Default)]
pub(crate) struct Work {
    /// The number of lent firings.
    pub(crate) held: usize,
    measured: Option<Box<Measured>>,
}

/// Times that are kept only if takes are measured.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) lateness_at_start: Histogram,
    pub(crate) durations: Histogram,
}

impl Work {
    pub(crate) fn measured(&self) -> Option<&Measured> {
        self.measured.as_deref()
    }

    pub(super) fn measure(&mut self) -> &mut Measured {
        self.measured.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WheelNumber;
    use crate::tick::Tick;
    use crate::wheel::{Geometry, Tag};

    /// Returns a wheel, a list, and the `count` entries on it.
    fn with_ready(count: usize) -> (Wheel<usize>, Ready, Vec<EntryIndex>) {
        let geometry = Geometry::new(64).unwrap();
        let mut wheel = Wheel::numbered(Tick(0), geometry, WheelNumber::reserve(1), 1);
        let mut ready = Ready::new(&wheel, 0);
        let mut entries = Vec::new();
        for n in 0..count {
            let at = wheel.insert(Tick(5), Tag(0), n);
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
    fn a_take_passes_over_a_bounded_number_of_strays() {
        const STRAYS: usize = 10 * PASSED_PER_TAKE;
        let (mut wheel, mut ready, entries) = with_ready(4 * STRAYS);
        for &at in &entries[..STRAYS] {
            ready.unlink(&mut wheel, at);
        }
        for &first in &entries[STRAYS..] {
            let before = ready.ahead.len();
            assert_eq!(take(&mut wheel, &mut ready), Some(first));
            assert!(before - ready.ahead.len() <= 1 + PASSED_PER_TAKE);
        }
        assert!(ready.ahead.is_empty());
    }

    #[test]
    fn entries_are_prefetched_again_once_takes_have_passed_all_strays() {
        const STRAYS: usize = 3 * PASSED_PER_TAKE;
        let (mut wheel, mut ready, entries) = with_ready(2 * STRAYS);
        for &at in &entries[..STRAYS] {
            ready.unlink(&mut wheel, at);
        }
        for _ in 0..4 {
            take(&mut wheel, &mut ready);
        }
        assert!(ready.ahead.iter().eq(&entries[STRAYS + 4..]));
        assert_eq!(ready.prefetched, PREFETCHED_AHEAD);
        assert_eq!(ready.begin_taking(&wheel).len(), STRAYS - 4);
    }

    #[test]
    fn many_are_taken_in_order_and_none_while_there_are_strays() {
        let (mut wheel, mut ready, entries) = with_ready(100);
        let ahead = ready.begin_taking(&wheel);
        assert!(ahead.iter().eq(&entries));
        ready.cut(&mut wheel, ahead, 40);
        assert_eq!((ready.len(), ready.prefetched), (60, PREFETCHED_AHEAD));
        ready.unlink(&mut wheel, entries[41]);
        assert!(ready.begin_taking(&wheel).is_empty());
        assert_eq!(take(&mut wheel, &mut ready), Some(entries[40]));
        assert_eq!(take(&mut wheel, &mut ready), Some(entries[42]));
        let ahead = ready.begin_taking(&wheel);
        assert_eq!(ahead.len(), 57);
        ready.cut(&mut wheel, ahead, 57);
        assert_eq!((ready.first(&wheel), ready.prefetched), (None, 0));
    }

    #[test]
    fn strays_take_a_bounded_place_and_an_empty_list_begins_anew() {
        let (mut wheel, mut ready, entries) = with_ready(1);
        for n in 0..5 * MOST_STRAYS {
            let at = wheel.insert(Tick(5), Tag(0), n);
            ready.append(&mut wheel, at);
            ready.unlink(&mut wheel, at);
            wheel.remove(at);
            assert!(ready.ahead.len() <= MOST_STRAYS + 2);
        }
        assert_eq!(take(&mut wheel, &mut ready), Some(entries[0]));
        let at = wheel.insert(Tick(5), Tag(0), 0);
        ready.append(&mut wheel, at);
        assert!(ready.ahead.iter().eq([&at]));
    }
}
