//! The storage of a wheel: its timers, and the lists that they hang on.
//!
//! All of it stands in one block of words of eight bytes. An [`EntryIndex`] counts words. Lists
//! are circular, and the head of a list is a pair of links like the one with which an entry
//! begins, so that linking and unlinking have no special cases:
//!
//! ```text
//! block   | heads of lists | timers and vacant entries | not used yet |
//!         0                first                       first + used
//! head    { next: 32, prev: 32 }
//! entry   { next: 32, prev: 32, stamp: 64, deadline: 64, payload: T }
//! stamp   { sequence number: 52, tag: 12 }
//! ```
//!
//! A stamp without a sequence number belongs to a vacant entry. The vacant entries hang on a
//! list, too, the last vacated one at its end.
//!
//! All unsafe code of the wheels is in this file. It rests on one rule: an [`EntryIndex`]
//! that a caller uses came from the same storage, and no entry was cut off since that holds
//! it. Storages are cut off only at vacant entries, which are taken off their lists first. What
//! takes any index, `entry_at` and `before`, compares it with the end of the storage.

use alloc::alloc::{Layout, handle_alloc_error};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, align_of, size_of};
use core::ptr;

use crate::id::TimerId;

/// An entry of a storage, or the head of a list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct EntryIndex(u32);

impl EntryIndex {
    /// Returns the entry at an index, or the head of a list by its number.
    pub(crate) const fn new(index: u32) -> EntryIndex {
        EntryIndex(index)
    }

    /// Returns the head so many lists behind this one.
    pub(super) const fn nth(self, lists: u32) -> EntryIndex {
        EntryIndex(self.0 + lists)
    }

    /// Returns the heads from this one on for which a bit is set.
    #[inline]
    pub(super) fn picked(self, mut bits: u64) -> impl Iterator<Item = EntryIndex> {
        core::iter::from_fn(move || {
            let lists = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some(self.nth(lists))
        })
    }

    pub(crate) const fn index(self) -> u32 {
        self.0
    }
}

/// The largest number of lists of a slot: about as many cache misses as a core has under way
/// at a time.
pub(super) const PARTS: u32 = 8;

/// The vacant entries.
const VACANT: EntryIndex = EntryIndex(0);
// The wheel's own lists of timers: see `advance.rs`.
pub(super) const OVERDUE: EntryIndex = EntryIndex(1);
pub(super) const DUE: EntryIndex = EntryIndex(2);
pub(super) const IN_HEAP: EntryIndex = EntryIndex(3);
pub(super) const OWN_LISTS: u32 = 4;

/// Some bits of a timer's state. The three lowest are the wheel's, the others are its owner's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag(pub(crate) u16);

/// The identity of a timer: a sequence number that is never given twice, and a tag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Stamp(u64);

impl Stamp {
    pub(crate) const TAG_BITS: u32 = 12;
    const TAG_MASK: u64 = (1 << Self::TAG_BITS) - 1;
    /// The stamp of a vacant entry.
    pub(super) const NONE: Stamp = Stamp(0);

    /// Returns the stamp with the next sequence number, or `None` if this has the last one.
    pub(super) fn next(self) -> Option<Stamp> {
        self.0.checked_add(1 << Self::TAG_BITS).map(Stamp)
    }

    /// Returns the stamp with this tag instead of its own.
    pub(super) fn with(self, tag: Tag) -> Stamp {
        Stamp(self.0 & !Self::TAG_MASK | u64::from(tag.0) & Self::TAG_MASK)
    }

    /// Returns the first [word](TimerId::words_in) of a timer's id.
    pub(super) fn word(self) -> u64 {
        self.0 & !Self::TAG_MASK
    }

    pub(crate) fn sequence(self) -> u64 {
        self.0 >> Self::TAG_BITS
    }

    pub(crate) fn tag(self) -> Tag {
        Tag((self.0 & Self::TAG_MASK) as u16)
    }

    fn is_timer(self) -> bool {
        self.0 > Self::TAG_MASK
    }
}

/// A timer that waits in the wheel's heap, with its deadline. The least fires first.
pub(super) type Sorted = Reverse<(u64, Stamp, EntryIndex)>;

/// The tag bit of a timer that waits in the wheel's heap.
pub(super) const SORTING: u16 = 1;
/// The tag bit of a timer that isn't at the index in its id: it was re-armed after it had
/// lost that entry to another timer, or to the system.
const MOVED: u16 = 1 << 1;
/// The tag bit of a timer that was disarmed since it was linked: see `link.rs`.
pub(super) const DISARMED: u16 = 1 << 2;

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Links {
    pub(super) next: EntryIndex,
    pub(super) prev: EntryIndex,
}

