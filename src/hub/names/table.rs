//! A table from the hashes of names to timers, which grows by one slot at a time.
//!
//! This is linear hashing: whenever the table has fewer than two slots for each hash, it
//! gets one more slot, into which one of the others is split. No insertion moves more than
//! the hashes of two slots, and those are one on average. The slots lie in segments, each
//! as long as all those before it, so growing copies no slot either. A table that has
//! become sparse gives a few slots back with each removal.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::id::TimerId;

/// The number of slots for each hash. With only one, a search would more often look at the
/// hash of another name first, which is a cache miss and a wrong guess of the processor.
const ROOM: usize = 2;

/// The table is sparse if it has more slots than this for each hash. A removal then gives
/// so many slots back.
const SPARSE: usize = 4;

/// The number of boxes that a table keeps for new hashes. An allocation would take as
/// long as the rest of an insertion.
const MOST_SPARES: usize = 8;

#[derive(Default)]
pub(super) struct Table {
    slots: Slots,
    hashes: usize,
    spares: Spares,
}

#[derive(Default)]
struct Slots {
    /// Slot 0, slot 1, slots 2 and 3, slots 4 to 7, and so on.
    segments: Vec<Vec<Slot>>,
    len: usize,
}

/// Boxes of hashes that were removed, in a list. They hold no timers.
#[derive(Default)]
struct Spares {
    first: Slot,
    len: usize,
}

/// The hashes of a slot, in a list.
type Slot = Option<Box<Hashed>>;

/// The timers whose names have the same hash.
struct Hashed {
    hash: u64,
    timers: Timers,
    next: Slot,
}

/// Timers by their age.
enum Timers {
    /// Of a hash that was removed.
    None,
    One(u64, TimerId),
    Many(BTreeMap<u64, TimerId>),
}

impl Table {
    pub(super) fn insert(&mut self, hash: u64, age: u64, id: TimerId) {
        // Only the last slot of all can be missing.
        if self.slots.len == 0 {
            self.slots.add();
        }
        let slot = self.slots.of_mut(hash);
        if let Some(hashed) = find_in(slot, hash) {
            return hashed.timers.insert(age, id);
        }
        let next = slot.take();
        *slot = Some(self.spares.boxed(hash, Timers::One(age, id), next));
        self.hashes += 1;
        while self.slots.len < ROOM * self.hashes {
            self.slots.add();
        }
    }

    pub(super) fn remove(&mut self, hash: u64, age: u64) {
        if self.slots.len == 0 {
            return;
        }
        let mut link = self.slots.of_mut(hash);
        while link.as_ref().is_some_and(|hashed| hashed.hash != hash) {
            link = &mut link.as_mut().expect("it was looked at").next;
        }
        let Some(mut hashed) = link.take_if(|hashed| hashed.timers.remove(age)) else {
            return;
        };
        *link = hashed.next.take();
        self.hashes -= 1;
        self.spares.keep(hashed);
        if self.is_sparse() {
            self.shrink();
        }
    }

    fn is_sparse(&self) -> bool {
        self.slots.len > SPARSE * self.hashes
    }

    #[cold]
    fn shrink(&mut self) {
        for _ in 0..SPARSE {
            if self.is_sparse() {
                self.slots.remove();
            }
        }
    }

    /// Returns the timers with a hash and an age in the range, the oldest first.
    pub(super) fn find(&self, hash: u64, ages: Range<u64>) -> impl Iterator<Item = (u64, TimerId)> {
        let hashed = hashes_of(self.slots.of(hash)).find(|hashed| hashed.hash == hash);
        let timers = hashed.map(|hashed| hashed.timers.within(ages));
        timers.into_iter().flatten()
    }
}

impl Slots {
    fn of(&self, hash: u64) -> Option<&Hashed> {
        if self.len == 0 {
            return None;
        }
        let (segment, index) = place(slot_of(hash, self.len));
        self.segments[segment][index].as_deref()
    }

