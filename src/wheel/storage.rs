//! Where entries live: one block of memory, links by index.
//!
//! Timers and the heads of the lists they hang on (sentinels) are entries of
//! the same block, so linking and unlinking have no special cases: they only
//! store to neighbours, and a store that misses the cache does not stall.
//!
//! This file holds all of the wheel's `unsafe`. Its argument is one sentence:
//! an [`At`] is made only here, for an entry that exists, and entries are
//! never taken away again, so an `At` stays in bounds for the life of its
//! storage, to which whoever holds it brings it back. The middle of a list,
//! which is kept as a number, is one of these or zero, an entry that is always
//! there.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};

use super::vacant::Vacant;
use crate::id::MAX_SEQUENCE;

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

/// Who lives in an entry: a sequence number that is never given out twice,
/// and beside it some bits of state for whoever owns the wheel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Stamp(u64);

impl Stamp {
    pub(crate) const TAG_BITS: u32 = 12;
    const TAG_MASK: u64 = (1 << Self::TAG_BITS) - 1;
    /// Before every timer's.
    pub(crate) const VACANT: Stamp = Stamp(0);
    /// Less than every timer's, and no timer's sequence number.
    const SENTINEL: Stamp = Stamp(1);

    #[inline]
    pub(crate) fn new(sequence: u64, tag: u16) -> Stamp {
        debug_assert!(0 < sequence && sequence <= MAX_SEQUENCE);
        debug_assert!(u64::from(tag) <= Self::TAG_MASK);
        Stamp(sequence << Self::TAG_BITS | u64::from(tag))
    }

    /// The next sequence number's, with the same tag; `None` if there is none.
    #[inline]
    pub(crate) fn following(self) -> Option<Stamp> {
        self.0.checked_add(1 << Self::TAG_BITS).map(Stamp)
    }

    #[inline]
    pub(crate) fn sequence(self) -> u64 {
        self.0 >> Self::TAG_BITS
    }

    #[inline]
    pub(crate) fn tag(self) -> u16 {
        (self.0 & Self::TAG_MASK) as u16
    }

    #[inline]
    pub(crate) fn with(self, bits: u16) -> Stamp {
        Stamp(self.0 | u64::from(bits))
    }

    #[inline]
    pub(crate) fn without(self, bits: u16) -> Stamp {
        Stamp(self.0 & !u64::from(bits))
    }

    #[inline]
    fn is_timer(self) -> bool {
        self.0 > Self::TAG_MASK
    }
}

/// One cell: a timer, the head of a list, or vacant.
#[repr(C)]
pub(crate) struct Entry<T> {
    /// A timer's deadline. For a sentinel, in the lower half its coordinate:
    /// the bit that says whether its list holds anything (see `levels.rs`); in
    /// the upper half its middle (see [`Storage::insert_at_middle`]).
    pub(crate) deadline: u64,
    pub(crate) stamp: Stamp,
    next: At,
    prev: At,
    /// Initialised exactly while `stamp.is_timer()`.
    payload: MaybeUninit<T>,
}

/// The coordinate of a list that no bit stands for.
pub(crate) const NO_COORDINATE: u32 = u32::MAX;

/// From which end of its list an entry comes to be filed again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Front,
    Back,
}

/// Entries start on a cache line, so that one of 32 bytes never straddles two.
const ALIGNMENT: usize = 64;
const FIRST_CAPACITY: u32 = 64;

/// A block of so many bytes grows by an eighth and not to the double, so that at
/// most a ninth of it is unused: the system moves its pages, if it must, and often
/// makes it longer where it is (measured, ten million timers: 54 bytes each became
/// 36, the longest pause 0.8 ms and then 0.6).
const LARGE: usize = 32 << 20;

pub(crate) struct Storage<T> {
    /// The first entry.
    base: NonNull<Entry<T>>,
    /// What was allocated, and how many bytes of it come before `base`.
    block: *mut u8,
    skipped: usize,
    capacity: u32,
    /// Entries `0..used` are initialised.
    used: u32,
    live: u32,
    vacant: Vacant,
    owns: PhantomData<Entry<T>>,
}

// SAFETY: a storage owns its entries and hands out access only through its
// own borrows, as a `Vec<T>` would.
unsafe impl<T: Send> Send for Storage<T> {}
// SAFETY: as above; a shared borrow only reads.
unsafe impl<T: Sync> Sync for Storage<T> {}