/// What an entry holds besides its links and a payload.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) stamp: Stamp,
    pub(crate) deadline: u64,
}

impl Header {
    pub(super) fn has(&self, bits: u16) -> bool {
        self.stamp.tag().0 & bits != 0
    }

    pub(super) fn mark(&mut self, bits: u16) {
        self.stamp.0 |= u64::from(bits);
    }

    pub(super) fn unmark(&mut self, bits: u16) {
        self.stamp.0 &= !u64::from(bits);
    }
}

// Some 32-bit targets would align it to four bytes only.
#[repr(C, align(8))]
struct Entry<T> {
    links: Links,
    header: Header,
    payload: MaybeUninit<T>,
}

impl<T> Drop for Entry<T> {
    fn drop(&mut self) {
        if self.header.stamp.is_timer() {
            // SAFETY: an entry has a payload while its stamp is a timer's.
            unsafe { self.payload.assume_init_drop() };
        }
    }
}

/// The reason why there is no room for the requested number of timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReserveError {
    /// A wheel cannot hold this many timers. All its entries together take at most 32 GiB.
    /// Spread the timers over several wheels.
    TooMany,
    /// The allocator does not have memory for this many timers. Reserve fewer.
    NoMemory,
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReserveError::TooMany => "a wheel's timers take at most 32 GiB; reserve fewer",
            ReserveError::NoMemory => "no memory for so many timers; reserve fewer",
        })
    }
}

impl core::error::Error for ReserveError {}

/// A block with room for this many words or more grows by an eighth instead of doubling.
const BIG: u32 = 1 << 15;

pub(crate) struct Entries<T> {
    /// The first word. It lies in the block.
    start: *mut u64,
    /// The number of words of heads, before the first entry.
    pub(super) first: u32,
    /// The number of words of entries, vacant ones included.
    used: u32,
    /// The number of words for entries.
    room: u32,
    /// The number of timers.
    pub(super) live: usize,
    block: Vec<MaybeUninit<u64>>,
    /// The timers that aren't at the index in their id, by the first word of their id: that
    /// index, and their entry.
    moved: BTreeMap<u64, (u32, EntryIndex)>,
    payloads: PhantomData<T>,
}

// SAFETY: the storage owns its block and the payloads in it, as a `Vec<T>` does.
unsafe impl<T: Send> Send for Entries<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Entries<T> {}

impl<T> Entries<T> {
    /// The number of words from one entry to the next. An index reaches 32 GiB, and a new wheel
    /// has four entries.
    ///
    /// ```compile_fail,E0080
    /// tickwheel::Wheel::<[u64; 1 << 30]>::new(64);
    /// ```
    pub(super) const STRIDE: u32 = {
        let words = size_of::<Entry<T>>() / size_of::<u64>();
        assert!(words < 1 << 30, "a wheel's payload takes less than 8 GiB: put it into a box");
        words as u32
    };

    /// A block without timers is given back if so many words of it were used: 128 KiB, and more
    /// than a new block has.
    const WORTH_FREEING: u32 =
        if Self::STRIDE < 1 << 12 { 1 << 14 } else { Self::STRIDE.saturating_mul(5) };

    /// The first entry begins at a multiple of this many bytes. It is a cache line, so that
    /// small entries don't straddle two, or more if payloads ask for it. A vector that began there
    /// itself would be copied when it grows.
    const ALIGN: usize = if align_of::<Entry<T>>() < 64 { 64 } else { align_of::<Entry<T>>() };

    /// Creates a storage with so many lists.
    pub(super) fn new(lists: u32) -> Entries<T> {
        let mut entries = Entries {
            start: ptr::null_mut(),
            first: lists.next_multiple_of((Self::ALIGN / size_of::<u64>()) as u32),
            used: 0,
            room: 0,
            live: 0,
            block: Vec::new(),
            moved: BTreeMap::new(),
            payloads: PhantomData,
        };
        entries.grow();
        (0..lists).for_each(|list| entries.set_apart(EntryIndex(list)));
        entries
    }

    fn entry(&self, at: EntryIndex) -> *mut Entry<T> {
        debug_assert!(self.entry_at(at.0.into()) == Some(at));
        self.place(at).cast()
    }

    pub(crate) fn get(&self, at: EntryIndex) -> &Header {
        // SAFETY: the header of an entry was written when the entry was added. No exclusive
        // reference exists beside `&self`.
        unsafe { &(*self.entry(at)).header }
    }

