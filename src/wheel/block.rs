//! The memory that entries and payloads live in: all of the wheel's `unsafe`.
//!
//! Entries stand side by side in one block, which is what lets a link be an
//! index. Small payloads stand in their entries. Large ones, and those that
//! want to be aligned more than the allocator does by itself, have a *cell*
//! each, which never moves: an entry then holds the cell's address, and keeps
//! the cell while it is vacant. So a list head, which is an entry too, is small
//! whatever the payload, and the block is never one that `realloc` has to copy
//! for its alignment.
//!
//! The argument for all that is unsafe here is two sentences. An [`At`] is made
//! only here, for an entry below `used`, and
//! [`Block::pop`] and [`Block::truncate`], which alone make `used` smaller, are
//! called by `shrink.rs` only, which says there why nobody holds an `At` of what
//! they take away. A payload is initialised exactly while its entry's stamp is a timer's,
//! and only this file changes a stamp from one kind to another.

use core::fmt;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, offset_of};
use core::ptr::{self, NonNull};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};

use super::stamp::Stamp;

/// The index of an entry that exists in the storage it was obtained from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct At(u32);

impl At {
    /// Of the entry that is always there: a sentinel, and never vacant.
    pub(crate) const FIRST: At = At(0);

    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.0
    }
}

/// One cell of a block: a timer, the head of a list, or vacant. The payload
/// stands behind it.
#[repr(C)]
pub(crate) struct Entry {
    /// A timer's deadline. For a sentinel, in the lower half its coordinate:
    /// the bit that says whether its list holds anything (see `levels.rs`); in
    /// the upper half its middle (see [`Storage::insert_at_middle`]).
    ///
    /// [`Storage::insert_at_middle`]: super::storage::Storage::insert_at_middle
    pub(crate) deadline: u64,
    stamp: Stamp,
    pub(super) next: At,
    pub(super) prev: At,
}

impl Entry {
    #[inline]
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Gives a timer another tag.
    #[inline]
    pub(crate) fn set_tag(&mut self, tag: u16) {
        debug_assert!(self.stamp.is_timer());
        self.stamp = self.stamp.tagged(tag);
    }

    /// Sets bits of a timer's tag.
    #[inline]
    pub(crate) fn mark(&mut self, bits: u16) {
        self.stamp = self.stamp.with(bits);
    }

    /// Clears bits of a timer's tag.
    #[inline]
    pub(crate) fn unmark(&mut self, bits: u16) {
        self.stamp = self.stamp.without(bits);
    }
}

/// An entry and a payload that stands in it.
#[repr(C)]
struct Inline<T> {
    entry: Entry,
    payload: MaybeUninit<T>,
}

/// An entry and the address of its payload's cell: null where it has none.
#[repr(C)]
struct Outline<T> {
    entry: Entry,
    cell: *mut MaybeUninit<T>,
}

/// Entries start on a cache line, so that one of 32 bytes never straddles two.
const ALIGNMENT: usize = 64;
const FIRST_CAPACITY: u32 = 64;

/// An entry with its payload in it takes two cache lines at most.
const MOST_INLINE: usize = 128;
/// Up to this alignment a `realloc` is the allocator's own, and no copy.
const MOST_ALIGNED: usize = 2 * size_of::<usize>();

/// A block of so many bytes grows by an eighth and not to the double, so that at
/// most a ninth of it is unused: the system moves its pages, if it must, and often
/// makes it longer where it is (see docs/DESIGN.md, "Storage grows by `realloc`").
const LARGE: usize = 32 << 20;

/// How many bytes of a block are given back at a time: the system takes its time
/// for each page, and the caller may hold a lock.
const MOST_TRIMMED: usize = 4 << 20;
const MOST_CELLS_TRIMMED: usize = 256;

/// Why there is no room for as many timers as were asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReserveError {
    /// A wheel never holds so many: list heads included it has fewer than 2^32
    /// entries. Spread the timers over several wheels.
    TooMany,
    /// The allocator has no memory for so many. Reserve fewer.
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

pub(super) struct Block<T> {
    /// The first entry.
    base: NonNull<u8>,
    /// What was allocated, and how many bytes of it come before `base`.
    allocated: *mut u8,
    skipped: usize,
    capacity: u32,
    /// Entries `0..used` are initialised.
    used: u32,
    /// Cells that no entry has so far.
    spare: Vec<NonNull<MaybeUninit<T>>>,
    owns: PhantomData<T>,
}

