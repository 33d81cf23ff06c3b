//! Entries and their payloads, reached by index without a check. This file and the
//! others in its folder hold all of the wheel's `unsafe` code.
//!
//! Entries stand side by side in one block, so a link is an index. Small payloads
//! are in their entries. A payload that is large, or that needs a greater alignment
//! than the allocator's own, has a *cell*, which never moves. Its entry holds the
//! cell's address, and keeps the cell even while vacant. So list heads, which are
//! entries too, are small whatever the payload, and `realloc` never has to copy a
//! block for its alignment.
//!
//! The unsafe code in this file relies on two facts. First, an [`EntryIndex`] is made
//! only here, for an entry below `used`. Only [`Block::pop`] and [`Block::truncate`]
//! decrease `used`. They are called only to shrink, and `wheel/shrink.rs` explains why
//! nothing then holds an `EntryIndex` of a removed entry. Second, a payload is
//! initialised exactly while its entry has a timer's stamp, and only this file changes
//! a stamp from one kind to another.

mod cells;
mod entry;
mod index;
mod memory;
mod stamp;

use alloc::alloc::{Layout, handle_alloc_error};
use alloc::boxed::Box;
use core::hint::assert_unchecked;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, offset_of};
use core::ptr::{self, NonNull};

pub(crate) use entry::Entry;
pub(crate) use index::{EntryIndex, LANES};
pub use memory::ReserveError;
pub(crate) use stamp::{Sequence, Stamp};

use cells::{Cell, SpareCells};
use memory::Memory;

/// An entry with its payload in it.
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

/// The largest size of an entry with its payload in it: two cache lines.
const MOST_INLINE: usize = 128;
/// The greatest alignment for which `realloc` need not allocate anew and copy.
const MOST_ALIGNED: usize = 2 * size_of::<usize>();

pub(super) struct Block<T> {
    memory: Memory,
    /// Entries `0..used` are initialised. The number has 32 bits, and is as wide as the
    /// number that [`Block::entry_at`] compares it with.
    used: u64,
    /// The cells that do not belong to any entry yet.
    spare: SpareCells<T>,
    owns: PhantomData<T>,
}

// SAFETY: a block owns its entries and payloads, and gives access to them only
// through borrows of itself, as a `Vec<T>` would.
unsafe impl<T: Send> Send for Block<T> {}
// SAFETY: as above, and a shared borrow only reads.
unsafe impl<T: Sync> Sync for Block<T> {}

impl<T> Block<T> {
    const INLINE: bool =
        size_of::<Inline<T>>() <= MOST_INLINE && align_of::<Inline<T>>() <= MOST_ALIGNED;

    const LAYOUT: Layout = match Self::INLINE {
        true => Layout::new::<Inline<T>>(),
        false => Layout::new::<Outline<T>>(),
    };

