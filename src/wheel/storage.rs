//! Where entries live: one block of memory, links by index.
//!
//! Timers and the heads of the lists they hang on (sentinels) are entries of
//! the same block, so linking and unlinking have no special cases: they only
//! store to neighbours, and a store that misses the cache does not stall.

use super::block::{At, Block, Entry, ReserveError};
use super::moved::{MOVED, Moved};
use super::pass::Pass;
use super::stamp::Stamp;
use super::vacant::Vacant;

/// The coordinate of a list that no bit stands for.
pub(crate) const NO_COORDINATE: u32 = u32::MAX;

/// From which end of its list an entry comes to be filed again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Front,
    Back,
}

pub(crate) struct Storage<T> {
    pub(super) block: Block<T>,
    live: u32,
    pub(super) vacant: Vacant,
    pub(super) moved: Moved,
    /// How far shrinking has come, if it has begun.
    pub(super) pass: Option<Box<Pass>>,
}

impl<T> Storage<T> {
    /// A storage whose entry 0 is a sentinel: the head of the first list.
    pub(crate) fn new() -> (Storage<T>, At) {
        let mut storage = Storage {
            block: Block::new(),
            live: 0,
            vacant: Vacant::new(),
            moved: Moved::default(),
            pass: None,
        };
        let first = storage.add_sentinels(1, |_| NO_COORDINATE);
        (storage, first)
    }

    /// How many timers are stored.
    #[inline]
    pub(crate) fn live(&self) -> usize {
        self.live as usize
    }

    /// Makes room for `timers` timers in all, and `heads` more list heads,
    /// without growing again.
    pub(crate) fn try_reserve(&mut self, timers: usize, heads: usize) -> Result<(), ReserveError> {
        let more = timers.saturating_sub(self.live());
        self.block.try_reserve(more, heads)
    }

    /// Adds `count` list heads, each an empty list of its own, and returns
    /// the first. `coordinate(n)` is that of the n-th.
    pub(crate) fn add_sentinels(&mut self, count: u32, coordinate: impl Fn(u32) -> u32) -> At {
        let first = self.block.push_sentinel(coordinate(0));
        for n in 1..count {
            self.block.push_sentinel(coordinate(n));
        }
        first
    }

    /// The n-th sentinel of a block that [`Self::add_sentinels`] returned.
    #[inline]
    pub(crate) fn nth(&self, first: At, n: u32) -> At {
        let at = self.block.at(first.index() + n);
        at.expect("as many list heads as were added")
    }

    /// Stores a timer. It hangs on no list yet: link it.
    #[inline]
    pub(crate) fn insert(&mut self, deadline: u64, stamp: Stamp, payload: T) -> At {
        let Some(at) = self.vacant.take_last().or_else(|| self.pop_vacant()) else {
            return self.insert_at_end(deadline, stamp, payload);
        };
        self.block.fill(at, deadline, stamp, payload);
        self.live += 1;
        at
    }

    /// Takes an entry that was vacated before the last one, and asks for the one
    /// that will be taken some time after it.
    fn pop_vacant(&mut self) -> Option<At> {
        let at = self.vacant.top()?;
        let below = self.next(at);
        self.vacant.pop(below);
        self.prefetch(below);
        Some(at)
    }

    fn insert_at_end(&mut self, deadline: u64, stamp: Stamp, payload: T) -> At {
        let at = self.block.push_timer(deadline, stamp, payload);
        self.live += 1;
        at
    }

    /// Takes a timer out of its entry, which becomes vacant. Unlink it first.
    ///
    /// # Panics
    /// If the entry holds no timer.
    #[inline]
    pub(crate) fn remove(&mut self, at: At) -> T {
        let (stamp, payload) = self.block.vacate(at);
        if stamp.tag() & MOVED != 0 {
            self.moved.forget(stamp.sequence());
        }
        if let Some(before) = self.vacant.replace_last(at) {
            self.put_on_list(before);
        }
        self.live -= 1;
        payload
    }