    pub(super) fn get_mut(&mut self, at: EntryIndex) -> &mut Header {
        // SAFETY: as in `get`, with `&mut self`.
        unsafe { &mut (*self.entry(at)).header }
    }

    /// Returns whether an entry holds a timer.
    pub(super) fn is_timer(&self, at: EntryIndex) -> bool {
        self.get(at).stamp.is_timer()
    }

    pub(crate) fn payload(&self, at: EntryIndex) -> &T {
        assert!(self.is_timer(at));
        // SAFETY: an entry has a payload while its stamp is a timer's.
        unsafe { (*self.entry(at)).payload.assume_init_ref() }
    }

    pub(crate) fn payload_mut(&mut self, at: EntryIndex) -> &mut T {
        assert!(self.is_timer(at));
        // SAFETY: as above, with `&mut self`.
        unsafe { (*self.entry(at)).payload.assume_init_mut() }
    }

    /// Prefetches an entry. It may lie in two cache lines, and it may have been cut off.
    pub(crate) fn prefetch(&self, at: EntryIndex) {
        let place = self.start.wrapping_add(at.0 as usize);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch of any address is harmless.
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(place.cast());
            _mm_prefetch::<_MM_HINT_T0>(place.wrapping_add(3).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = place;
    }

    /// Returns all entries, vacant ones included.
    fn all(&self) -> impl DoubleEndedIterator<Item = EntryIndex> + use<T> {
        let all = self.first..self.first + self.used;
        all.step_by(Self::STRIDE as usize).map(EntryIndex)
    }

    /// Returns all entries that hold a timer.
    pub(super) fn all_timers(&self) -> impl Iterator<Item = EntryIndex> + '_ {
        self.all().filter(|&at| self.is_timer(at))
    }