    /// The distance between two entries, in bytes.
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
        self.used as u32
    }

    /// Returns the number of bytes of all entries and cells. Each entry counts with a
    /// cell once it has been used, even if it never needed one.
    pub(super) fn bytes(&self) -> usize {
        let cells = match Self::INLINE {
            true => 0,
            false => self.used() as usize + self.spare.len(),
        };
        self.memory.capacity() as usize * Self::STRIDE + cells * size_of::<T>()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> u32 {
        self.memory.capacity()
    }

    /// Returns the number of entries that have a cell.
    #[cfg(test)]
    pub(super) fn cells(&self) -> usize {
        let cells = (0..self.used()).map(|n| self.place(EntryIndex(n)));
        cells.filter(|cell| !cell.is_null()).count()
    }

    #[cfg(test)]
    pub(super) fn spare_cells(&self) -> usize {
        self.spare.len()
    }

    /// Returns the entry at `index`, if there is one, vacant or not.
    #[inline]
    pub(super) fn entry_at(&self, index: u64) -> Option<EntryIndex> {
        if index >= self.used {
            return None;
        }
        // Without this, the compiler would cut the index to 32 bits before each use.
        // SAFETY: `used` has 32 bits, because every entry below it has an `EntryIndex`.
        unsafe { assert_unchecked(index <= u64::from(u32::MAX)) }
        Some(EntryIndex(index as u32))
    }

    /// Returns the entry at `index` if it is vacant.
    pub(super) fn vacant_at(&self, index: u32) -> Option<EntryIndex> {
        let entry = self.entry_at(index.into())?;
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
        debug_assert!(entry.0 < self.used());
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

    /// Borrows all entries, with the block's address in a register. Otherwise the
    /// compiler would load the address again after every store to an entry.
    #[inline]
    pub(super) fn entries_mut(&mut self) -> EntriesMut<'_, T> {
        EntriesMut {
            base: self.memory.base(),
            used: self.used(),
            borrows: PhantomData,
        }
    }

    /// Returns the address of an entry's payload, or null if the entry has no cell.
    #[inline]
    fn place(&self, entry: EntryIndex) -> *mut MaybeUninit<T> {
        let start = self.address(entry);
        match Self::INLINE {
            // SAFETY: the place lies inside the entry, which is an `Inline<T>`.
            true => unsafe { start.add(offset_of!(Inline<T>, payload)).cast() },
            // SAFETY: the entry is an initialised `Outline<T>`.
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
        if !Self::INLINE && self.place(entry).is_null() {
            let cell = self.spare.take();
            self.set_cell(entry, Box::into_raw(cell));
        }
        // Both addresses are found before the first store, after which the compiler
        // would load the block's address again.
        let place = self.place(entry);
        let stored = self.get_mut(entry);
        stored.deadline = deadline;
        stored.stamp = stamp;
        // SAFETY: the place belongs to the entry, and is valid for writes. The
        // write does not drop an old value.
        unsafe { place.write(MaybeUninit::new(payload)) }
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
        // SAFETY: the entry held a timer, so its payload was initialised. The
        // stamp now says that the payload no longer is.
        (stamp, unsafe { self.place(entry).read().assume_init() })
    }

    /// Appends a vacant entry.
    #[inline]
    pub(super) fn push_vacant(&mut self) -> EntryIndex {
        self.push(0, Stamp::VACANT)
    }

    /// Appends an entry with a timer, linked to itself.
    #[cfg(test)]
    fn push_timer(&mut self, deadline: u64, stamp: Stamp, payload: T) -> EntryIndex {
        let entry = self.push_vacant();
        self.fill(entry, deadline, stamp, payload);
        entry
    }

    /// Appends an entry that is a list's head.
    pub(super) fn push_sentinel(&mut self, bitmap_index: u32) -> EntryIndex {
        self.push(u64::from(bitmap_index), Stamp::SENTINEL)
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.used() == self.memory.capacity()
    }

    #[inline]
    fn push(&mut self, deadline: u64, stamp: Stamp) -> EntryIndex {
        if self.is_full() {
            self.grow_or_fail();
        }
        let entry = EntryIndex(self.used());
        let stored = Entry {
            deadline,
            stamp,
            next: entry,
            prev: entry,
        };
        self.used += 1;
        let place = self.address(entry);
        match Self::INLINE {
            // SAFETY: there is room for another entry, and the payload of an
            // entry without a timer need not be initialised.
            true => unsafe { place.cast::<Entry>().write(stored) },
            // SAFETY: there is room for another entry.
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

    /// Makes room for this many timers and list heads beyond the entries that are in
    /// use. On failure, all entries and payloads are unchanged.
    pub(super) fn try_reserve(&mut self, timers: usize, heads: usize) -> Result<(), ReserveError> {
        let more = timers.checked_add(heads).ok_or(ReserveError::TooMany)?;
        let wanted = (self.used() as usize).checked_add(more);
        let wanted = wanted.filter(|&wanted| wanted <= u32::MAX as usize);
        let wanted = wanted.ok_or(ReserveError::TooMany)?;
        if !Self::INLINE {
            self.spare.try_reserve(timers)?;
        }
        match wanted > self.memory.capacity() as usize {
            true => self.memory.grow(self.used(), wanted),
            false => Ok(()),
        }
    }

    #[cold]
    fn grow_or_fail(&mut self) {
        match self.memory.grow(self.used(), self.used() as usize + 1) {
            Ok(()) => {}
            Err(ReserveError::TooMany) => panic!("{}", ReserveError::TooMany),
            Err(ReserveError::NoMemory) => handle_alloc_error(Layout::new::<Inline<T>>()),
        }
    }

    /// Moves a timer to a vacant entry, and vacates its old entry. The caller
    /// changes the links.
    pub(super) fn move_timer(&mut self, from: EntryIndex, to: EntryIndex) {
        assert!(self.get(from).stamp.is_timer());
        assert!(self.get(to).stamp == Stamp::VACANT);
        let (source, target) = (self.place(from), self.place(to));
        match Self::INLINE {
            // SAFETY: the places do not overlap. They belong to different
            // entries, as one holds a timer and the other does not.
            true => unsafe { ptr::copy_nonoverlapping(source, target, 1) },
            false => {
                self.set_cell(from, target);
                self.set_cell(to, source);
            }
        }
        self.move_entry(from, to);
    }

    /// Moves a list's head to a vacant entry, and vacates its old entry. The caller
    /// changes the links.
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

    /// Vacates the entry of a list's head.
    pub(super) fn vacate_sentinel(&mut self, head: EntryIndex) {
        let stored = self.get_mut(head);
        assert!(stored.stamp.is_sentinel());
        stored.stamp = Stamp::VACANT;
    }

    /// Removes the last entry, which is vacant.
    pub(super) fn pop(&mut self) {
        let last = self.used().checked_sub(1).map(EntryIndex);
        let last = last.expect("a vacant entry");
        assert!(self.get(last).stamp == Stamp::VACANT);
        self.free_cell(last);
        self.used -= 1;
    }

    /// Removes all entries from `used` on. They are vacant or heads of empty lists,
    /// and [`Block::free_cell`] was called for each.
    pub(super) fn truncate(&mut self, used: u32) {
        debug_assert!((used..self.used()).all(|n| !self.get(EntryIndex(n)).stamp.is_timer()));
        debug_assert!(
            Self::INLINE || (used..self.used()).all(|n| self.place(EntryIndex(n)).is_null())
        );
        self.used = self.used.min(u64::from(used));
    }

    /// Gives back some of the memory that the entries do not need. Returns whether
    /// nothing more can be given back.
    pub(super) fn trim_some(&mut self) -> bool {
        self.spare.trim_some() && self.memory.trim_some(self.used())
    }

    /// Prefetches an entry that will be read soon.
    #[inline]
    pub(super) fn prefetch(&self, entry: EntryIndex) {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let base = self.memory.base().as_ptr();
            let address = base.wrapping_add(Self::offset(entry));
            // SAFETY: a prefetch of any address affects only the cache.
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

    /// Takes an entry's cell from it, if it has one. Does not drop the payload.
    fn take_cell(&mut self, entry: EntryIndex) -> Option<Cell<T>> {
        let cell = match Self::INLINE {
            true => ptr::null_mut(),
            false => self.place(entry),
        };
        if cell.is_null() {
            return None;
        }
        self.set_cell(entry, ptr::null_mut());
        // SAFETY: the cell came from a box, and no longer belongs to the entry.
        Some(unsafe { Box::from_raw(cell) })
    }
}

/// Frees the cells. The storage drops the payloads.
impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        for index in 0..self.used() {
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
