//! The count of the timers that a drain waits for in one shard.

use crate::tick::Tick;
use crate::wheel::Cursor;

/// The timers that one drain waits for in one shard.
#[derive(Clone, Copy)]
pub(crate) struct Awaited {
    /// The last tick at which an awaited one-shot is due.
    pub(crate) last: Tick,
    /// The number of awaited one-shots in the cells counted so far.
    pub(crate) left: usize,
    /// The position up to which cells have been counted.
    pub(crate) counted: Cursor,
}

impl Awaited {
    pub(crate) fn is_counted(&self) -> bool {
        self.counted == Cursor::END
    }

    pub(crate) fn is_nothing_left(&self) -> bool {
        self.is_counted() && self.left == 0
    }
}

/// The index of a drain among those of its shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DrainKey(pub(crate) usize);