// SAFETY: a block owns its entries and payloads and hands out access only
// through its own borrows, as a `Vec<T>` would.
unsafe impl<T: Send> Send for Block<T> {}
// SAFETY: as above; a shared borrow only reads.
unsafe impl<T: Sync> Sync for Block<T> {}

impl<T> Block<T> {
    const INLINE: bool =
        size_of::<Inline<T>>() <= MOST_INLINE && align_of::<Inline<T>>() <= MOST_ALIGNED;

    /// How far apart entries stand.
    const STRIDE: usize = match Self::INLINE {
        true => size_of::<Inline<T>>(),
        false => size_of::<Outline<T>>(),
    };

    pub(super) fn new() -> Block<T> {
        Block {
            base: NonNull::dangling(),
            allocated: ptr::null_mut(),
            skipped: 0,
            capacity: 0,
            used: 0,
            spare: Vec::new(),
            owns: PhantomData,
        }
    }

    #[inline]
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// How many entries have a cell.
    #[cfg(test)]
    pub(super) fn cells(&self) -> usize {
        let cells = (0..self.used).map(|n| self.place(At(n)));
        cells.filter(|cell| !cell.is_null()).count()
    }

    #[cfg(test)]
    pub(super) fn spare_cells(&self) -> usize {
        self.spare.len()
    }

    /// The entry at `index`, if there is one, whoever lives in it.
    #[inline]
    pub(super) fn at(&self, index: u32) -> Option<At> {
        (index < self.used).then_some(At(index))
    }

    #[inline]
    pub(super) fn is_vacant(&self, at: At) -> bool {
        self.entry(at).stamp == Stamp::VACANT
    }

    #[inline]
    fn address(&self, at: At) -> *mut u8 {
        debug_assert!(at.0 < self.used);
        // SAFETY: an `At` is in bounds (see the top of this file).
        unsafe { self.base.as_ptr().add(at.0 as usize * Self::STRIDE) }
    }

    #[inline]
    pub(super) fn entry(&self, at: At) -> &Entry {
        // SAFETY: the entries below `used` are initialised.
        unsafe { &*self.address(at).cast() }
    }

    #[inline]
    pub(super) fn entry_mut(&mut self, at: At) -> &mut Entry {
        // SAFETY: as in `entry`, and `self` is borrowed mutably.
        unsafe { &mut *self.address(at).cast() }
    }

