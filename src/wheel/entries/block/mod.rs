//! Entries and their payloads, reached by index without a check: the wheel's
//! `unsafe`, with the files in this folder.
//!
//! Entries stand side by side in one block, so that a link is an index. Small
//! payloads stand in their entries. A payload that is large, or aligned more than
//! the allocator aligns by itself, has a *cell* of its own, which never moves: its
//! entry holds the cell's address, and keeps the cell while it is vacant. So a
//! list head, which is an entry too, is small whatever the payload, and `realloc`
//! never has to copy a block for its alignment.
//!
//! Two sentences argue for all that is unsafe in this file. An [`EntryIndex`] is made
//! only here, for an entry below `used`; [`Block::pop`] and [`Block::truncate`],
//! which alone make `used` smaller, are called only to shrink, and
//! `wheel/shrink.rs` says why nothing then holds an `EntryIndex` of what they take away.
//! A payload is initialised exactly while its entry's stamp is a timer's, and
//! only this file changes a stamp from one kind to another.

mod cells;
mod entry;
mod index;
mod memory;
mod stamp;

use core::marker::PhantomData;
use core::mem::{MaybeUninit, offset_of};
use core::ptr::{self, NonNull};
use std::alloc::{Layout, handle_alloc_error};

pub(crate) use entry::Entry;
pub(crate) use index::{EntryIndex, LANES};
pub use memory::ReserveError;
pub(crate) use stamp::Stamp;

use cells::{Cell, SpareCells};
use memory::Memory;

/// An entry and a payload that stands in it.
#[repr(C)]
struct Inline<T> {
    entry: Entry,
    payload: MaybeUninit<T>,
}

/// An entry and the address of its payload's cell, or null if it has none.
#[repr(C)]
struct Outline<T> {
    entry: Entry,
    cell: *mut MaybeUninit<T>,
}

/// An entry with its payload in it takes two cache lines at most.
const MOST_INLINE: usize = 128;
/// Up to this alignment a `realloc` is the allocator's own, and no copy.
const MOST_ALIGNED: usize = 2 * size_of::<usize>();

pub(super) struct Block<T> {
    memory: Memory,
    /// Entries `0..used` are initialised.
    used: u32,
    /// Cells that no entry has yet.
    spare: SpareCells<T>,
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

    const LAYOUT: Layout = match Self::INLINE {
        true => Layout::new::<Inline<T>>(),
        false => Layout::new::<Outline<T>>(),
    };

    /// How far apart entries stand.
    const STRIDE: usize = Self::LAYOUT.size();

    pub(super) fn new() -> Block<T> {
        Block {
            memory: Memory::new(Self::LAYOUT),
            used: 0,
            spare: SpareCells::new(),
            owns: PhantomData,
        }
    }

    #[inline]
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> u32 {
        self.memory.capacity()
    }

    /// Returns the number of entries that have a cell.
    #[cfg(test)]
    pub(super) fn cells(&self) -> usize {
        let cells = (0..self.used).map(|n| self.place(EntryIndex(n)));
        cells.filter(|cell| !cell.is_null()).count()
    }

    #[cfg(test)]
    pub(super) fn spare_cells(&self) -> usize {
        self.spare.len()
    }

    /// Returns the entry at `index`, if there is one, vacant or not.
    #[inline]
    pub(super) fn entry_at(&self, index: u32) -> Option<EntryIndex> {
        (index < self.used).then_some(EntryIndex(index))
    }

    /// Returns the entry at `index` if it is vacant.
    pub(super) fn vacant_at(&self, index: u32) -> Option<EntryIndex> {
        let entry = self.entry_at(index)?;
        self.is_vacant(entry).then_some(entry)
    }

    #[inline]
    pub(super) fn is_vacant(&self, entry: EntryIndex) -> bool {
        self.get(entry).stamp == Stamp::VACANT
    }

    #[inline]
    fn offset(entry: EntryIndex) -> usize {
        entry.0 as usize * Self::STRIDE
    }

    #[inline]
    fn address(&self, entry: EntryIndex) -> *mut u8 {
        debug_assert!(entry.0 < self.used);
        // SAFETY: an `EntryIndex` is in bounds (see the top of this file).
        unsafe { self.memory.base().as_ptr().add(Self::offset(entry)) }
    }

    #[inline]
    pub(super) fn get(&self, entry: EntryIndex) -> &Entry {
        // SAFETY: the entries below `used` are initialised.
        unsafe { &*self.address(entry).cast() }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, entry: EntryIndex) -> &mut Entry {
        // SAFETY: as in `get`, and `self` is borrowed mutably.
        unsafe { &mut *self.address(entry).cast() }
    }

