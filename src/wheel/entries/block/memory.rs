//! The memory of a block: allocated, grown and given back, whatever stands in it.

use core::fmt;
use core::ptr::{self, NonNull};
use std::alloc::{Layout, alloc, dealloc, realloc};

/// Entries start on a cache line, so that one of 32 bytes never straddles two.
pub(super) const ALIGNMENT: usize = 64;
pub(super) const FIRST_CAPACITY: u32 = 64;

/// A block of so many bytes grows by an eighth instead of doubling, so that at
/// most a ninth of it is unused. The system moves its pages if it must, and often
/// extends it in place (see docs/DESIGN.md, "Storage grows by `realloc`").
const LARGE: usize = 32 << 20;

/// How many bytes of a block are given back at a time: the system takes its time
/// for each page, and the caller may hold a lock.
const MOST_TRIMMED: usize = 4 << 20;

/// Why there is no room for the requested number of timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReserveError {
    /// No wheel holds so many timers: it has fewer than 2^32 entries, including
    /// list heads. Spread the timers over several wheels.
    TooMany,
    /// The allocator has no memory for so many timers. Reserve fewer.
    NoMemory,
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReserveError::TooMany => "a wheel holds at most 2^32 - 1 entries; reserve fewer",
            ReserveError::NoMemory => "no memory for so many timers; reserve fewer",
        })
    }
}

impl core::error::Error for ReserveError {}

/// Room for a number of entries, side by side.
pub(super) struct Memory {
    /// Where the first entry stands.
    base: NonNull<u8>,
    /// The allocated memory, and how many bytes of it come before `base`.
    allocated: *mut u8,
    skipped: usize,
    capacity: u32,
    /// The layout of one entry.
    entry: Layout,
}

impl Memory {
    /// Room for no entry yet.
    pub(super) fn new(entry: Layout) -> Memory {
        Memory {
            base: NonNull::dangling(),
            allocated: ptr::null_mut(),
            skipped: 0,
            capacity: 0,
            entry,
        }
    }

    /// Where the first entry stands: the start of `capacity` entries.
    #[inline]
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    #[inline]
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Reallocates, with the first `used` entries in it. The system moves a large
    /// block's pages instead of copying them: a thread that grows an engine's
    /// shard holds its lock.
    #[cold]
    pub(super) fn grow(&mut self, used: u32, wanted: usize) -> Result<(), ReserveError> {
        let capacity = wanted
            .max(self.capacity_after(self.capacity as usize))
            .min(u32::MAX as usize);
        if wanted > capacity {
            return Err(ReserveError::TooMany);
        }
        match self.reallocate(used, capacity) {
            true => Ok(()),
            false => Err(ReserveError::NoMemory),
        }
    }

    /// Gives back some of the memory that the entries do not need, but leaves them
    /// an eighth more. Returns whether that was all.
    pub(super) fn trim_some(&mut self, used: u32) -> bool {
        let entries = used as usize;
        let least = (entries + entries / 8).max(FIRST_CAPACITY as usize);
        let capacity = self.capacity as usize;
        if capacity <= least {
            return true;
        }
        let wanted = least.max(capacity.saturating_sub(MOST_TRIMMED / self.entry.size()));
        !self.reallocate(used, wanted) || wanted == least
    }

    /// Makes room for `capacity` entries, at least as many as are used. Returns
    /// whether that succeeded; otherwise nothing has changed.
    fn reallocate(&mut self, used: u32, capacity: usize) -> bool {
        assert!(used <= self.capacity && used as usize <= capacity);
        let Some(layout) = self.layout(capacity) else {
            return false;
        };
        let old = self.layout(self.capacity as usize);
        let block = match old.filter(|_| self.capacity > 0) {
            // SAFETY: the size of a layout is not zero: it has room to align in.
            None => unsafe { alloc(layout) },
            // SAFETY: the block was allocated with the layout for the capacity
            // that it has.
            Some(old) => unsafe { realloc(self.allocated, old, layout.size()) },
        };
        if block.is_null() {
            return false;
        }
        let (was, is) = (self.skipped, skip(block));
        if was != is {
            // SAFETY: both places lie inside the new block, which has room for the
            // entries in use and for the most bytes that are skipped.
            unsafe {
                let bytes = used as usize * self.entry.size();
                ptr::copy(block.add(was), block.add(is), bytes);
            }
        }
        (self.allocated, self.skipped) = (block, is);
        // SAFETY: inside the block, which is not null.
        self.base = unsafe { NonNull::new_unchecked(block.add(is)) };
        self.capacity = capacity as u32;
        true
    }

    /// The capacity that follows a full one.
    pub(super) fn capacity_after(&self, capacity: usize) -> usize {
        match capacity * self.entry.size() < LARGE {
            true => (capacity * 2).max(FIRST_CAPACITY as usize),
            false => capacity + capacity / 8,
        }
    }

    /// The layout does not ask for the alignment, but leaves room to align in:
    /// an aligned layout would make every `realloc` a copy.
    pub(super) fn layout(&self, capacity: usize) -> Option<Layout> {
        let entries = self.entry.size().checked_mul(capacity)?;
        let size = entries.checked_add(ALIGNMENT)?;
        Layout::from_size_align(size, self.entry.align()).ok()
    }
}

/// How many bytes of a block come before its first entry.
fn skip(block: *const u8) -> usize {
    block.addr().wrapping_neg() % ALIGNMENT
}

/// Gives the memory back, and drops nothing that stands in it.
impl Drop for Memory {
    fn drop(&mut self) {
        let layout = self.layout(self.capacity as usize);
        if let Some(layout) = layout.filter(|_| self.capacity > 0) {
            // SAFETY: the block was allocated with this layout in `reallocate`.
            unsafe { dealloc(self.allocated, layout) }
        }
    }
}