    /// The entries, with the block's address at hand: the compiler would load
    /// it again after every store to an entry.
    #[inline]
    pub(super) fn entries(&mut self) -> Entries<'_, T> {
        Entries {
            base: self.base,
            used: self.used,
            borrows: PhantomData,
        }
    }

    /// Where an entry's payload stands; null for one that has no cell.
    #[inline]
    fn place(&self, at: At) -> *mut MaybeUninit<T> {
        let entry = self.address(at);
        match Self::INLINE {
            // SAFETY: inside the entry, which is an `Inline<T>`.
            true => unsafe { entry.add(offset_of!(Inline<T>, payload)).cast() },
            // SAFETY: the entry is an `Outline<T>`, and initialised.
            false => unsafe { (*entry.cast::<Outline<T>>()).cell },
        }
    }

    #[inline]
    pub(super) fn payload(&self, at: At) -> &T {
        assert!(self.entry(at).stamp.is_timer());
        // SAFETY: the entry holds a timer, so its payload is initialised.
        unsafe { (*self.place(at)).assume_init_ref() }
    }

    #[inline]
    pub(super) fn payload_mut(&mut self, at: At) -> &mut T {
        assert!(self.entry(at).stamp.is_timer());
        // SAFETY: the entry holds a timer, so its payload is initialised.
        unsafe { (*self.place(at)).assume_init_mut() }
    }

    /// Stores a timer in a vacant entry.
    #[inline]
    pub(super) fn fill(&mut self, at: At, deadline: u64, stamp: Stamp, payload: T) {
        debug_assert!(stamp.is_timer() && self.entry(at).stamp == Stamp::VACANT);
        self.put_payload(at, payload);
        let entry = self.entry_mut(at);
        entry.deadline = deadline;
        entry.stamp = stamp;
    }

    #[inline]
    fn put_payload(&mut self, at: At, payload: T) {
        if !Self::INLINE && self.place(at).is_null() {
            let cell = self.spare.pop().unwrap_or_else(new_cell);
            self.set_cell(at, cell.as_ptr());
        }
        // SAFETY: the place is the entry's own, and valid for writes; writing
        // does not drop what was there.
        unsafe { self.place(at).write(MaybeUninit::new(payload)) }
    }

    /// Vacates a timer's entry. Returns who lived there.
    ///
    /// # Panics
    /// If the entry holds no timer.
    #[inline]
    pub(super) fn vacate(&mut self, at: At) -> (Stamp, T) {
        let entry = self.entry_mut(at);
        let stamp = entry.stamp;
        assert!(stamp.is_timer());
        entry.stamp = Stamp::VACANT;
        // SAFETY: the entry held a timer, so its payload was initialised; the
        // stamp now says that it no longer is.
        (stamp, unsafe { self.place(at).read().assume_init() })
    }

    /// Adds a timer behind all entries; it leads to itself.
    pub(super) fn push_timer(&mut self, deadline: u64, stamp: Stamp, payload: T) -> At {
        debug_assert!(stamp.is_timer());
        let at = self.push(deadline, Stamp::VACANT);
        self.fill(at, deadline, stamp, payload);
        at
    }

    /// Adds a list's head behind all entries.
    pub(super) fn push_sentinel(&mut self, coordinate: u32) -> At {
        self.push(u64::from(coordinate), Stamp::SENTINEL)
    }

    #[inline]
    fn push(&mut self, deadline: u64, stamp: Stamp) -> At {
        if self.used == self.capacity {
            self.grow_or_fail(1);
        }
        let at = At(self.used);
        let entry = Entry {
            deadline,
            stamp,
            next: at,
            prev: at,
        };
        self.used += 1;
        let place = self.address(at);
        match Self::INLINE {
            // SAFETY: there is room for one more, and what is behind an entry
            // without a timer need not be initialised.
            true => unsafe { place.cast::<Entry>().write(entry) },
            // SAFETY: there is room for one more.
            false => unsafe {
                let cell = ptr::null_mut();
                place.cast::<Outline<T>>().write(Outline { entry, cell });
            },
        }
        at
    }

    /// Makes room for so many timers and list heads beyond the entries that are
    /// used. Where that fails, no entry and no payload has changed.
    pub(super) fn try_reserve(&mut self, timers: usize, heads: usize) -> Result<(), ReserveError> {
        let more = timers.checked_add(heads).ok_or(ReserveError::TooMany)?;
        let wanted = (self.used as usize).checked_add(more);
        let wanted = wanted.filter(|&wanted| wanted <= u32::MAX as usize);
        let wanted = wanted.ok_or(ReserveError::TooMany)?;
        if !Self::INLINE {
            self.reserve_cells(timers)?;
        }
        match wanted > self.capacity as usize {
            true => self.grow(wanted),
            false => Ok(()),
        }
    }

    /// Asks for all of the cells at once before it asks for the first: a system
    /// that promises more than it has would end the process later.
    fn reserve_cells(&mut self, more: usize) -> Result<(), ReserveError> {
        let missing = more.saturating_sub(self.spare.len());
        let probe = Layout::array::<MaybeUninit<T>>(missing).map_err(|_| ReserveError::TooMany)?;
        if probe.size() > 0 {
            // SAFETY: the layout is not of size zero, and what was allocated is
            // given back as it was.
            let is_room = unsafe {
                let block = alloc(probe);
                if !block.is_null() {
                    dealloc(block, probe);
                }
                !block.is_null()
            };
            if !is_room {
                return Err(ReserveError::NoMemory);
            }
        }
        let room = self.spare.try_reserve_exact(missing);
        room.map_err(|_| ReserveError::NoMemory)?;
        for _ in 0..missing {
            let cell = try_new_cell().ok_or(ReserveError::NoMemory)?;
            self.spare.push(cell);
        }
        Ok(())
    }

    #[cold]
    fn grow_or_fail(&mut self, more: usize) {
        let wanted = self.used as usize + more;
        match self.grow(wanted) {
            Ok(()) => {}
            Err(ReserveError::TooMany) => panic!("{}", ReserveError::TooMany),
            Err(ReserveError::NoMemory) => handle_alloc_error(Layout::new::<Inline<T>>()),
        }
    }

    /// Reallocates. A large block's pages are moved by the system and not
    /// copied: whoever grows an engine's shard holds its lock.
    #[cold]
    fn grow(&mut self, wanted: usize) -> Result<(), ReserveError> {
        let capacity = wanted
            .max(Self::capacity_after(self.capacity as usize))
            .min(u32::MAX as usize);
        if wanted > capacity {
            return Err(ReserveError::TooMany);
        }
        match self.reallocate(capacity) {
            true => Ok(()),
            false => Err(ReserveError::NoMemory),
        }
    }

    /// Gives the block room for `capacity` entries, which is no less than are
    /// used. Returns whether that could be had; nothing has changed where not.
    fn reallocate(&mut self, capacity: usize) -> bool {
        debug_assert!(self.used as usize <= capacity);
        let Some(layout) = Self::layout(capacity) else {
            return false;
        };
        let old = Self::layout(self.capacity as usize);
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
        let (was, is) = (self.skipped, Self::skip(block));
        if was != is {
            // SAFETY: both places lie inside the new block, which is larger than
            // the entries in use by what is skipped at most.
            unsafe {
                let bytes = self.used as usize * Self::STRIDE;
                ptr::copy(block.add(was), block.add(is), bytes);
            }
        }
        (self.allocated, self.skipped) = (block, is);
        // SAFETY: inside the block, which is not null.
        self.base = unsafe { NonNull::new_unchecked(block.add(is)) };
        self.capacity = capacity as u32;
        true
    }

    /// How many entries there is to be room for when there is none left.
    fn capacity_after(capacity: usize) -> usize {
        match capacity * Self::STRIDE < LARGE {
            true => (capacity * 2).max(FIRST_CAPACITY as usize),
            false => capacity + capacity / 8,
        }
    }

    /// How many bytes of a block come before its first entry.
    fn skip(block: *const u8) -> usize {
        block.addr().wrapping_neg() % ALIGNMENT
    }

    /// The layout does not ask for the alignment, but leaves room to align in:
    /// asked for, it would make every `realloc` a copy.
    fn layout(capacity: usize) -> Option<Layout> {
        let entries = Self::STRIDE.checked_mul(capacity)?;
        let align = match Self::INLINE {
            true => align_of::<Inline<T>>(),
            false => align_of::<Outline<T>>(),
        };
        Layout::from_size_align(entries.checked_add(ALIGNMENT)?, align).ok()
    }

    /// Brings a timer to a vacant entry; its old one is vacant then. Links are
    /// the storage's care.
    pub(super) fn move_timer(&mut self, from: At, to: At) {
        assert!(self.entry(from).stamp.is_timer());
        assert!(self.entry(to).stamp == Stamp::VACANT);
        let (source, target) = (self.place(from), self.place(to));
        match Self::INLINE {
            // SAFETY: the places of two entries do not overlap: one is a
            // timer's and the other is not.
            true => unsafe { ptr::copy_nonoverlapping(source, target, 1) },
            false => {
                self.set_cell(from, target);
                self.set_cell(to, source);
            }
        }
        let Entry {
            deadline, stamp, ..
        } = *self.entry(from);
        self.entry_mut(from).stamp = Stamp::VACANT;
        let entry = self.entry_mut(to);
        (entry.deadline, entry.stamp) = (deadline, stamp);
    }

    /// Brings a list's head to a vacant entry; its old one is vacant then. Links
    /// are the storage's care.
    pub(super) fn move_sentinel(&mut self, from: At, to: At) {
        assert!(self.entry(from).stamp.is_sentinel());
        assert!(self.entry(to).stamp == Stamp::VACANT);
        self.free_cell(to);
        let deadline = self.entry(from).deadline;
        self.entry_mut(from).stamp = Stamp::VACANT;
        let entry = self.entry_mut(to);
        (entry.deadline, entry.stamp) = (deadline, Stamp::SENTINEL);
    }

    /// Takes away the last entry, which is vacant.
    pub(super) fn pop(&mut self) {
        let last = self.used.checked_sub(1).map(At);
        let last = last.expect("a vacant entry");
        assert!(self.entry(last).stamp == Stamp::VACANT);
        self.free_cell(last);
        self.used -= 1;
    }

    /// Takes away all entries from `used` on. They are vacant, or heads of lists
    /// that nothing hangs on; and [`Block::free_cell`] was called for each.
    pub(super) fn truncate(&mut self, used: u32) {
        debug_assert!((used..self.used).all(|n| !self.entry(At(n)).stamp.is_timer()));
        debug_assert!(Self::INLINE || (used..self.used).all(|n| self.place(At(n)).is_null()));
        self.used = self.used.min(used);
    }

    /// Gives some of the memory back that is more than the entries need, and an
    /// eighth more. Returns whether that was all.
    pub(super) fn trim_some(&mut self) -> bool {
        for _ in 0..MOST_CELLS_TRIMMED {
            match self.spare.pop() {
                // SAFETY: no entry has it.
                Some(cell) => unsafe { free_cell(cell) },
                None => return self.trim_block(),
            }
        }
        false
    }

    fn trim_block(&mut self) -> bool {
        self.spare = Vec::new();
        let used = self.used as usize;
        let least = (used + used / 8).max(FIRST_CAPACITY as usize);
        let capacity = self.capacity as usize;
        if capacity <= least {
            return true;
        }
        let wanted = least.max(capacity.saturating_sub(MOST_TRIMMED / Self::STRIDE));
        !self.reallocate(wanted) || wanted == least
    }

    /// Asks the processor for an entry that will be read soon.
    #[inline]
    pub(super) fn prefetch(&self, at: At) {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let entry = at.0 as usize * Self::STRIDE;
            // SAFETY: a prefetch has no effect but on the cache, wherever it is.
            unsafe { _mm_prefetch(self.base.as_ptr().wrapping_add(entry).cast(), _MM_HINT_T0) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }

    fn set_cell(&mut self, at: At, cell: *mut MaybeUninit<T>) {
        assert!(!Self::INLINE);
        // SAFETY: the entry is an `Outline<T>`, and `self` is borrowed mutably.
        unsafe { (*self.address(at).cast::<Outline<T>>()).cell = cell }
    }

    /// Gives an entry's cell back, if it has one. The entry holds no timer.
    pub(super) fn free_cell(&mut self, at: At) {
        assert!(!self.entry(at).stamp.is_timer());
        if Self::INLINE {
            return;
        }
        if let Some(cell) = NonNull::new(self.place(at)) {
            self.set_cell(at, ptr::null_mut());
            // SAFETY: the entry's cell was its own, and is no longer.
            unsafe { free_cell(cell) }
        }
    }
}

