//! The storage of a wheel: its timers, and the lists that they hang on.
//!
//! Timers and the heads of lists are entries of one block. The lists are circular, and a
//! head is a link like any other, so that linking and unlinking have no special cases:
//!
//! ```text
//! block   | heads of lists | timers and vacant entries | not used yet |
//!         0              lists                        used        capacity
//! entry   { stamp: 64, deadline: 64, next: 32, prev: 32, payload: T }
//! stamp   { sequence number: 52, tag: 12 }
//! ```
//!
//! A stamp without a sequence number belongs to a head or to a vacant entry. The vacant
//! entries hang on a list, too, the last vacated one in front.
//!
//! All unsafe code of the wheels is in this file. It rests on one rule: an [`EntryIndex`]
//! that a caller uses came from the same storage, and no entry was cut off since that holds
//! it. Storages are cut off only at vacant entries, to which no list of timers leads.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit, size_of};
use core::ptr::{self, NonNull};

/// An entry of a storage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct EntryIndex(u32);

impl EntryIndex {
    /// The head of the list of vacant entries.
    pub(super) const VACANT: EntryIndex = EntryIndex(0);

    /// Returns the head of a list by its number.
    pub(super) const fn list(number: u32) -> EntryIndex {
        EntryIndex(number)
    }

    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.0
    }
}

// The wheel's own lists, besides that of the vacant entries: see `advance.rs`.
pub(super) const OVERDUE: EntryIndex = EntryIndex::list(1);
pub(super) const LATE: EntryIndex = EntryIndex::list(2);
pub(super) const IN_HEAP: EntryIndex = EntryIndex::list(3);
pub(super) const REACHED: EntryIndex = EntryIndex::list(4);
/// An empty list.
pub(super) const NOTHING: EntryIndex = EntryIndex::list(5);
pub(super) const OWN_LISTS: u32 = 6;

/// The identity of a timer: a sequence number that is never given twice, and a tag with
/// some bits of state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Stamp(u64);

impl Stamp {
    pub(crate) const TAG_BITS: u32 = 12;
    const TAG_MASK: u64 = (1 << Self::TAG_BITS) - 1;
    /// The stamp of a vacant entry, and of a list that is in order. That of a list which may
    /// be out of order is 1.
    const NONE: Stamp = Stamp(0);
    #[inline]
    pub(crate) fn new(sequence: u64, tag: u16) -> Stamp {
        debug_assert!(0 < sequence && sequence <= u64::MAX >> Self::TAG_BITS);
        Stamp(sequence << Self::TAG_BITS | u64::from(tag) & Self::TAG_MASK)
    }

    #[inline]
    pub(crate) fn sequence(self) -> u64 {
        self.0 >> Self::TAG_BITS
    }

    #[inline]
    pub(crate) fn tag(self) -> u16 {
        (self.0 & Self::TAG_MASK) as u16
    }

    /// Returns the stamp with these bits of the tag clear.
    #[inline]
    pub(super) fn without(self, bits: u16) -> Stamp {
        Stamp(self.0 & !u64::from(bits))
    }

    #[inline]
    fn is_timer(self) -> bool {
        self.0 > Self::TAG_MASK
    }
}

/// A timer that waits in the heap. The least fires first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Sorted {
    pub(super) deadline: u64,
    pub(super) sequence: u64,
    pub(super) entry: EntryIndex,
}

/// The tag bit of a timer that waits in the wheel's heap.
pub(super) const SORTING: u16 = 1;
/// The tag bit of a timer that isn't at the index in its id: it was re-armed after another
/// timer had taken that entry.
const MOVED: u16 = 1 << 1;
/// The tag bit of a timer that was disarmed since it was linked: see `link.rs`.
pub(super) const DISARMED: u16 = 1 << 2;

/// What an entry holds besides a payload.
pub(super) struct Header {
    stamp: Stamp,
    pub(super) deadline: u64,
    next: EntryIndex,
    prev: EntryIndex,
}

impl Header {
    /// The header of an entry without a timer that is linked to itself.
    #[inline]
    fn alone(entry: EntryIndex) -> Header {
        Header {
            stamp: Stamp::NONE,
            deadline: 0,
            next: entry,
            prev: entry,
        }
    }

