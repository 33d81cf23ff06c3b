//! Vacated entries, the last one first.
//!
//! They lead to each other themselves. As one list they would be a chain of
//! cache misses where many were vacated in random order, or by another thread:
//! which one is next is known only when the one before has arrived. So these
//! are several lists, used in turn: what will be needed next is known some
//! entries ahead, and can be asked for (measured, a million timers after as
//! many were cancelled in random order: 160 to 200 ns each became 27 to 40).

use super::block::At;

const LISTS: usize = 8;

/// A stack. What is below an entry in its list is kept in the entry, by the
/// storage.
///
/// Whose turn it is follows from how many timers are stored, `live`: it is one
/// less for each entry that is vacated, and one more for each that is used
/// again. An entry that was never used before counts too, but only while all
/// lists are empty, when none of them is ahead of the others.
pub(super) struct Vacant {
    /// The last one that was vacated, or [`At::FIRST`]: where one is cancelled
    /// and the next scheduled, nothing else is touched.
    last: At,
    /// The first of each list, or [`At::FIRST`].
    lists: [At; LISTS],
}

impl Vacant {
    pub(super) fn new() -> Vacant {
        Vacant {
            last: At::FIRST,
            lists: [At::FIRST; LISTS],
        }
    }

    /// Puts an entry here. The one that was put here last, if it still is here,
    /// is to go on a list.
    #[inline]
    pub(super) fn replace_last(&mut self, at: At) -> Option<At> {
        let before = core::mem::replace(&mut self.last, at);
        (before != At::FIRST).then_some(before)
    }

    /// Takes the one that was put here last, unless it is gone.
    #[inline]
    pub(super) fn take_last(&mut self) -> Option<At> {
        self.replace_last(At::FIRST)
    }

    /// Puts an entry on a list while there are `live` timers, and returns what
    /// is below it.
    #[inline]
    pub(super) fn push(&mut self, at: At, live: u32) -> At {
        core::mem::replace(&mut self.lists[live as usize % LISTS], at)
    }

    /// What is to be taken from the lists while there are `live` timers.
    #[inline]
    pub(super) fn top(&self, live: u32) -> Option<At> {
        let top = self.lists[live as usize % LISTS];
        (top != At::FIRST).then_some(top)
    }

    /// Takes that one, below which is `below`.
    #[inline]
    pub(super) fn pop(&mut self, below: At, live: u32) {
        self.lists[live as usize % LISTS] = below;
    }
}