    /// Returns all payloads, in the order of their entries.
    pub(super) fn payloads_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let entries = &*self;
        // SAFETY: these entries hold timers. Each is met once, and nothing else uses the
        // storage while it is borrowed.
        let payload = |at| unsafe { (*entries.entry(at)).payload.assume_init_mut() };
        entries.all_timers().map(payload)
    }

    /// Returns the number of bytes of the block.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.block)
    }

    // Finding a timer.

    /// Returns the entry at an index, if there is one.
    pub(super) fn entry_at(&self, index: u64) -> Option<EntryIndex> {
        let behind = index.wrapping_sub(self.first.into());
        let is_entry = behind < self.used.into() && behind % u64::from(Self::STRIDE) == 0;
        is_entry.then_some(EntryIndex(index as u32))
    }

    /// Returns the timer to which an id with these [words](TimerId::words_in) leads, if it is at
    /// the index in the id.
    pub(super) fn find(&self, (word, index): (u64, u64)) -> Option<EntryIndex> {
        let at = self.entry_at(index)?;
        (self.get(at).stamp.word() == word).then_some(at)
    }

    /// Does so if the timer isn't at the index in the id.
    #[cold]
    pub(super) fn find_moved(&self, (word, index): (u64, u64)) -> Option<EntryIndex> {
        // Another wheel's id has a larger index.
        self.moved.get(&word).filter(|&&(own, _)| index == own.into()).map(|&(_, at)| at)
    }

    /// Returns whether a timer isn't at the index in its id.
    pub(super) fn is_moved(&self, at: EntryIndex) -> bool {
        self.get(at).has(MOVED)
    }

    /// Returns the index in a timer's id.
    pub(super) fn index_in_id(&self, at: EntryIndex) -> u32 {
        if self.is_moved(at) { self.moved[&self.get(at).stamp.word()].0 } else { at.0 }
    }

    /// Forgets where a timer is that is about to be taken.
    #[inline]
    pub(super) fn forget_if_moved(&mut self, at: EntryIndex) {
        if self.is_moved(at) {
            self.moved.remove(&self.get(at).stamp.word());
        }
    }

    // Storing and removing a timer.

    /// Returns a vacant entry, which the caller fills, if there is room for one.
    #[inline(always)]
    pub(super) fn pop_vacant(&mut self) -> Option<EntryIndex> {
        let last = self.links(VACANT).prev;
        if last != VACANT {
            self.unlink(last);
            return Some(last);
        }
        let added = (self.used < self.room).then_some(EntryIndex(self.first + self.used))?;
        self.used += Self::STRIDE;
        // SAFETY: there is room for the entry, which needs no dropping.
        unsafe { (&raw mut (*self.entry(added)).header.stamp).write(Stamp::NONE) };
        Some(added)
    }

    /// Returns a vacant entry, which the caller fills.
    pub(super) fn take_vacant(&mut self) -> EntryIndex {
        if let Some(vacant) = self.pop_vacant() {
            return vacant;
        }
        self.grow();
        self.take_vacant()
    }

    /// Stores a timer in a vacant entry.
    pub(super) fn fill(&mut self, vacant: EntryIndex, deadline: u64, stamp: Stamp, payload: T) {
        self.live += 1;
        // SAFETY: as in `get_mut`. The entry was vacant, so nothing in it needs dropping.
        let entry = unsafe { &mut *self.entry(vacant) };
        entry.header = Header { stamp, deadline };
        entry.payload.write(payload);
    }

    /// Takes a timer's payload. The entry is neither vacant nor a timer afterwards.
    ///
    /// # Panics
    /// If the entry holds no timer.
    pub(crate) fn take(&mut self, at: EntryIndex) -> T {
        let stamp = core::mem::replace(&mut self.get_mut(at).stamp, Stamp::NONE);
        assert!(stamp.is_timer());
        self.live -= 1;
        // SAFETY: the stamp was a timer's, so there was a payload. From now on the stamp
        // says that there is none.
        unsafe { (*self.entry(at)).payload.assume_init_read() }
    }

    /// Makes an entry vacant whose timer was taken, and which hangs on no list.
    pub(super) fn vacate(&mut self, at: EntryIndex) {
        self.append(VACANT, at);
    }

    /// Stores a timer again under the id that it had, if possible in the entry that it had.
    pub(super) fn put_back(&mut self, id: TimerId, deadline: u64, payload: T) -> EntryIndex {
        let stamp = Stamp(id.sequence() << Stamp::TAG_BITS);
        let own = self.entry_at(id.index().into());
        if let Some(own) = own.filter(|&own| !self.is_timer(own)) {
            self.unlink(own);
            self.fill(own, deadline, stamp, payload);
            return own;
        }
        let other = self.take_vacant();
        self.fill(other, deadline, stamp.with(Tag(MOVED)), payload);
        self.moved.insert(stamp.word(), (id.index(), other));
        other
    }

    // Lists.

    fn place(&self, at: EntryIndex) -> *mut Links {
        debug_assert!(at.0 < self.first + self.used);
        // SAFETY: the index is that of a head or an entry, which lie in the block.
        unsafe { self.start.add(at.0 as usize).cast() }
    }

    pub(super) fn links(&self, at: EntryIndex) -> &Links {
        // SAFETY: the links were written when the list or the entry was added.
        unsafe { &*self.place(at) }
    }

    /// Lends the links of any entry or head, one at a time. Where several are stored to, the block
    /// is found once: a compiler can't know that no store moves it.
    pub(super) fn links_mut<'a>(&'a mut self) -> impl Fn(EntryIndex) -> &'a mut Links {
        let (start, end) = (self.start, self.first + self.used);
        move |at| {
            debug_assert!(at.0 < end);
            // SAFETY: as above. Nothing else uses the storage while it is borrowed.
            unsafe { &mut *start.add(at.0 as usize).cast() }
        }
    }

    /// Returns the entry before this one, on whatever list it is. If it was cut off, returns it.
    pub(super) fn before(&self, at: EntryIndex) -> EntryIndex {
        if at.0 < self.first + self.used { self.links(at).prev } else { at }
    }

    /// Links a head to itself, so that its list is empty, or an entry, so that it's on no list.
    pub(crate) fn set_apart(&mut self, at: EntryIndex) {
        // SAFETY: the links lie in the block.
        unsafe { self.place(at).write(Links { next: at, prev: at }) };
    }

    pub(super) fn is_empty(&self, list: EntryIndex) -> bool {
        self.links(list).next == list
    }

    /// Returns the first entry of a list.
    pub(crate) fn first_of(&self, list: EntryIndex) -> Option<EntryIndex> {
        let first = self.links(list).next;
        (first != list).then_some(first)
    }

    /// Returns the entry of a list that is not empty, unless it has more.
    pub(super) fn sole_of(&self, list: EntryIndex) -> Option<EntryIndex> {
        let Links { next, prev } = *self.links(list);
        debug_assert!(next != list, "an occupied list has an entry");
        (next == prev).then_some(next)
    }

    /// Returns the entries of a list.
    pub(super) fn on_list(&self, list: EntryIndex) -> impl Iterator<Item = EntryIndex> + '_ {
        let next = move |&at: &EntryIndex| Some(self.links(at).next).filter(|&next| next != list);
        core::iter::successors(self.first_of(list), next)
    }

    /// Appends an entry to a list, and returns what was the last one: the list itself, if it was
    /// empty.
    pub(super) fn append(&mut self, list: EntryIndex, at: EntryIndex) -> EntryIndex {
        let links = self.links_mut();
        let last = core::mem::replace(&mut links(list).prev, at);
        *links(at) = Links { next: list, prev: last };
        links(last).next = at;
        last
    }

    /// Takes an entry off its list. Returns the list if it's empty now.
    pub(super) fn unlink(&mut self, at: EntryIndex) -> Option<EntryIndex> {
        let links = self.links_mut();
        let Links { next, prev } = *links(at);
        debug_assert!(prev != at, "the entry is on a list");
        links(next).prev = prev;
        links(prev).next = next;
        // If both neighbours are the same, only the list's head is left.
        (next == prev).then_some(next)
    }

    /// Makes `first` the first entry of `list`, and forgets the entries before it. If `first`
    /// is the list itself, the list becomes empty.
    pub(crate) fn cut_before(&mut self, list: EntryIndex, first: EntryIndex) {
        let links = self.links_mut();
        links(list).next = first;
        links(first).prev = list;
    }

    /// Moves all entries of a list to the end of another one.
    pub(super) fn move_all(&mut self, from: EntryIndex, to: EntryIndex) {
        let Links { next: first, prev: last } = *self.links(from);
        if first != from {
            let end = core::mem::replace(&mut self.links_mut()(to).prev, last);
            self.cut_before(end, first);
            self.links_mut()(last).next = to;
            self.set_apart(from);
        }
    }

    // Memory.

    /// Makes room for `timers` timers in all, and for more if little was missing, so that a
    /// reservation before each timer doesn't copy all of them each time.
    pub(super) fn try_reserve(&mut self, timers: usize) -> Result<(), ReserveError> {
        let entries = (self.room / Self::STRIDE) as usize;
        let more = if self.room < BIG { entries.max(4) } else { entries.div_ceil(8) };
        let [words, grown] = [timers, entries + more].map(|n| n.saturating_mul(Self::STRIDE as _));
        let is_there = words <= self.room as usize || words < grown && self.set_room(grown).is_ok();
        if is_there { Ok(()) } else { self.set_room(words) }
    }

    /// Makes room for at least one more entry. If there is none, ends the process, as a `Vec`
    /// without memory does: a panic would leave the caller's call half done.
    #[cold]
    fn grow(&mut self) {
        let entries = (self.room / Self::STRIDE) as usize + 1;
        if self.try_reserve(entries).is_err() {
            let wanted = Layout::array::<Entry<T>>(entries);
            handle_alloc_error(wanted.unwrap_or(Layout::new::<Entry<T>>()));
        }
    }

    /// Reallocates the block for this many words of entries, a multiple of `STRIDE`, which
    /// must suffice for those in use. The system moves the pages of a large block instead of
    /// copying them.
    fn set_room(&mut self, words: usize) -> Result<(), ReserveError> {
        let slack = Self::ALIGN / size_of::<u64>();
        if words > (u32::MAX - self.first - Self::STRIDE) as usize - slack {
            return Err(ReserveError::TooMany);
        }
        let len = self.first as usize + words + slack;
        let skipped = self.start.addr().saturating_sub(self.block.as_ptr().addr());
        let more = len.saturating_sub(self.block.len());
        self.block.try_reserve_exact(more).map_err(|_| ReserveError::NoMemory)?;
        // SAFETY: the block may stay uninitialized.
        unsafe { self.block.set_len(len) };
        self.block.shrink_to_fit();
        let block = self.block.as_mut_ptr().cast::<u8>();
        let skip = block.addr().wrapping_neg() % Self::ALIGN;
        // SAFETY: the block has room for the heads and the entries in use behind any number of
        // bytes that aligning skips.
        unsafe {
            if skip != skipped {
                let in_use = (self.first + self.used) as usize * size_of::<u64>();
                ptr::copy(block.add(skipped), block.add(skip), in_use);
            }
            self.start = block.add(skip).cast();
        }
        self.room = words as u32;
        Ok(())
    }

    /// Returns whether there is no timer, and [`Entries::give_back`] is worth the call, which
    /// makes all heads anew.
    pub(crate) fn is_worth_freeing(&self) -> bool {
        self.live == 0 && self.used >= Self::WORTH_FREEING.max(self.first)
    }

    /// Returns the storage, which has no timers, to be dropped after a lock is released: the
    /// system takes a while for each of its pages. A new one replaces it, with empty lists.
    #[cold]
    pub(super) fn give_back(&mut self) -> Entries<T> {
        debug_assert!(self.live == 0 && self.moved.is_empty());
        core::mem::replace(self, Entries::new(self.first))
    }

    /// Passes at most `budget` vacant entries at the end of the block, and gives their memory
    /// back when it has passed the last one, or so much that the system takes a while for its
    /// pages. Returns whether it has passed all.
    pub(crate) fn trim_some(&mut self, budget: &mut usize) -> bool {
        let vacant = |it: &Self| it.all().next_back().filter(|&last| !it.is_timer(last));
        let mut next = vacant(self);
        while let Some(last) = next.filter(|_| *budget > 0) {
            *budget -= 1;
            self.unlink(last);
            self.used -= Self::STRIDE;
            next = vacant(self);
        }
        let room = self.used.saturating_add(Self::STRIDE.saturating_mul(16));
        if self.room.saturating_sub(room) > next.map_or(0, |_| self.room / 32) {
            let _ = self.set_room(room as usize);
        }
        next.is_none()
    }

    #[cfg(test)]
    pub(super) fn assert_consistent(&self) {
        let (block, words) = (self.block.as_ptr().addr(), self.first + self.room);
        let end = self.start.addr() + words as usize * size_of::<u64>();
        assert!(block <= self.start.addr() && end <= block + self.bytes());
        let first = self.start.addr() + self.first as usize * size_of::<u64>();
        assert_eq!((self.start.addr() % Self::ALIGN, first % Self::ALIGN), (0, 0));
        assert!(self.used <= self.room);
        assert!(self.block.capacity() <= self.block.len() + self.block.len() / 8);
        assert_eq!(self.all_timers().count(), self.live);
        assert_eq!(self.on_list(VACANT).count() + self.live, self.all().count());
        let moved = self.all_timers().filter(|&at| self.is_moved(at));
        assert_eq!(moved.count(), self.moved.len());
        for at in self.all_timers() {
            let words = (self.get(at).stamp.word(), self.index_in_id(at).into());
            assert_eq!(self.find(words).or(self.find_moved(words)), Some(at));
        }
    }
}