    /// Borrows all entries, with the block's address in a register: the compiler
    /// would load it again after every store to an entry.
    #[inline]
    pub(super) fn entries_mut(&mut self) -> EntriesMut<'_, T> {
        EntriesMut {
            base: self.memory.base(),
            used: self.used,
            borrows: PhantomData,
        }
    }

    /// Returns the address of an entry's payload, or null if the entry has no cell.
    #[inline]
    fn place(&self, entry: EntryIndex) -> *mut MaybeUninit<T> {
        let start = self.address(entry);
        match Self::INLINE {
            // SAFETY: inside the entry, which is an `Inline<T>`.
            true => unsafe { start.add(offset_of!(Inline<T>, payload)).cast() },
            // SAFETY: the entry is an `Outline<T>`, and initialised.
            false => unsafe { (*start.cast::<Outline<T>>()).cell },
        }
    }

    #[inline]
    pub(super) fn payload(&self, entry: EntryIndex) -> &T {
        assert!(self.get(entry).stamp.is_timer());
        // SAFETY: the entry holds a timer, so its payload is initialised.
        unsafe { (*self.place(entry)).assume_init_ref() }
    }

    #[inline]
    pub(super) fn payload_mut(&mut self, entry: EntryIndex) -> &mut T {
        assert!(self.get(entry).stamp.is_timer());
        // SAFETY: the entry holds a timer, so its payload is initialised.
        unsafe { (*self.place(entry)).assume_init_mut() }
    }

    /// Stores a timer in a vacant entry.
    #[inline]
    pub(super) fn fill(&mut self, entry: EntryIndex, deadline: u64, stamp: Stamp, payload: T) {
        debug_assert!(stamp.is_timer() && self.get(entry).stamp == Stamp::VACANT);
        self.put_payload(entry, payload);
        let stored = self.get_mut(entry);
        stored.deadline = deadline;
        stored.stamp = stamp;
    }

    #[inline]
    fn put_payload(&mut self, entry: EntryIndex, payload: T) {
        if !Self::INLINE && self.place(entry).is_null() {
            let cell = self.spare.take();
            self.set_cell(entry, Box::into_raw(cell));
        }
        // SAFETY: the place is the entry's own, and valid for writes; writing
        // drops no old value.
        unsafe { self.place(entry).write(MaybeUninit::new(payload)) }
    }

    /// Vacates a timer's entry. Returns the timer's stamp and payload.
    ///
    /// # Panics
    /// If the entry holds no timer.
    #[inline]
    pub(super) fn vacate(&mut self, entry: EntryIndex) -> (Stamp, T) {
        let stored = self.get_mut(entry);
        let stamp = stored.stamp;
        assert!(stamp.is_timer());
        stored.stamp = Stamp::VACANT;
        // SAFETY: the entry held a timer, so its payload was initialised; the
        // stamp now says that it no longer is.
        (stamp, unsafe { self.place(entry).read().assume_init() })
    }

    /// Adds a timer behind all entries, linked to itself.
    pub(super) fn push_timer(&mut self, deadline: u64, stamp: Stamp, payload: T) -> EntryIndex {
        debug_assert!(stamp.is_timer());
        let entry = self.push(deadline, Stamp::VACANT);
        self.fill(entry, deadline, stamp, payload);
        entry
    }

    /// Adds a list's head behind all entries.
    pub(super) fn push_sentinel(&mut self, bitmap_index: u32) -> EntryIndex {
        self.push(u64::from(bitmap_index), Stamp::SENTINEL)
    }

    #[inline]
    fn push(&mut self, deadline: u64, stamp: Stamp) -> EntryIndex {
        if self.used == self.memory.capacity() {
            self.grow_or_fail();
        }
        let entry = EntryIndex(self.used);
        let stored = Entry {
            deadline,
            stamp,
            next: entry,
            prev: entry,
        };
        self.used += 1;
        let place = self.address(entry);
        match Self::INLINE {
            // SAFETY: there is room for one more, and the payload of an entry
            // without a timer need not be initialised.
            true => unsafe { place.cast::<Entry>().write(stored) },
            // SAFETY: there is room for one more.
            false => unsafe {
                let cell = ptr::null_mut();
                place.cast::<Outline<T>>().write(Outline {
                    entry: stored,
                    cell,
                });
            },
        }
        entry
    }

    /// Makes room for so many timers and list heads beyond the entries that are
    /// used. On failure no entry and no payload has changed.
    pub(super) fn try_reserve(&mut self, timers: usize, heads: usize) -> Result<(), ReserveError> {
        let more = timers.checked_add(heads).ok_or(ReserveError::TooMany)?;
        let wanted = (self.used as usize).checked_add(more);
        let wanted = wanted.filter(|&wanted| wanted <= u32::MAX as usize);
        let wanted = wanted.ok_or(ReserveError::TooMany)?;
        if !Self::INLINE {
            self.spare.try_reserve(timers)?;
        }
        match wanted > self.memory.capacity() as usize {
            true => self.memory.grow(self.used, wanted),
            false => Ok(()),
        }
    }

    #[cold]
    fn grow_or_fail(&mut self) {
        match self.memory.grow(self.used, self.used as usize + 1) {
            Ok(()) => {}
            Err(ReserveError::TooMany) => panic!("{}", ReserveError::TooMany),
            Err(ReserveError::NoMemory) => handle_alloc_error(Layout::new::<Inline<T>>()),
        }
    }

    /// Moves a timer to a vacant entry, and vacates its old one. Leaves the links
    /// to the caller.
    pub(super) fn move_timer(&mut self, from: EntryIndex, to: EntryIndex) {
        assert!(self.get(from).stamp.is_timer());
        assert!(self.get(to).stamp == Stamp::VACANT);
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
        self.move_entry(from, to);
    }

    /// Moves a list's head to a vacant entry, and vacates its old one. Leaves the
    /// links to the caller.
    pub(super) fn move_sentinel(&mut self, from: EntryIndex, to: EntryIndex) {
        assert!(self.get(from).stamp.is_sentinel());
        assert!(self.get(to).stamp == Stamp::VACANT);
        self.free_cell(to);
        self.move_entry(from, to);
    }

    fn move_entry(&mut self, from: EntryIndex, to: EntryIndex) {
        let stored = self.get_mut(from);
        let deadline = stored.deadline;
        let stamp = core::mem::replace(&mut stored.stamp, Stamp::VACANT);
        let stored = self.get_mut(to);
        (stored.deadline, stored.stamp) = (deadline, stamp);
    }

    /// Takes away the last entry, which is vacant.
    pub(super) fn pop(&mut self) {
        let last = self.used.checked_sub(1).map(EntryIndex);
        let last = last.expect("a vacant entry");
        assert!(self.get(last).stamp == Stamp::VACANT);
        self.free_cell(last);
        self.used -= 1;
    }

    /// Takes away all entries from `used` on. They are vacant or heads of empty
    /// lists, and [`Block::free_cell`] was called for each.
    pub(super) fn truncate(&mut self, used: u32) {
        debug_assert!((used..self.used).all(|n| !self.get(EntryIndex(n)).stamp.is_timer()));
        debug_assert!(
            Self::INLINE || (used..self.used).all(|n| self.place(EntryIndex(n)).is_null())
        );
        self.used = self.used.min(used);
    }

    /// Gives back some of the memory that the entries do not need. Returns whether
    /// that was all.
    pub(super) fn trim_some(&mut self) -> bool {
        self.spare.trim_some() && self.memory.trim_some(self.used)
    }

    /// Prefetches an entry that will be read soon.
    #[inline]
    pub(super) fn prefetch(&self, entry: EntryIndex) {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let base = self.memory.base().as_ptr();
            let address = base.wrapping_add(Self::offset(entry));
            // SAFETY: a prefetch has no effect but on the cache, wherever it is.
            unsafe { _mm_prefetch(address.cast(), _MM_HINT_T0) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = entry;
    }

    fn set_cell(&mut self, entry: EntryIndex, cell: *mut MaybeUninit<T>) {
        assert!(!Self::INLINE);
        // SAFETY: the entry is an `Outline<T>`, and `self` is borrowed mutably.
        unsafe { (*self.address(entry).cast::<Outline<T>>()).cell = cell }
    }

    /// Frees an entry's cell, if it has one. The entry holds no timer.
    pub(super) fn free_cell(&mut self, entry: EntryIndex) {
        assert!(!self.get(entry).stamp.is_timer());
        drop(self.take_cell(entry));
    }

    /// Takes an entry's cell away, if it has one. The entry's payload is lost.
    fn take_cell(&mut self, entry: EntryIndex) -> Option<Cell<T>> {
        let cell = match Self::INLINE {
            true => ptr::null_mut(),
            false => self.place(entry),
        };
        if cell.is_null() {
            return None;
        }
        self.set_cell(entry, ptr::null_mut());
        // SAFETY: the entry's cell came from a box, and is the entry's no longer.
        Some(unsafe { Box::from_raw(cell) })
    }
}

/// Frees the cells. Payloads are dropped by the storage.
impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        for index in 0..self.used {
            drop(self.take_cell(EntryIndex(index)));
        }
    }
}

/// A block's entries, borrowed together.
pub(super) struct EntriesMut<'a, T> {
    base: NonNull<u8>,
    used: u32,
    borrows: PhantomData<&'a mut Block<T>>,
}

impl<T> EntriesMut<'_, T> {
    #[inline]
    pub(super) fn get(&mut self, entry: EntryIndex) -> &mut Entry {
        debug_assert!(entry.0 < self.used);
        // SAFETY: as in `Block::get_mut`.
        unsafe { &mut *self.base.as_ptr().add(Block::<T>::offset(entry)).cast() }
    }
}

#[cfg(test)]
mod tests;
