//! Allocating, growing and freeing the memory of a block, whatever its entries hold.

use alloc::alloc::{Layout, alloc, dealloc, realloc};
use core::fmt;
use core::ptr::{self, NonNull};

/// Entries start on a cache line, so that one of 32 bytes never straddles two.
pub(super) const ALIGNMENT: usize = 64;
pub(super) const FIRST_CAPACITY: u32 = 16;

/// A block of this many bytes or more grows by half instead of doubling. At most a
/// third of it is then unused.
const MEDIUM: usize = 32 << 10;

/// A block of this many bytes or more grows by a quarter.
const BIG: usize = 1 << 20;

/// A block of this many bytes or more grows by an eighth. The system often
/// extends it in place, and otherwise moves its pages (see docs/DESIGN.md,
/// "Memory").
const LARGE: usize = 32 << 20;

/// The number of bytes of a block that are given back at a time. It is limited,
/// because the system takes time for each page, and the caller may hold a lock.
const MOST_TRIMMED: usize = 4 << 20;

/// The reason why there is no room for the requested number of timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReserveError {
    /// A wheel cannot hold this many timers. It has fewer than 2^32 entries,
    /// including list heads. Spread the timers over several wheels.
    TooMany,
    /// The allocator does not have memory for this many timers. Reserve fewer.
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

/// Memory for a number of entries, side by side.
pub(super) struct Memory {
    /// The address of the first entry.
    base: NonNull<u8>,
    /// The allocated memory, and the number of bytes in it before `base`.
    allocated: *mut u8,
    skipped: usize,
    capacity: u32,
    /// The layout of one entry.
    entry: Layout,
}

impl Memory {
    /// Creates a memory that has not allocated anything yet.
    pub(super) fn new(entry: Layout) -> Memory {
        Memory {
            base: NonNull::dangling(),
            allocated: ptr::null_mut(),
            skipped: 0,
            capacity: 0,
            entry,
        }
    }

    /// Returns the address of the first of `capacity` entries.
    #[inline]
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    #[inline]
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Reallocates, and keeps the first `used` entries. The system moves a large
    /// block's pages instead of copying them, which matters because a thread that
    /// grows an engine's shard holds the shard's lock.
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
    /// an eighth more. Returns whether nothing more can be given back.
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

    /// Makes room for `capacity` entries, which must suffice for those in use. Returns
    /// whether this succeeded. Changes nothing if it fails.
    fn reallocate(&mut self, used: u32, capacity: usize) -> bool {
        assert!(used <= self.capacity && used as usize <= capacity);
        let Some(layout) = self.layout(capacity) else {
            return false;
        };
        let old = self.layout(self.capacity as usize);
        let block = match old.filter(|_| self.capacity > 0) {
            // SAFETY: the layout's size is not zero, as it has room for aligning.
            None => unsafe { alloc(layout) },
            // SAFETY: the block was allocated with the layout for its current
            // capacity.
            Some(old) => unsafe { realloc(self.allocated, old, layout.size()) },
        };
        if block.is_null() {
            return false;
        }
        let (was, is) = (self.skipped, skip(block));
        if was != is {
            // SAFETY: both places lie inside the new block, which has room for the
            // entries in use and for the largest number of skipped bytes.
            unsafe {
                let bytes = used as usize * self.entry.size();
                ptr::copy(block.add(was), block.add(is), bytes);
            }
        }
        (self.allocated, self.skipped) = (block, is);
        // SAFETY: the address lies inside the block, which is not null.
        self.base = unsafe { NonNull::new_unchecked(block.add(is)) };
        self.capacity = capacity as u32;
        true
    }

    /// Returns the capacity to grow to when this one is full.
    pub(super) fn capacity_after(&self, capacity: usize) -> usize {
        match capacity * self.entry.size() {
            LARGE.. => capacity + capacity / 8,
            BIG.. => capacity + capacity / 4,
            MEDIUM.. => capacity + capacity / 2,
            _ => (capacity * 2).max(FIRST_CAPACITY as usize),
        }
    }

    /// Returns a layout that leaves room for aligning, but does not request the
    /// alignment, because an aligned layout would make every `realloc` a copy.
    pub(super) fn layout(&self, capacity: usize) -> Option<Layout> {
        let entries = self.entry.size().checked_mul(capacity)?;
        let size = entries.checked_add(ALIGNMENT)?;
        Layout::from_size_align(size, self.entry.align()).ok()
    }
}

/// Returns the number of bytes in a block before its first entry.
fn skip(block: *const u8) -> usize {
    block.addr().wrapping_neg() % ALIGNMENT
}

/// Gives the memory back, and does not drop the values in it.
impl Drop for Memory {
    fn drop(&mut self) {
        let layout = self.layout(self.capacity as usize);
        if let Some(layout) = layout.filter(|_| self.capacity > 0) {
            // SAFETY: the block was allocated with this layout in `reallocate`.
            unsafe { dealloc(self.allocated, layout) }
        }
    }
}