/// Copies the lists, and clones the payloads.
impl<T: Clone> Clone for Entries<T> {
    fn clone(&self) -> Entries<T> {
        let mut copy = Entries::new(self.first);
        let room = copy.try_reserve((self.used / Self::STRIDE) as usize);
        room.unwrap_or_else(|error| panic!("{error}"));
        for at in self.all() {
            // The next one behind the last, as long as the list of vacant entries is empty.
            let same = copy.take_vacant();
            *copy.links_mut()(same) = *self.links(at);
            if self.is_timer(at) {
                let Header { stamp, deadline } = *self.get(at);
                copy.fill(same, deadline, stamp, self.payload(at).clone());
            }
        }
        // SAFETY: both blocks have all heads.
        unsafe { ptr::copy_nonoverlapping(self.start, copy.start, self.first as usize) };
        copy.moved.clone_from(&self.moved);
        copy
    }
}

/// Drops every payload, even if dropping one of them panics.
impl<T> Drop for Entries<T> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() && self.live > 0 {
            let first = self.start.wrapping_add(self.first as usize).cast::<Entry<T>>();
            let entries = (self.used / Self::STRIDE) as usize;
            // SAFETY: so many entries lie side by side, and nothing uses them any more.
            unsafe { ptr::slice_from_raw_parts_mut(first, entries).drop_in_place() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tick, Wheel};
    use alloc::rc::Rc;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn what_was_reserved_is_there_and_no_more() {
        let mut wheel = Wheel::new(64);
        wheel.schedule_at(Tick(5), 0u64);
        let (of_four, entry) = (wheel.entries.bytes(), 32);
        wheel.reserve(5_000);
        for n in 1..5_000 {
            assert_eq!(wheel.try_reserve(5_000.min(n as usize + 99)), Ok(()));
            assert_eq!(wheel.entries.bytes(), of_four + (5_000 - 4) * entry);
            wheel.schedule_at(Tick(9), n);
        }
        // A large block does not double.
        wheel.reserve(10_000);
        (0..5_001).for_each(|n| _ = wheel.schedule_at(Tick(9), n));
        assert_eq!(wheel.entries.bytes(), of_four + (11_250 - 4) * entry);
        wheel.assert_consistent();
        // To reserve before each schedule copies the timers now and then.
        let mut wheel = Wheel::new(64);
        let mut room = |n| {
            wheel.reserve(n + 1);
            wheel.schedule_at(Tick(9), n);
            wheel.entries.room
        };
        let rooms: std::collections::BTreeSet<_> = (0..20_000usize).map(&mut room).collect();
        assert!(rooms.len() < 40, "{rooms:?}");
    }