/// A new cell for a payload.
fn new_cell<T>() -> NonNull<MaybeUninit<T>> {
    try_new_cell().unwrap_or_else(|| handle_alloc_error(Layout::new::<T>()))
}

fn try_new_cell<T>() -> Option<NonNull<MaybeUninit<T>>> {
    match size_of::<T>() {
        0 => Some(NonNull::dangling()),
        // SAFETY: the layout is not of size zero.
        _ => NonNull::new(unsafe { alloc(Layout::new::<T>()) }.cast()),
    }
}

/// # Safety
/// The cell was made by [`try_new_cell`], and nobody uses it any more.
unsafe fn free_cell<T>(cell: NonNull<MaybeUninit<T>>) {
    if size_of::<T>() > 0 {
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(cell.as_ptr().cast(), Layout::new::<T>()) }
    }
}

/// Gives the memory back. Payloads are the storage's care.
impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        if !Self::INLINE {
            for index in 0..self.used {
                if let Some(cell) = NonNull::new(self.place(At(index))) {
                    // SAFETY: the entry's cell was its own.
                    unsafe { free_cell(cell) }
                }
            }
        }
        for cell in self.spare.drain(..) {
            // SAFETY: no entry has it.
            unsafe { free_cell(cell) }
        }
        let layout = Self::layout(self.capacity as usize);
        if let Some(layout) = layout.filter(|_| self.capacity > 0) {
            // SAFETY: the block was allocated with this layout in `reallocate`.
            unsafe { dealloc(self.allocated, layout) }
        }
    }
}

/// A block's entries, borrowed together.
pub(super) struct Entries<'a, T> {
    base: NonNull<u8>,
    used: u32,
    borrows: PhantomData<&'a mut Block<T>>,
}

impl<T> Entries<'_, T> {
    #[inline]
    pub(super) fn get(&mut self, at: At) -> &mut Entry {
        debug_assert!(at.0 < self.used);
        let offset = at.0 as usize * Block::<T>::STRIDE;
        // SAFETY: as in `Block::entry_mut`.
        unsafe { &mut *self.base.as_ptr().add(offset).cast() }
    }
}

#[cfg(test)]
mod tests;