    #[inline]
    pub(super) fn stamp(&self) -> Stamp {
        self.stamp
    }

    #[inline]
    pub(super) fn set_stamp(&mut self, stamp: Stamp) {
        self.stamp = stamp;
    }

    #[inline]
    pub(super) fn has(&self, bits: u16) -> bool {
        self.stamp.tag() & bits != 0
    }

    #[inline]
    pub(super) fn mark(&mut self, bits: u16) {
        self.stamp.0 |= u64::from(bits);
    }

    #[inline]
    pub(super) fn unmark(&mut self, bits: u16) {
        self.stamp.0 &= !u64::from(bits);
    }

    /// Sets the part of the tag that belongs to the owner of the wheel and that of the
    /// wheel, both in one.
    #[inline]
    pub(super) fn set_tag(&mut self, tag: u16) {
        self.stamp = Stamp::new(self.stamp.sequence(), tag);
    }
}

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

/// A block that is freed when it becomes vacant has at least this many entries.
const WORTH_FREEING: u32 = 4_096;

/// The block begins at a multiple of this, so that small entries don't straddle cache lines.
const CACHE_LINE: usize = 64;

/// A block of this many bytes or more grows by a quarter instead of doubling.
const BIG: usize = 1 << 20;

/// A block that is not used any more.
#[derive(Default)]
#[must_use = "to be freed after a lock is released"]
pub(crate) struct Retired(Vec<MaybeUninit<u128>>);

impl Retired {
    /// Frees the block, which takes a while for each of its pages.
    pub(crate) fn free(self) {
        drop(self.0);
    }
}

pub(crate) struct Entries<T> {
    /// The address of the first entry. It lies in `memory` and begins a cache line.
    first: NonNull<Header>,
    /// The number of entries that are heads of lists.
    pub(super) lists: u32,
    /// The number of entries, heads and vacant ones included.
    used: u32,
    /// The number of entries for which there is room.
    capacity: u32,
    live: u32,
    /// The entry that was vacated last, or [`EntryIndex::VACANT`] if it was taken since.
    spare: EntryIndex,
    memory: Vec<MaybeUninit<u128>>,
    /// The timers that aren't at the index in their id, by sequence number: that index, and
    /// their entry.
    moved: BTreeMap<u64, (u32, EntryIndex)>,
    /// Whether the owner takes what is retired.
    pub(super) is_shared: bool,
    pub(super) has_retired: bool,
    pub(super) retired: Retired,
    payloads: PhantomData<T>,
}

// SAFETY: the storage owns its memory and the payloads in it, as a `Vec<T>` does.
unsafe impl<T: Send> Send for Entries<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Entries<T> {}

impl<T> Entries<T> {
    /// Whether payloads are stored in the entries. A head takes as much as an entry, so larger
    /// payloads are boxed.
    const IN_LINE: bool = size_of::<T>() <= 64 && align_of::<T>() <= align_of::<u128>();

    /// The number of bytes from an entry to its payload, and to the next entry.
    const LAYOUT: (usize, usize) = {
        let (size, align) = match Self::IN_LINE {
            true => (size_of::<T>(), align_of::<T>()),
            false => (size_of::<*mut T>(), align_of::<*mut T>()),
        };
        let offset = size_of::<Header>().next_multiple_of(align);
        let align = if align > 8 { align } else { 8 };
        (offset, (offset + size).next_multiple_of(align))
    };

    /// Creates a storage with room for this many heads. [`Entries::add_list`] must add a
    /// list before it's used; that of the vacant entries has been added.
    pub(super) fn new(lists: u32) -> Entries<T> {
        let mut entries = Entries {
            first: NonNull::dangling(),
            lists,
            used: lists,
            capacity: 0,
            live: 0,
            spare: EntryIndex::VACANT,
            memory: Vec::new(),
            moved: BTreeMap::new(),
            is_shared: false,
            has_retired: false,
            retired: Retired::default(),
            payloads: PhantomData,
        };
        entries.grow_or_panic();
        entries.add_list(EntryIndex::VACANT);
        entries
    }