    #[inline]
    fn of_mut(&mut self, hash: u64) -> &mut Slot {
        let (segment, index) = place(slot_of(hash, self.len));
        &mut self.segments[segment][index]
    }

    /// Adds a slot, and moves the hashes that now belong to it.
    #[cold]
    fn add(&mut self) {
        let new = self.len;
        let (segment, index) = place(new);
        if index == 0 {
            self.segments.push(Vec::with_capacity(new.max(1)));
        }
        self.segments[segment].push(None);
        self.len += 1;
        if let Some(before) = new.checked_sub(1 << new.checked_ilog2().unwrap_or(0)) {
            let (segment, index) = place(before);
            let list = self.segments[segment][index].take();
            self.put(list);
        }
    }

    /// Removes the last slot, and moves its hashes to another one.
    fn remove(&mut self) {
        let (segment, _) = place(self.len - 1);
        let list = self.segments[segment].pop().flatten();
        if self.segments[segment].is_empty() {
            self.segments.pop();
        }
        self.len -= 1;
        self.put(list);
    }

    /// Puts each hash of a list into its slot.
    fn put(&mut self, mut list: Slot) {
        while let Some(mut hashed) = list {
            list = hashed.next.take();
            let slot = self.of_mut(hashed.hash);
            hashed.next = slot.take();
            *slot = Some(hashed);
        }
    }
}

impl Spares {
    /// Puts a new hash into a box.
    #[inline]
    fn boxed(&mut self, hash: u64, timers: Timers, next: Slot) -> Box<Hashed> {
        let Some(mut spare) = self.first.take() else {
            return Box::new(Hashed { hash, timers, next });
        };
        self.first = std::mem::replace(&mut spare.next, next);
        self.len -= 1;
        (spare.hash, spare.timers) = (hash, timers);
        spare
    }

    /// Keeps the box of a removed hash if there are few such boxes.
    #[inline]
    fn keep(&mut self, mut removed: Box<Hashed>) {
        if self.len < MOST_SPARES {
            removed.timers = Timers::None;
            removed.next = self.first.take();
            self.first = Some(removed);
            self.len += 1;
        }
    }
}

/// Returns a hash and those behind it in its list.
fn hashes_of(first: Option<&Hashed>) -> impl Iterator<Item = &Hashed> {
    std::iter::successors(first, |hashed| hashed.next.as_deref())
}

#[inline]
fn find_in(slot: &mut Slot, hash: u64) -> Option<&mut Hashed> {
    let mut next = slot.as_deref_mut();
    while let Some(hashed) = next {
        if hashed.hash == hash {
            return Some(hashed);
        }
        next = hashed.next.as_deref_mut();
    }
    None
}

impl Timers {
    fn insert(&mut self, age: u64, id: TimerId) {
        match self {
            Timers::None => *self = Timers::One(age, id),
            Timers::One(first, one) => {
                *self = Timers::Many([(*first, *one), (age, id)].into());
            }
            Timers::Many(timers) => {
                timers.insert(age, id);
            }
        }
    }

    /// Removes a timer. Returns whether no timer is left.
    fn remove(&mut self, age: u64) -> bool {
        match self {
            Timers::None => true,
            Timers::One(one, _) => *one == age,
            Timers::Many(timers) => {
                timers.remove(&age);
                timers.is_empty()
            }
        }
    }

    fn within(&self, ages: Range<u64>) -> impl Iterator<Item = (u64, TimerId)> {
        let (one, many) = match self {
            Timers::None => (None, None),
            Timers::One(age, id) => (Some((*age, *id)), None),
            Timers::Many(timers) => (None, Some(timers.range(ages.clone()))),
        };
        let one = one.filter(|(age, _)| ages.contains(age));
        let many = many.into_iter().flatten();
        one.into_iter().chain(many.map(|(&age, &id)| (age, id)))
    }
}

