//! Timers by the hash of a key or of a name that the caller chose.
//!
//! The key itself is with its timer, and whoever searches compares it, because two keys may have
//! one hash. Hashing, comparing or dropping a key runs the caller's code, which may panic. This
//! file does none of these things.
//!
//! `alloc` has no hash map, so without `std` both maps are sorted.

use alloc::collections::BTreeMap;
#[cfg(not(feature = "std"))]
use alloc::collections::btree_map::Entry;
use core::ops::RangeFrom;
#[cfg(feature = "std")]
use std::collections::hash_map::Entry;

use super::TimerId;

#[cfg(not(feature = "std"))]
type Map = BTreeMap<u64, TimerId>;
#[cfg(feature = "std")]
type Map = std::collections::HashMap<u64, TimerId, std::hash::BuildHasherDefault<HashedAlready>>;

/// A hasher for hashes. It returns them unchanged.
#[cfg(feature = "std")]
#[derive(Default)]
pub(crate) struct HashedAlready(u64);

#[cfg(feature = "std")]
impl std::hash::Hasher for HashedAlready {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes are looked up");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Timers by hashes, and those of one hash by their sequence numbers.
#[derive(Default)]
pub(crate) struct ByHash {
    /// One timer of each hash. Most hashes have only one.
    one: Map,
    others: BTreeMap<(u64, u64), TimerId>,
}

impl ByHash {
    pub(crate) fn insert(&mut self, hash: u64, id: TimerId) {
        match self.one.entry(hash) {
            Entry::Vacant(vacant) => _ = vacant.insert(id),
            Entry::Occupied(_) => _ = self.others.insert((hash, id.sequence()), id),
        }
    }

    pub(crate) fn remove(&mut self, hash: u64, id: TimerId) {
        match self.one.entry(hash) {
            Entry::Occupied(one) if *one.get() == id => _ = one.remove(),
            _ => _ = self.others.remove(&(hash, id.sequence())),
        }
    }

    /// Returns the oldest timer of a hash whose sequence number is in the range.
    pub(crate) fn oldest(&self, hash: u64, sequences: RangeFrom<u64>) -> Option<TimerId> {
        let others = self.others.range((hash, sequences.start)..=(hash, u64::MAX));
        let one = self.one.get(&hash).filter(|id| sequences.contains(&id.sequence()));
        others.map(|(_, id)| id).take(1).chain(one).min().copied()
    }

    /// Returns the number of timers.
    #[cfg(any(feature = "std", test))]
    pub(crate) fn len(&self) -> usize {
        self.one.len() + self.others.len()
    }

    /// Gives back memory that is not needed for so many timers, nor for those that there are, if
    /// it is much. A sorted map does so by itself.
    pub(crate) fn shrink_to(&mut self, timers: usize) {
        #[cfg(feature = "std")]
        if self.one.capacity() > 2 * timers {
            self.one.shrink_to(timers);
        }
        let _ = timers;
    }

    #[cfg(all(test, feature = "std"))]
    pub(crate) fn room(&self) -> usize {
        self.one.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WheelNumber;

    #[test]
    fn timers_of_one_hash_are_removed_one_by_one() {
        let timers = [1, 2, 3].map(|n| TimerId::new(WheelNumber::from(0), n, 0));
        let mut by_hash = ByHash::default();
        timers.iter().for_each(|&id| by_hash.insert(7, id));
        let find = |by_hash: &ByHash, hash| {
            let after = |id: &TimerId| by_hash.oldest(hash, id.sequence() + 1..);
            core::iter::successors(by_hash.oldest(hash, 0..), after).take(9).collect::<Vec<_>>()
        };
        assert_eq!((find(&by_hash, 7), find(&by_hash, 8)), (timers.to_vec(), vec![]));
        by_hash.remove(7, timers[0]);
        by_hash.remove(7, timers[0]);
        by_hash.remove(8, timers[1]);
        by_hash.insert(7, timers[0]);
        by_hash.remove(7, timers[1]);
        assert_eq!(find(&by_hash, 7), [timers[0], timers[2]]);
        by_hash.remove(7, timers[0]);
        by_hash.remove(7, timers[2]);
        assert!(find(&by_hash, 7).is_empty() && by_hash.len() == 0);
    }

    #[test]
    fn a_shrink_that_gives_nothing_back_moves_nothing() {
        let mut by_hash = ByHash::default();
        (1..100).for_each(|n| by_hash.insert(n, TimerId::new(WheelNumber::from(0), n, 0)));
        by_hash.shrink_to(0);
        let place = core::ptr::from_ref(&by_hash.one[&7]);
        by_hash.shrink_to(0);
        assert_eq!(core::ptr::from_ref(&by_hash.one[&7]), place);
    }
}