    /// Four of these make a large block. It stayed as it was, and a schedule never returned.
    #[test]
    fn a_large_block_of_few_entries_grows() {
        let mut wheel = Wheel::new(64);
        let first = wheel.schedule_at(Tick(1), [7u64; 9_000]);
        for _ in 0..5 {
            let room = wheel.entries.room;
            wheel.entries.grow();
            assert!(wheel.entries.room > room);
        }
        assert_eq!(wheel.cancel(first), Some([7; 9_000]));
    }

    #[test]
    fn a_shrink_passes_as_many_entries_as_it_may() {
        let mut wheel = Wheel::new(64);
        let bytes = wheel.entries.bytes();
        let ids: Vec<_> = (0..160).map(|n| wheel.schedule_at(Tick(n), n)).collect();
        ids[1..].iter().for_each(|&id| _ = wheel.cancel(id));
        let mut rooms = Vec::new();
        for (mut budget, is_over, left) in
            [(0, false, 0), (5, false, 0), (50, false, 0), (200, true, 96)]
        {
            assert_eq!((wheel.entries.trim_some(&mut budget), budget), (is_over, left));
            rooms.push(wheel.entries.room);
        }
        // What is vacant is not given back all at once.
        assert!(rooms[0] == rooms[1] && rooms[1] > rooms[2] && rooms[2] > rooms[3], "{rooms:?}");
        assert!(wheel.entries.bytes() <= bytes + 16 * 32);
        // In the end, nothing but room for a few timers is left, however little it would be.
        wheel.reserve(1_000);
        (1..980).for_each(|n| _ = wheel.schedule_at(Tick(n), n));
        wheel.shrink();
        assert_eq!(wheel.entries.room, (980 + 16) * Entries::<u64>::STRIDE);
        assert_eq!(wheel.cancel(ids[0]), Some(0));
        wheel.assert_consistent();
    }