    /// Takes a timer out of its entry for good: what is left of it stays on its
    /// list, and is not used again. For a storage that is being given up: it costs
    /// a visit to the entry and none to its neighbours. Nobody walks along lists
    /// any more, and no entry is taken away.
    ///
    /// # Panics
    /// If the entry holds no timer.
    #[inline]
    pub(crate) fn take_for_good(&mut self, at: At) -> T {
        let (stamp, payload) = self.block.vacate(at);
        if stamp.tag() & MOVED != 0 {
            self.moved.forget(stamp.sequence());
        }
        self.live -= 1;
        payload
    }

    #[inline]
    pub(super) fn put_on_list(&mut self, vacant: At) {
        if self.pass.as_ref().is_none_or(|pass| pass.lists(vacant)) {
            self.entry_mut(vacant).next = self.vacant.push(vacant);
        }
    }

    /// Whether every moved timer is known by where it is, and every vacant entry
    /// will be used again.
    #[cfg(test)]
    pub(crate) fn assert_consistent(&self) {
        let moved = |&at: &At| self.entry(at).stamp().tag() & MOVED != 0;
        let moved: Vec<At> = self.timers(0).filter(moved).collect();
        assert_eq!(moved.len(), self.moved.len());
        for at in moved {
            let sequence = self.entry(at).stamp().sequence();
            assert_eq!(self.find(self.index_of(at), sequence), Some(at));
            assert!(self.index_of(at) > at.index());
        }
        assert_eq!(self.timers(0).count(), self.live());
        if self.pass.is_none() {
            let cells = (0..self.used()).filter_map(|index| self.at(index));
            let vacant = cells.filter(|&at| self.is_vacant(at)).count();
            assert_eq!(vacant, self.vacant.len());
        }
    }

    /// Where the timer with this sequence number is, whose id says `index`.
    #[inline]
    pub(crate) fn find(&self, index: u32, sequence: u64) -> Option<At> {
        match self.find_at_home(index, sequence) {
            Some(at) => Some(at),
            None => self.find_moved(sequence),
        }
    }

    /// The entry at `index`, if it holds the timer with this sequence number.
    #[inline]
    pub(crate) fn find_at_home(&self, index: u32, sequence: u64) -> Option<At> {
        let at = self.at(index)?;
        let stamp = self.entry(at).stamp();
        (stamp.sequence() == sequence).then_some(at)
    }

    #[cold]
    #[inline(never)]
    fn find_moved(&self, sequence: u64) -> Option<At> {
        self.moved.find(sequence)
    }

    /// The index that a timer's id carries.
    #[inline]
    pub(crate) fn index_of(&self, at: At) -> u32 {
        let stamp = self.entry(at).stamp();
        match stamp.tag() & MOVED {
            0 => at.index(),
            _ => self.first_index_of(stamp),
        }
    }

    #[cold]
    #[inline(never)]
    fn first_index_of(&self, stamp: Stamp) -> u32 {
        let index = self.moved.first_index(stamp.sequence());
        index.expect("a moved timer is known")
    }