impl<T> Storage<T> {
    /// A storage whose entry 0 is a sentinel: the head of the first list.
    pub(crate) fn new() -> (Storage<T>, At) {
        let mut storage = Storage {
            base: NonNull::dangling(),
            block: ptr::null_mut(),
            skipped: 0,
            capacity: 0,
            used: 0,
            live: 0,
            vacant: Vacant::new(),
            owns: PhantomData,
        };
        let first = storage.add_sentinels(1, |_| NO_COORDINATE);
        (storage, first)
    }

    /// How many timers are stored.
    #[inline]
    pub(crate) fn live(&self) -> usize {
        self.live as usize
    }

    /// Makes room for `timers` timers in all without growing again.
    pub(crate) fn reserve(&mut self, timers: usize) {
        let more = timers.saturating_sub(self.live());
        let vacant = (self.capacity - self.used) as usize;
        if more > vacant {
            self.grow(self.used as usize + more);
        }
    }

    /// Adds `count` list heads, each an empty list of its own, and returns
    /// the first. `coordinate(n)` is that of the n-th.
    pub(crate) fn add_sentinels(&mut self, count: u32, coordinate: impl Fn(u32) -> u32) -> At {
        let first = self.used;
        let wanted = first as usize + count as usize;
        if wanted > self.capacity as usize {
            self.grow(wanted);
        }
        for n in 0..count {
            let at = At(first + n);
            self.write(
                at,
                Entry {
                    deadline: u64::from(coordinate(n)),
                    stamp: Stamp::SENTINEL,
                    next: at,
                    prev: at,
                    payload: MaybeUninit::uninit(),
                },
            );
            self.used += 1;
        }
        At(first)
    }

    /// The n-th sentinel of a block that [`Self::add_sentinels`] returned.
    #[inline]
    pub(crate) fn nth(&self, first: At, n: u32) -> At {
        let at = At(first.0 + n);
        assert!(at.0 < self.used);
        at
    }

    /// Stores a timer. It hangs on no list yet: link it.
    #[inline]
    pub(crate) fn insert(&mut self, deadline: u64, stamp: Stamp, payload: T) -> At {
        debug_assert!(stamp.is_timer());
        let Some(at) = self.vacant.take_last().or_else(|| self.pop_vacant()) else {
            return self.insert_at_end(deadline, stamp, payload);
        };
        let entry = self.entry_mut(at);
        debug_assert!(entry.stamp == Stamp::VACANT);
        entry.deadline = deadline;
        entry.stamp = stamp;
        entry.payload = MaybeUninit::new(payload);
        self.live += 1;
        at
    }

    /// Takes an entry that was vacated before the last one, and asks for the one
    /// that will be taken some time after it.
    fn pop_vacant(&mut self) -> Option<At> {
        let at = self.vacant.top(self.live)?;
        let below = self.next(at);
        self.vacant.pop(below, self.live);
        self.prefetch(below);
        Some(at)
    }

    fn insert_at_end(&mut self, deadline: u64, stamp: Stamp, payload: T) -> At {
        if self.used == self.capacity {
            self.grow(self.used as usize + 1);
        }
        let at = At(self.used);
        self.write(
            at,
            Entry {
                deadline,
                stamp,
                next: at,
                prev: at,
                payload: MaybeUninit::new(payload),
            },
        );
        self.used += 1;
        self.live += 1;
        at
    }

    /// Takes a timer out of its entry, which becomes vacant. Unlink it first.
    ///
    /// # Panics
    /// If the entry holds no timer.
    #[inline]
    pub(crate) fn remove(&mut self, at: At) -> T {
        let entry = self.entry_mut(at);
        assert!(entry.stamp.is_timer());
        entry.stamp = Stamp::VACANT;
        // SAFETY: the entry held a timer, so its payload was initialised; the
        // stamp now says that it no longer is.
        let payload = unsafe { entry.payload.assume_init_read() };
        if let Some(before) = self.vacant.replace_last(at) {
            self.entry_mut(before).next = self.vacant.push(before, self.live);
        }
        self.live -= 1;
        payload
    }