    #[inline]
    fn at(&self, entry: EntryIndex) -> *mut Header {
        debug_assert!(entry.0 <= self.used);
        // SAFETY: the index is at most `used`, which is at most the capacity.
        unsafe {
            self.first
                .as_ptr()
                .byte_add(entry.0 as usize * Self::LAYOUT.1)
        }
    }

    /// Returns the place of an entry's payload, in the entry or in a box.
    ///
    /// # Safety
    /// The entry holds a timer.
    #[inline]
    unsafe fn place(&self, entry: EntryIndex) -> *mut T {
        // SAFETY: both lie in the entry. If payloads are boxed, a timer's entry holds the box.
        unsafe {
            let place = self.at(entry).byte_add(Self::LAYOUT.0);
            match Self::IN_LINE {
                true => place.cast(),
                false => place.cast::<*mut T>().read(),
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, entry: EntryIndex) -> &Header {
        // SAFETY: the entry is in the block, and its header was written when the list or the
        // timer was added. No exclusive reference exists beside `&self`.
        unsafe { &*self.at(entry) }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, entry: EntryIndex) -> &mut Header {
        // SAFETY: as in `get`, with `&mut self`.
        unsafe { &mut *self.at(entry) }
    }

    /// Returns whether an entry holds a timer.
    #[inline]
    pub(super) fn is_timer(&self, entry: EntryIndex) -> bool {
        self.get(entry).stamp.is_timer()
    }

    #[inline]
    pub(super) fn payload(&self, entry: EntryIndex) -> &T {
        assert!(self.is_timer(entry));
        // SAFETY: an entry has a payload while its stamp is a timer's.
        unsafe { &*self.place(entry) }
    }

    #[inline]
    pub(super) fn payload_mut(&mut self, entry: EntryIndex) -> &mut T {
        assert!(self.is_timer(entry));
        // SAFETY: as above, with `&mut self`.
        unsafe { &mut *self.place(entry) }
    }

    /// Prefetches an entry. It may have been cut off.
    #[inline]
    pub(super) fn prefetch(&self, entry: EntryIndex) {
        let at = self.first.as_ptr();
        let at = at.wrapping_byte_add(entry.0 as usize * Self::LAYOUT.1);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch of any address is harmless.
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(at.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }

    /// Returns all entries behind the heads.
    fn all(&self) -> impl Iterator<Item = EntryIndex> + use<T> {
        (self.lists..self.used).map(EntryIndex)
    }

    /// Returns all entries that hold a timer.
    pub(super) fn all_timers(&self) -> impl Iterator<Item = EntryIndex> + '_ {
        self.all().filter(|&entry| self.is_timer(entry))
    }

    /// Returns all payloads, in the order of their entries.
    pub(super) fn payloads_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let entries = &*self;
        // SAFETY: these entries hold timers. Each is met once, and nothing else uses the
        // storage while it is borrowed.
        let place = |entry| unsafe { &mut *entries.place(entry) };
        entries.all_timers().map(place)
    }

    /// Returns the number of timers.
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.live as usize
    }

    /// Returns the number of entries, heads and vacant ones included.
    #[inline]
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// Returns the number of bytes of the block and of the boxes.
    pub(super) fn bytes(&self) -> usize {
        let boxed = match Self::IN_LINE {
            true => 0,
            false => self.live() * size_of::<T>(),
        };
        self.memory.capacity() * size_of::<u128>() + boxed
    }

    // Finding a timer.

    /// Returns the entry at an index, which may be the head of a list.
    #[inline]
    pub(super) fn entry_at(&self, index: u64) -> Option<EntryIndex> {
        (index < u64::from(self.used)).then_some(EntryIndex(index as u32))
    }

