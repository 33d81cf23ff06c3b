//! The count of the timers that a drain waits for in one shard.

use crate::tick::Tick;
use crate::wheel::Cursor;

/// What one drain waits for in one shard.
#[derive(Clone, Copy)]
pub(crate) struct Awaited {
    /// One-shots that are due by this tick.
    pub(crate) last: Tick,
    /// So many of them in the cells that were counted.
    pub(crate) left: usize,
    /// Up to here.
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

/// Which of a shard's drains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DrainKey(pub(crate) usize);