    /// The entry at `index`, if it holds the timer with this sequence number.
    #[inline]
    pub(crate) fn find(&self, index: u32, sequence: u64) -> Option<At> {
        let at = self.at(index)?;
        let stamp = self.entry(at).stamp;
        (stamp.sequence() == sequence).then_some(at)
    }

    /// The entry at `index`, if there is one, whoever lives in it.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<At> {
        (index < self.used).then_some(At(index))
    }

    /// Every entry that holds a timer and has an index of at least `from`.
    pub(crate) fn timers(&self, from: u32) -> impl Iterator<Item = At> + '_ {
        (from..self.used)
            .map(At)
            .filter(|&at| self.entry(at).stamp.is_timer())
    }

    #[inline]
    pub(crate) fn payload(&self, at: At) -> &T {
        let entry = self.entry(at);
        assert!(entry.stamp.is_timer());
        // SAFETY: the entry holds a timer, so its payload is initialised.
        unsafe { entry.payload.assume_init_ref() }
    }

    #[inline]
    pub(crate) fn payload_mut(&mut self, at: At) -> &mut T {
        let entry = self.entry_mut(at);
        assert!(entry.stamp.is_timer());
        // SAFETY: the entry holds a timer, so its payload is initialised.
        unsafe { entry.payload.assume_init_mut() }
    }

    #[inline]
    pub(crate) fn entry(&self, at: At) -> &Entry<T> {
        debug_assert!(at.0 < self.used);
        // SAFETY: an `At` is in bounds (see the top of this file), and the
        // entries below `used` are initialised.
        unsafe { &*self.base.as_ptr().add(at.0 as usize) }
    }

    #[inline]
    pub(crate) fn entry_mut(&mut self, at: At) -> &mut Entry<T> {
        debug_assert!(at.0 < self.used);
        // SAFETY: as in `entry`, and `self` is borrowed mutably.
        unsafe { &mut *self.base.as_ptr().add(at.0 as usize) }
    }

    /// The entries, with the block's address at hand: the compiler would load
    /// it again after every store to an entry.
    #[inline]
    fn block(&mut self) -> Block<'_, T> {
        Block {
            base: self.base,
            used: self.used,
            borrows: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn next(&self, at: At) -> At {
        self.entry(at).next
    }

    #[inline]
    pub(crate) fn prev(&self, at: At) -> At {
        self.entry(at).prev
    }

    /// Hangs an entry behind the last one of `list`.
    #[inline]
    pub(crate) fn append(&mut self, list: At, at: At) {
        let mut block = self.block();
        let head = block.get(list);
        let last = head.prev;
        head.prev = at;
        let entry = block.get(at);
        entry.prev = last;
        entry.next = list;
        block.get(last).next = at;
    }

    /// Hangs an entry on a list that is filled from both ends of another one:
    /// what comes from the front stands, in the order of the calls, before all
    /// that comes from the back, which stands the other way round. The list
    /// was empty when that began.
    #[inline]
    pub(crate) fn insert_at_middle(&mut self, list: At, at: At, from: End) {
        let mut block = self.block();
        let head = block.get(list);
        let middle = match head.next == list {
            true => list,
            false => At((head.deadline >> u32::BITS) as u32),
        };
        let new_middle = match from {
            End::Front => at,
            End::Back => middle,
        };
        head.deadline = u64::from(head.deadline as u32) | u64::from(new_middle.0) << u32::BITS;
        let before = block.get(middle);
        let next = before.next;
        before.next = at;
        let entry = block.get(at);
        entry.prev = middle;
        entry.next = next;
        block.get(next).prev = at;
    }

    /// The coordinate of a sentinel.
    #[inline]
    pub(crate) fn coordinate(&self, list: At) -> u32 {
        self.entry(list).deadline as u32
    }

    /// Takes an entry off its list. Returns the list if that is empty now.
    #[inline]
    pub(crate) fn unlink(&mut self, at: At) -> Option<At> {
        let mut block = self.block();
        let entry = block.get(at);
        let (prev, next) = (entry.prev, entry.next);
        block.get(prev).next = next;
        block.get(next).prev = prev;
        // Only on a circle of two are both neighbours the same: the sentinel.
        (prev == next).then_some(prev)
    }

    /// Lets `list` begin at `first`, forgetting what hung before it; with the
    /// list itself as `first` it becomes empty.
    #[inline]
    pub(crate) fn cut_before(&mut self, list: At, first: At) {
        self.entry_mut(list).next = first;
        self.entry_mut(first).prev = list;
    }

    /// Asks the processor for an entry that will be read soon.
    #[inline]
    pub(crate) fn prefetch(&self, at: At) {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: the address is inside the block, and a prefetch has no
            // effect but on the cache.
            unsafe { _mm_prefetch(self.base.as_ptr().add(at.0 as usize).cast(), _MM_HINT_T0) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }

    fn write(&mut self, at: At, entry: Entry<T>) {
        assert!(at.0 < self.capacity);
        // SAFETY: the index is below the capacity, and writing does not drop
        // what was there.
        unsafe { self.base.as_ptr().add(at.0 as usize).write(entry) }
    }

    /// Reallocates. A large block's pages are moved by the system and not
    /// copied: whoever grows an engine's shard holds its lock (measured, past four
    /// million entries: 100 to 170 ms became less than the machine's own pauses).
    #[cold]
    fn grow(&mut self, wanted: usize) {
        let capacity = wanted
            .max(Self::capacity_after(self.capacity as usize))
            .min(u32::MAX as usize);
        assert!(wanted <= capacity, "a wheel holds at most 2^32 - 1 entries");
        let layout = Self::layout(capacity);
        let block = match self.capacity {
            // SAFETY: an entry is not zero-sized, so neither is the layout.
            0 => unsafe { alloc(layout) },
            // SAFETY: the block was allocated with the layout for the capacity
            // that it has.
            old => unsafe { realloc(self.block, Self::layout(old as usize), layout.size()) },
        };
        if block.is_null() {
            handle_alloc_error(layout);
        }
        let (was, is) = (self.skipped, Self::skip(block));
        if was != is {
            // SAFETY: both places lie inside the new block, which is larger than
            // the entries in use by what is skipped at most.
            unsafe {
                let bytes = self.used as usize * size_of::<Entry<T>>();
                ptr::copy(block.add(was), block.add(is), bytes);
            }
        }
        (self.block, self.skipped) = (block, is);
        // SAFETY: inside the block, which is not null.
        self.base = unsafe { NonNull::new_unchecked(block.add(is).cast()) };
        self.capacity = capacity as u32;
    }

    /// How many entries there is to be room for when there is none left.
    fn capacity_after(capacity: usize) -> usize {
        match capacity * size_of::<Entry<T>>() < LARGE {
            true => (capacity * 2).max(FIRST_CAPACITY as usize),
            false => capacity + capacity / 8,
        }
    }

    fn deallocate(&mut self) {
        if self.capacity > 0 {
            let layout = Self::layout(self.capacity as usize);
            // SAFETY: the block was allocated with this layout in `grow`.
            unsafe { dealloc(self.block, layout) }
        }
    }

    /// How many bytes of a block come before its first entry.
    fn skip(block: *const u8) -> usize {
        block.addr().wrapping_neg() % ALIGNMENT
    }

    /// The layout does not ask for the alignment, but leaves room to align in:
    /// asked for, it would make every `realloc` a copy.
    fn layout(capacity: usize) -> Layout {
        Layout::array::<Entry<T>>(capacity)
            .and_then(|entries| {
                Layout::from_size_align(entries.size() + ALIGNMENT, entries.align())
            })
            .expect("a wheel's entries must fit the address space")
    }
}

/// A storage's entries, borrowed together.
struct Block<'a, T> {
    base: NonNull<Entry<T>>,
    used: u32,
    borrows: PhantomData<&'a mut Entry<T>>,
}

impl<T> Block<'_, T> {
    #[inline]
    fn get(&mut self, at: At) -> &mut Entry<T> {
        debug_assert!(at.0 < self.used);
        // SAFETY: as in `Storage::entry_mut`.
        unsafe { &mut *self.base.as_ptr().add(at.0 as usize) }
    }
}

impl<T> Drop for Storage<T> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            for index in 0..self.used {
                let at = At(index);
                if self.entry(at).stamp.is_timer() {
                    drop(self.remove(at));
                }
            }
        }
        self.deallocate();
    }
}

#[cfg(test)]
mod tests;