/// Returns the slot of a hash, which is one of `slots`. Ignores the bits of the hash that
/// have chosen the table.
fn slot_of(hash: u64, slots: usize) -> usize {
    let bits = (hash >> 32) as usize;
    let mask = slots.next_power_of_two() - 1;
    match bits & mask {
        slot if slot < slots => slot,
        slot => slot & (mask >> 1),
    }
}

/// Returns the segment of a slot, and the slot's index in it.
fn place(slot: usize) -> (usize, usize) {
    match slot.checked_ilog2() {
        None => (0, 0),
        Some(bit) => (bit as usize + 1, slot - (1 << bit)),
    }
}

/// Takes the lists apart one by one, because a long one would otherwise be dropped
/// recursively.
impl Drop for Hashed {
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(mut hashed) = next {
            next = hashed.next.take();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::tick::Tick;
    use crate::wheel::Wheel;

    fn any_id() -> TimerId {
        Wheel::new(64).schedule_at(Tick(1_000), ())
    }

    /// Returns the ages of the timers with a hash.
    fn ages(table: &Table, hash: u64) -> Vec<u64> {
        table.find(hash, 0..u64::MAX).map(|(age, _)| age).collect()
    }

    /// Returns hashes that are as good as random.
    fn hashes(count: u64) -> impl Iterator<Item = u64> {
        (1..=count).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn longest(table: &Table) -> usize {
        let slots = table.slots.segments.iter().flatten();
        let length = |slot: &Slot| hashes_of(slot.as_deref()).count();
        slots.map(length).max().unwrap_or(0)
    }

    #[test]
    fn every_timer_is_found_while_the_table_grows_and_shrinks() {
        let (mut table, one) = (Table::default(), any_id());
        for (age, hash) in (0..).zip(hashes(3_000)) {
            assert!(ages(&table, hash).is_empty());
            table.insert(hash, age, one);
            assert_eq!(table.slots.len, ROOM * (age as usize + 1));
            assert!(longest(&table) <= 8);
        }
        for (age, hash) in (0..).zip(hashes(3_000)) {
            assert_eq!(ages(&table, hash), [age]);
            table.remove(hash, age);
            assert!(ages(&table, hash).is_empty());
            assert!(table.slots.len <= SPARSE * table.hashes.max(1));
        }
        assert_eq!((table.slots.len, table.hashes), (0, 0));
        assert!(table.slots.segments.is_empty());
    }

    #[test]
    fn a_few_boxes_are_kept_for_new_hashes() {
        let (mut table, one) = (Table::default(), any_id());
        for hash in hashes(100) {
            table.insert(hash, 0, one);
        }
        hashes(100).for_each(|hash| table.remove(hash, 0));
        assert_eq!(
            hashes_of(table.spares.first.as_deref()).count(),
            MOST_SPARES
        );
        for (hash, left) in hashes(100).zip((0..MOST_SPARES).rev()) {
            table.insert(hash, 0, one);
            assert_eq!((table.spares.len, ages(&table, hash).len()), (left, 1));
        }
        assert!(table.spares.first.is_none());
    }

    #[test]
    fn a_segment_is_as_long_as_all_before_it() {
        let (mut table, one) = (Table::default(), any_id());
        for hash in hashes(1_000) {
            table.insert(hash, 0, one);
        }
        let capacities = table.slots.segments.iter().map(Vec::capacity);
        let lengths = [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];
        assert!(capacities.eq(lengths));
    }

    #[test]
    fn timers_of_one_hash_come_in_the_order_of_age() {
        let (mut table, one) = (Table::default(), any_id());
        for age in [5, 3, 9, 1] {
            table.insert(7, age, one);
        }
        assert_eq!(ages(&table, 7), [1, 3, 5, 9]);
        let some = table.find(7, 2..9).map(|(age, _)| age);
        assert_eq!(some.collect::<Vec<_>>(), [3, 5]);
        for (age, left) in [(3, 3), (9, 2), (1, 1), (1, 1), (5, 0), (5, 0)] {
            table.remove(7, age);
            assert_eq!(ages(&table, 7).len(), left);
        }
        assert_eq!(table.hashes, 0);
    }
}