    /// Returns the timer with this sequence number and with this index in its id.
    #[inline]
    pub(super) fn find(&self, index: u64, sequence: u64) -> Option<EntryIndex> {
        match self.find_unmoved(index, sequence) {
            Some(entry) => Some(entry),
            None => self.find_moved(index, sequence),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_moved(&self, index: u64, sequence: u64) -> Option<EntryIndex> {
        // Another wheel's id has a larger number here.
        let is_own = index <= u64::from(u32::MAX);
        let moved = self.moved.get(&sequence).filter(|_| is_own);
        moved.map(|&(_, entry)| entry)
    }

    #[inline]
    pub(super) fn find_unmoved(&self, index: u64, sequence: u64) -> Option<EntryIndex> {
        let entry = self.entry_at(index)?;
        (self.get(entry).stamp.sequence() == sequence).then_some(entry)
    }

    /// Returns the index in a timer's id.
    #[inline]
    pub(super) fn index_in_id(&self, entry: EntryIndex) -> u32 {
        let header = self.get(entry);
        match header.has(MOVED) {
            false => entry.0,
            true => self.moved[&header.stamp.sequence()].0,
        }
    }

    // Storing and removing a timer.

    /// Returns a vacant entry, which the caller fills.
    #[inline]
    pub(super) fn take_vacant(&mut self) -> EntryIndex {
        if self.spare != EntryIndex::VACANT {
            return core::mem::replace(&mut self.spare, EntryIndex::VACANT);
        }
        let vacant = self.next(EntryIndex::VACANT);
        match vacant == EntryIndex::VACANT {
            true => self.add_vacant(),
            false => {
                let next = self.get(vacant).next;
                self.cut_before(EntryIndex::VACANT, next);
                self.prefetch(next);
                vacant
            }
        }
    }

    #[inline]
    fn add_vacant(&mut self) -> EntryIndex {
        let entry = EntryIndex(self.used);
        if entry.0 == self.capacity {
            self.grow_or_panic();
        }
        self.used += 1;
        // SAFETY: there is room for the entry.
        unsafe { self.at(entry).write(Header::alone(entry)) };
        entry
    }

    /// Stores a timer in a vacant entry.
    #[inline]
    pub(super) fn fill(&mut self, entry: EntryIndex, deadline: u64, stamp: Stamp, payload: T) {
        self.live += 1;
        // SAFETY: the entry lies in the block. It's vacant, so nothing is overwritten that
        // needs dropping.
        unsafe {
            let at = self.at(entry);
            (&raw mut (*at).stamp).write(stamp);
            (&raw mut (*at).deadline).write(deadline);
            let place = at.byte_add(Self::LAYOUT.0);
            match Self::IN_LINE {
                true => place.cast::<T>().write(payload),
                false => place
                    .cast::<*mut T>()
                    .write(Box::into_raw(Box::new(payload))),
            }
        }
    }

    /// Takes a timer's payload. The entry is neither vacant nor a timer afterwards.
    ///
    /// # Panics
    /// If the entry holds no timer.
    #[inline]
    pub(super) fn take(&mut self, entry: EntryIndex) -> T {
        let stamp = core::mem::replace(&mut self.get_mut(entry).stamp, Stamp::NONE);
        assert!(stamp.is_timer());
        if stamp.tag() & MOVED != 0 {
            self.forget_moved(stamp);
        }
        self.live -= 1;
        // SAFETY: the stamp was a timer's, so there was a payload. From now on the stamp
        // says that there is none.
        unsafe {
            let place = self.place(entry);
            match Self::IN_LINE {
                true => place.read(),
                false => *Box::from_raw(place),
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn forget_moved(&mut self, stamp: Stamp) {
        self.moved.remove(&stamp.sequence());
    }

    /// Makes an entry vacant whose timer was taken, and which hangs on no list.
    #[inline]
    pub(super) fn vacate(&mut self, entry: EntryIndex) {
        let before = core::mem::replace(&mut self.spare, entry);
        if before != EntryIndex::VACANT {
            let first = self.next(EntryIndex::VACANT);
            let vacated = self.get_mut(before);
            (vacated.next, vacated.prev) = (first, EntryIndex::VACANT);
            self.get_mut(first).prev = before;
            self.get_mut(EntryIndex::VACANT).next = before;
        }
        if self.live == 0 && self.used - self.lists >= WORTH_FREEING {
            self.free_vacant();
        }
    }

    /// Stores a timer again under the id that it had, if possible in the entry that it had.
    pub(super) fn put_back(
        &mut self,
        index: u32,
        sequence: u64,
        deadline: u64,
        payload: T,
    ) -> EntryIndex {
        let stamp = Stamp::new(sequence, 0);
        match self.entry_at(index.into()).filter(|&at| !self.is_timer(at)) {
            Some(own) => {
                self.take_this_vacant(own);
                self.fill(own, deadline, stamp, payload);
                own
            }
            None => {
                let entry = self.take_vacant();
                self.fill(entry, deadline, stamp, payload);
                self.get_mut(entry).mark(MOVED);
                self.moved.insert(sequence, (index, entry));
                entry
            }
        }
    }

    fn take_this_vacant(&mut self, vacant: EntryIndex) {
        match self.spare == vacant {
            true => self.spare = EntryIndex::VACANT,
            false => _ = self.unlink(vacant),
        }
    }

    // Lists.

    /// Adds an empty list with this head.
    pub(super) fn add_list(&mut self, list: EntryIndex) {
        assert!(list.0 < self.lists);
        // SAFETY: there is room for all heads.
        unsafe { self.at(list).write(Header::alone(list)) };
    }

    #[inline]
    pub(super) fn next(&self, entry: EntryIndex) -> EntryIndex {
        self.get(entry).next
    }

    #[inline]
    pub(super) fn prev(&self, entry: EntryIndex) -> EntryIndex {
        self.get(entry).prev
    }

    #[inline]
    pub(super) fn is_empty(&self, list: EntryIndex) -> bool {
        self.next(list) == list
    }

    /// Returns the first entry of a list.
    #[inline]
    pub(super) fn first_of(&self, list: EntryIndex) -> Option<EntryIndex> {
        let first = self.next(list);
        (first != list).then_some(first)
    }

    /// Returns the entry of a list that has exactly one.
    #[inline]
    pub(super) fn sole_of(&self, list: EntryIndex) -> Option<EntryIndex> {
        let head = self.get(list);
        (head.next == head.prev && head.next != list).then_some(head.next)
    }

    /// Returns the entries of a list.
    pub(super) fn on_list(&self, list: EntryIndex) -> impl Iterator<Item = EntryIndex> + '_ {
        let next = move |&entry: &EntryIndex| Some(self.next(entry)).filter(|&next| next != list);
        core::iter::successors(self.first_of(list), next)
    }

    #[inline]
    pub(super) fn append(&mut self, list: EntryIndex, entry: EntryIndex) {
        let last = core::mem::replace(&mut self.get_mut(list).prev, entry);
        let appended = self.get_mut(entry);
        (appended.next, appended.prev) = (list, last);
        self.get_mut(last).next = entry;
    }

    /// Takes an entry off its list. Returns the list if it's empty now.
    #[inline]
    pub(super) fn unlink(&mut self, entry: EntryIndex) -> Option<EntryIndex> {
        let Header { next, prev, .. } = *self.get(entry);
        debug_assert!(prev != entry, "the entry is on a list");
        self.get_mut(next).prev = prev;
        self.get_mut(prev).next = next;
        // If both neighbours are the same entry, only the list's head is left.
        (next == prev).then_some(next)
    }

    /// Links an entry to itself, which marks it as being on no list.
    pub(super) fn set_aside(&mut self, entry: EntryIndex) {
        let stored = self.get_mut(entry);
        (stored.next, stored.prev) = (entry, entry);
    }

    /// Makes `first` the first entry of `list`, and forgets the entries before it. If `first`
    /// is the list itself, the list becomes empty.
    #[inline]
    pub(super) fn cut_before(&mut self, list: EntryIndex, first: EntryIndex) {
        self.get_mut(list).next = first;
        self.get_mut(first).prev = list;
    }

    /// Moves all entries of a list to the end of another one, with the mark of the former.
    pub(super) fn move_all(&mut self, from: EntryIndex, to: EntryIndex) {
        let Some(first) = self.first_of(from) else {
            return;
        };
        let (last, end) = (self.prev(from), self.prev(to));
        self.get_mut(end).next = first;
        self.get_mut(first).prev = end;
        self.get_mut(last).next = to;
        self.get_mut(to).prev = last;
        self.mark_out_of_order(to, end != to || self.is_out_of_order(from));
        self.clear_mark(from);
        self.cut_before(from, from);
    }

    #[inline]
    pub(super) fn is_out_of_order(&self, list: EntryIndex) -> bool {
        self.get(list).stamp != Stamp::NONE
    }

    /// Marks a list as out of order, or leaves its mark as it is.
    #[inline]
    pub(super) fn mark_out_of_order(&mut self, list: EntryIndex, is: bool) {
        self.get_mut(list).stamp.0 |= u64::from(is);
    }

    /// Notes that a list, which is empty, is in order.
    #[inline]
    pub(super) fn clear_mark(&mut self, list: EntryIndex) {
        self.get_mut(list).stamp = Stamp::NONE;
    }

    // Memory.

    /// Makes room for `timers` timers in all.
    pub(super) fn try_reserve(&mut self, timers: usize) -> Result<(), ReserveError> {
        let places = (self.used - self.lists) as usize;
        match (self.used as usize).checked_add(timers.saturating_sub(places)) {
            Some(wanted) if wanted <= self.capacity as usize => Ok(()),
            Some(wanted) if wanted < u32::MAX as usize => self.set_capacity(wanted),
            _ => Err(ReserveError::TooMany),
        }
    }

    #[cold]
    #[inline(never)]
    fn grow_or_panic(&mut self) {
        let capacity = self.capacity as usize;
        let wanted = match capacity * Self::LAYOUT.1 {
            0 => self.lists as usize + 16,
            bytes if bytes < BIG => capacity * 2,
            _ => capacity + capacity / 4,
        };
        let grown = match wanted.min(u32::MAX as usize - 1) {
            wanted if wanted > capacity => self.set_capacity(wanted),
            _ => Err(ReserveError::TooMany),
        };
        if let Err(error) = grown {
            panic!("{error}");
        }
    }

    /// Reallocates the block for at least this many entries, which must suffice for those in
    /// use. The system moves the pages of a large block instead of copying them.
    fn set_capacity(&mut self, capacity: usize) -> Result<(), ReserveError> {
        const UNIT: usize = size_of::<u128>();
        let bytes = capacity.checked_mul(Self::LAYOUT.1);
        let bytes = bytes.and_then(|bytes| bytes.checked_add(CACHE_LINE));
        let units = bytes.ok_or(ReserveError::TooMany)?.div_ceil(UNIT);
        let skipped = (self.first.as_ptr() as usize).wrapping_sub(self.memory.as_ptr() as usize);
        let is_new = self.memory.is_empty();
        if is_new {
            // Heads of levels that no timer has needed are zero, which is no timer's stamp.
            self.memory = zeroed(units);
        } else if let Some(more) = units.checked_sub(self.memory.len()) {
            let grown = self.memory.try_reserve_exact(more);
            grown.map_err(|_| ReserveError::NoMemory)?;
        } else {
            self.memory.truncate(units);
            self.memory.shrink_to_fit();
        }
        // SAFETY: the memory may stay uninitialized.
        unsafe { self.memory.set_len(self.memory.capacity()) };
        let start = self.memory.as_mut_ptr().cast::<u8>();
        let skip = start.align_offset(CACHE_LINE);
        let used = self.used as usize * Self::LAYOUT.1;
        // SAFETY: both places lie in the block, which has room for the entries in use behind
        // any number of bytes that aligning skips.
        unsafe {
            if !is_new && skip != skipped {
                ptr::copy(start.add(skipped), start.add(skip), used);
            }
            self.first = NonNull::new_unchecked(start.add(skip).cast());
        }
        let capacity = (self.memory.len() * UNIT - skip) / Self::LAYOUT.1;
        self.capacity = capacity.min(u32::MAX as usize - 1) as u32;
        Ok(())
    }

    /// Gives the block of a storage without timers back, but for the heads, which move to a new
    /// one. The system takes a while for each page, so the owner of a lock frees the block later.
    #[cold]
    #[inline(never)]
    fn free_vacant(&mut self) {
        debug_assert!(self.live == 0 && self.moved.is_empty());
        let mut small = Entries::<T>::new(self.lists);
        let heads = self.lists as usize * Self::LAYOUT.1;
        let (from, to) = (
            self.first.as_ptr().cast::<u8>(),
            small.first.as_ptr().cast(),
        );
        // SAFETY: both blocks have all heads.
        unsafe { ptr::copy_nonoverlapping(from, to, heads) };
        small.cut_before(EntryIndex::VACANT, EntryIndex::VACANT);
        small.is_shared = self.is_shared;
        core::mem::swap(self, &mut small);
        // So that dropping it does not look for payloads.
        small.used = small.lists;
        if self.is_shared {
            self.retired = Retired(core::mem::take(&mut small.memory));
            self.has_retired = true;
        }
    }

    /// Passes at most `budget` vacant entries at the end of the block, and gives their memory
    /// back when it has passed the last one. Returns whether it has.
    pub(super) fn trim_some(&mut self, budget: &mut usize) -> bool {
        while self.used > self.lists && !self.is_timer(EntryIndex(self.used - 1)) {
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            self.take_this_vacant(EntryIndex(self.used - 1));
            self.used -= 1;
        }
        let _ = self.set_capacity(self.used as usize + 16);
        true
    }

    #[cfg(test)]
    pub(super) fn assert_consistent(&self) {
        assert_eq!(self.all_timers().count(), self.live());
        let vacant = self.on_list(EntryIndex::VACANT).count();
        let vacant = vacant + usize::from(self.spare != EntryIndex::VACANT);
        assert_eq!(vacant, (self.used - self.lists - self.live) as usize);
        let moved = |&at: &EntryIndex| self.get(at).has(MOVED);
        assert_eq!(self.all_timers().filter(moved).count(), self.moved.len());
        for at in self.all_timers() {
            let (index, sequence) = (self.index_in_id(at), self.get(at).stamp.sequence());
            assert_eq!(self.find(index.into(), sequence), Some(at));
        }
    }
}

/// Returns memory that the system has often zeroed already.
fn zeroed(units: usize) -> Vec<MaybeUninit<u128>> {
    let mut zeros = ManuallyDrop::new(alloc::vec![0_u128; units]);
    // SAFETY: the parts are those of a vector whose elements have the same layout.
    unsafe { Vec::from_raw_parts(zeros.as_mut_ptr().cast(), units, zeros.capacity()) }
}

/// Copies the lists, and clones the payloads.
impl<T: Clone> Clone for Entries<T> {
    fn clone(&self) -> Entries<T> {
        let used = self.used as usize;
        let mut copy = Entries::new(self.lists);
        let room = copy.set_capacity(used);
        room.unwrap_or_else(|error| panic!("{error}"));
        // SAFETY: both blocks have room for as many entries. A payload that was copied so
        // counts as none, because no stamp says so until it was cloned.
        unsafe {
            let bytes = used * Self::LAYOUT.1;
            let (from, to) = (self.first.as_ptr().cast::<u8>(), copy.first.as_ptr().cast());
            ptr::copy_nonoverlapping(from, to, bytes)
        };
        (copy.used, copy.spare) = (self.used, self.spare);
        copy.moved.clone_from(&self.moved);
        self.all()
            .for_each(|entry| copy.get_mut(entry).stamp = Stamp::NONE);
        for entry in self.all_timers() {
            let Header {
                deadline, stamp, ..
            } = *self.get(entry);
            copy.fill(entry, deadline, stamp, self.payload(entry).clone());
        }
        copy
    }
}

/// Drops every payload, even if dropping one of them panics.
impl<T> Drop for Entries<T> {
    fn drop(&mut self) {
        struct Rest<'a, T>(&'a mut Entries<T>);
        impl<T> Rest<'_, T> {
            fn drop_all(&mut self) {
                while self.0.used > self.0.lists {
                    let last = EntryIndex(self.0.used - 1);
                    let payload = self.0.is_timer(last).then(|| self.0.take(last));
                    self.0.used = last.0;
                    drop(payload);
                }
            }
        }
        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                self.drop_all();
            }
        }
        if core::mem::needs_drop::<T>() {
            Rest(self).drop_all();
        }
    }
}