    #[test]
    fn more_timers_than_an_index_reaches_are_too_many() {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(5), 7u64);
        let stride = Entries::<u64>::STRIDE;
        let first_refused = ((u32::MAX - wheel.entries.first - stride) / stride + 1) as usize;
        let wraps = usize::MAX / stride as usize + 2;
        for timers in [first_refused, wraps, usize::MAX] {
            assert_eq!(wheel.try_reserve(timers), Err(ReserveError::TooMany));
        }
        let panic = catch_unwind(AssertUnwindSafe(|| wheel.reserve(usize::MAX))).unwrap_err();
        assert!(panic.downcast_ref::<String>().unwrap().contains("at most 32 GiB"));
        assert!(ReserveError::NoMemory.to_string().contains("no memory"));
        assert_eq!(wheel.cancel(id), Some(7));
    }

    /// An unwinding would leave a shard half done, and drop the payload under its lock.
    #[test]
    #[cfg(unix)]
    fn a_schedule_without_room_ends_the_process() {
        use std::os::unix::process::ExitStatusExt;
        const CHILD: &str = "TICKWHEEL_TEST_WITHOUT_ROOM";
        if std::env::var_os(CHILD).is_some() {
            let mut wheel = Wheel::new(64);
            let full = u32::MAX - wheel.entries.first;
            (wheel.entries.used, wheel.entries.room) = (full, full);
            wheel.schedule_at(Tick(5), 7u64);
        }
        let name = "wheel::entries::tests::a_schedule_without_room_ends_the_process";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let ended = child.args(["--exact", name]).env(CHILD, "").output().unwrap().status;
        assert_eq!(ended.signal(), Some(6), "{ended}");
    }

    #[test]
    fn no_sequence_number_comes_after_the_last() {
        let last = Stamp(u64::MAX);
        assert_eq!((last.next(), last.sequence()), (None, crate::id::MAX_SEQUENCE));
    }

    #[test]
    fn a_timer_is_found_whatever_its_tag_is() {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(5), ());
        let at = wheel.find(id).unwrap();
        wheel.set_tag(at, Tag(!0));
        assert_eq!((wheel.find(id), wheel.entries.get(at).stamp.tag()), (Some(at), Tag(0xfff)));
        wheel.set_tag(at, Tag(0));
        assert_eq!(wheel.pop_due(Tick(5)).map(|e| e.id()), Some(id));
    }

    /// Returns a wheel whose second timer is not at the index in its id, and that timer's id.
    fn with_a_moved_timer() -> (Wheel<&'static str>, TimerId) {
        let mut wheel = Wheel::new(64);
        wheel.schedule_at(Tick(8), "old");
        let id = wheel.schedule_at(Tick(1), "moved");
        let expired = wheel.pop_due(Tick(1)).unwrap();
        wheel.rearm(expired, Tick(2)).unwrap();
        assert!(wheel.entries.moved.is_empty());
        let expired = wheel.pop_due(Tick(2)).unwrap();
        wheel.schedule_at(Tick(9), "in its place");
        wheel.rearm(expired, Tick(8)).unwrap();
        (wheel, id)
    }

    #[test]
    fn a_moved_timer_is_forgotten_if_a_forged_id_names_its_place() {
        let (mut wheel, id) = with_a_moved_timer();
        let at = wheel.find(id).unwrap();
        let forged = TimerId::new(id.wheel(), id.sequence(), at.index());
        assert_eq!(wheel.cancel(forged), Some("moved"));
        wheel.assert_consistent();
    }

    #[test]
    fn a_moved_timer_fires_under_its_id_and_is_forgotten() {
        let (mut wheel, id) = with_a_moved_timer();
        let fired = core::iter::from_fn(|| wheel.pop_due(Tick(9)).map(|e| e.id()));
        assert_eq!(fired.collect::<Vec<_>>()[1], id);
        wheel.assert_consistent();
    }

    #[test]
    fn an_id_of_another_wheel_leads_to_no_timer() {
        let [(one, id), (other, _)] = [with_a_moved_timer(), with_a_moved_timer()];
        assert!(one.contains(id) && !other.contains(id));
        let plain = one.iter().find(|&(_, _, &payload)| payload != "moved").unwrap().0;
        assert!(one.contains(plain) && !other.contains(plain));
    }

    #[test]
    fn a_forged_index_inside_an_entry_leads_to_no_timer() {
        let mut wheel = Wheel::new(64);
        // Whose deadline and payload look like the stamp of a timer.
        let stamp = 7 << Stamp::TAG_BITS;
        let id = wheel.schedule_at(Tick(stamp), [stamp; 3]);
        for index in 0..wheel.entries.first + wheel.entries.room {
            assert!(!wheel.contains(TimerId::new(id.wheel(), 7, index)), "{index}");
        }
    }

    /// A payload whose clone or drop panics if it is fragile.
    struct Payload {
        alive: Rc<()>,
        is_fragile: bool,
    }

    impl Clone for Payload {
        fn clone(&self) -> Payload {
            assert!(!self.is_fragile, "on purpose");
            Payload { alive: Rc::clone(&self.alive), is_fragile: false }
        }
    }

    impl Drop for Payload {
        fn drop(&mut self) {
            assert!(!self.is_fragile, "on purpose");
        }
    }

    #[test]
    fn a_payload_is_aligned_as_it_asks_for_however_often_the_storage_has_grown() {
        #[repr(align(256))]
        struct Wide(u64);
        let mut wheel = Wheel::new(64);
        let ids: Vec<_> = (0..99).map(|n| wheel.schedule_at(Tick(n), Wide(n))).collect();
        for (n, id) in (0..).zip(ids) {
            let payload = wheel.get(id).unwrap();
            assert_eq!((payload.0, core::ptr::from_ref(payload).addr() % 256), (n, 0));
        }
        wheel.assert_consistent();
    }

    #[test]
    fn each_payload_is_dropped_once_even_if_a_clone_or_a_drop_panics() {
        let (alive, mut wheel) = (Rc::new(()), Wheel::new(64));
        // As many as there are entries.
        for n in 0..16 {
            let payload = Payload { alive: Rc::clone(&alive), is_fragile: n == 4 };
            wheel.schedule_at(Tick(u64::MAX - n), payload);
            if n == 3 {
                let (mut taken, rest) = (wheel.clone().into_iter(), wheel.clone());
                assert_eq!(Rc::strong_count(&alive), 13);
                drop((taken.next(), rest));
                assert_eq!(Rc::strong_count(&alive), 8);
            }
        }
        assert!(catch_unwind(AssertUnwindSafe(|| drop(wheel.clone()))).is_err());
        assert_eq!(Rc::strong_count(&alive), 17);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(wheel))).is_err());
        assert_eq!(Rc::strong_count(&alive), 1);

        let mut wheel = Wheel::new(64);
        for is_fragile in [true, false] {
            wheel.schedule_at(Tick(1), Payload { alive: Rc::clone(&alive), is_fragile });
        }
        assert!(catch_unwind(AssertUnwindSafe(|| wheel.clear())).is_err());
        assert_eq!((wheel.len(), Rc::strong_count(&alive)), (0, 1));
        wheel.assert_consistent();
    }
}