    /// The entry at `index`, if there is one, whoever lives in it.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<At> {
        self.block.at(index)
    }

    /// Whether an entry holds a timer.
    #[inline]
    pub(crate) fn is_timer(&self, at: At) -> bool {
        self.entry(at).stamp().is_timer()
    }

    /// Every entry that holds a timer and has an index of at least `from`.
    pub(crate) fn timers(&self, from: u32) -> impl Iterator<Item = At> + '_ {
        (from..self.block.used())
            .filter_map(|index| self.at(index))
            .filter(|&at| self.is_timer(at))
    }

    #[inline]
    pub(crate) fn payload(&self, at: At) -> &T {
        self.block.payload(at)
    }

    #[inline]
    pub(crate) fn payload_mut(&mut self, at: At) -> &mut T {
        self.block.payload_mut(at)
    }

    #[inline]
    pub(crate) fn entry(&self, at: At) -> &Entry {
        self.block.entry(at)
    }

    #[inline]
    pub(crate) fn entry_mut(&mut self, at: At) -> &mut Entry {
        self.block.entry_mut(at)
    }

    #[inline]
    pub(crate) fn next(&self, at: At) -> At {
        self.entry(at).next
    }

    #[inline]
    pub(crate) fn prev(&self, at: At) -> At {
        self.entry(at).prev
    }

    /// Hangs an entry behind the last one of `list`.
    #[inline]
    pub(crate) fn append(&mut self, list: At, at: At) {
        let mut entries = self.block.entries();
        let head = entries.get(list);
        let last = head.prev;
        head.prev = at;
        let entry = entries.get(at);
        entry.prev = last;
        entry.next = list;
        entries.get(last).next = at;
    }

    /// Hangs an entry on a list that is filled from both ends of another one:
    /// what comes from the front stands, in the order of the calls, before all
    /// that comes from the back, which stands the other way round. The list
    /// was empty when that began.
    #[inline]
    pub(crate) fn insert_at_middle(&mut self, list: At, at: At, from: End) {
        let head = self.entry(list);
        let middle = match head.next == list {
            true => list,
            false => self.nth(At::FIRST, (head.deadline >> u32::BITS) as u32),
        };
        let new_middle = match from {
            End::Front => at,
            End::Back => middle,
        };
        let mut entries = self.block.entries();
        let head = entries.get(list);
        head.deadline =
            u64::from(head.deadline as u32) | u64::from(new_middle.index()) << u32::BITS;
        let before = entries.get(middle);
        let next = before.next;
        before.next = at;
        let entry = entries.get(at);
        entry.prev = middle;
        entry.next = next;
        entries.get(next).prev = at;
    }

    /// The coordinate of a sentinel.
    #[inline]
    pub(crate) fn coordinate(&self, list: At) -> u32 {
        self.entry(list).deadline as u32
    }

    /// Takes an entry off its list. Returns the list if that is empty now.
    #[inline]
    pub(crate) fn unlink(&mut self, at: At) -> Option<At> {
        let mut entries = self.block.entries();
        let entry = entries.get(at);
        let (prev, next) = (entry.prev, entry.next);
        entries.get(prev).next = next;
        entries.get(next).prev = prev;
        // Only on a circle of two are both neighbours the same: the sentinel.
        (prev == next).then_some(prev)
    }

    /// Has an entry that hangs on no list, and will not for a while, lead to
    /// itself: so it is seen that it has no neighbours.
    pub(crate) fn set_aside(&mut self, at: At) {
        let entry = self.entry_mut(at);
        (entry.next, entry.prev) = (at, at);
    }

    /// Lets `list` begin at `first`, forgetting what hung before it; with the
    /// list itself as `first` it becomes empty.
    #[inline]
    pub(crate) fn cut_before(&mut self, list: At, first: At) {
        self.entry_mut(list).next = first;
        self.entry_mut(first).prev = list;
    }

    /// Asks the processor for an entry that will be read soon.
    #[inline]
    pub(crate) fn prefetch(&self, at: At) {
        self.block.prefetch(at);
    }
}

/// Every payload is dropped, even if one of them panics.
impl<T> Drop for Storage<T> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            let mut rest = Rest {
                storage: self,
                next: 0,
            };
            rest.drop_all();
        }
    }
}

/// What is still to be dropped of a storage.
struct Rest<'a, T> {
    storage: &'a mut Storage<T>,
    next: u32,
}

impl<T> Rest<'_, T> {
    fn drop_all(&mut self) {
        while let Some(at) = self.storage.at(self.next) {
            self.next += 1;
            if self.storage.is_timer(at) {
                drop(self.storage.remove(at));
            }
        }
    }
}

/// Goes on behind a payload that panicked, as a `Vec` does.
impl<T> Drop for Rest<'_, T> {
    fn drop(&mut self) {
        self.drop_all();
    }
}

#[cfg(test)]
mod tests;
