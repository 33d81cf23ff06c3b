//! The level below a slot whose turn has come, where a cascade sends most of the
//! slot's entries.

use super::super::entries::{Entries, EntryIndex, LANES};
use super::Levels;

/// The level below a slot whose turn has come. Most of the slot's entries go there,
/// each to the same lane, so their new lists are found in fewer steps than by
/// [`Levels::place`].
pub(crate) struct Below {
    /// The start of the slot whose turn has come.
    now: u64,
    /// The binary logarithm of the number of ticks per slot.
    shift: u32,
    /// The first slot to which entries go, and the number of slots from there on.
    /// Entries of slot 0 go to lower levels, if there are any.
    least: u64,
    slots: u64,
    /// The head of slot 0's first lane, and the word of that lane in `occupied`.
    first: EntryIndex,
    first_word: usize,
    lane_shift: u32,
}

/// One of the lists of a level below.
pub(crate) struct List {
    head: EntryIndex,
    /// The word of `occupied`, and the bit in it.
    word: usize,
    slot: u64,
}

impl Below {
    /// Returns the slot for a deadline, if it belongs to this level.
    #[inline]
    pub(crate) fn slot(&self, deadline: u64) -> Option<u64> {
        let slot = (deadline ^ self.now) >> self.shift;
        (slot.wrapping_sub(self.least) < self.slots).then_some(slot)
    }

    /// Returns the list of this slot and lane.
    #[inline]
    pub(crate) fn list<T>(&self, entries: &Entries<T>, slot: u64, lane: usize) -> List {
        List {
            head: entries.nth(
                self.first,
                ((slot as usize * LANES + lane) >> self.lane_shift) as u32,
            ),
            word: self.first_word + lane,
            slot,
        }
    }
}

impl Levels {
    /// Returns the level below `level`, of which a slot has its turn at `now`. Returns
    /// `None` if a level has more than 64 slots, if the size is not a power of two, or
    /// if the level below has not been needed yet.
    pub(crate) fn below(&self, level: usize, now: u64) -> Option<Below> {
        let (bits, level) = (self.geometry.bits()?, level - 1);
        let shift = level as u32 * bits;
        let begins_now = now.trailing_zeros() >= shift + bits;
        if !self.can_have_lanes() || !begins_now {
            return None;
        }
        let least = u64::from(level > 0);
        Some(Below {
            now,
            shift,
            least,
            slots: self.geometry.size() as u64 - least,
            first: self.first_head(level)?,
            first_word: level * self.stride,
            lane_shift: self.lane_shift,
        })
    }

    /// Appends an entry to `list`.
    #[inline]
    pub(crate) fn append_to<T>(&mut self, entries: &mut Entries<T>, list: List, entry: EntryIndex) {
        entries.append(list.head, entry);
        self.occupied[list.word] |= 1 << list.slot;
    }

    /// Appends an entry to `list`, which may end with a younger one.
    #[inline]
    pub(crate) fn append_to_checked<T>(
        &mut self,
        entries: &mut Entries<T>,
        list: List,
        entry: EntryIndex,
    ) {
        let (word, slot) = (list.word, list.slot as usize);
        self.append_to(entries, list, entry);
        self.mark_if_out_of_order(entries, word, slot, entry);
    }
}
