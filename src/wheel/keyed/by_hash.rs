//! The timers that may have a given key, by the key's hash.
//!
//! A key is stored once, beside its timer's payload, with its hash. Hashing, comparing or
//! dropping a key runs the caller's code, which may panic. This file does none of these
//! things. The caller's code runs before anything changes or after everything has changed.
//!
//! With `std`, each wheel hashes with a random key of its own, and the map is a hash map.
//! `core` has no source of randomness, and `alloc` has no hash map. Without `std`, all
//! wheels therefore hash with the same key, and the map is sorted: an attacker cannot make
//! it slower with keys whose hashes are different, but can with keys that share a hash.

use alloc::vec;
use alloc::vec::Vec;

use crate::id::TimerId;
use map::{Entry, Map};

pub(super) use map::HashKey;

#[cfg(feature = "std")]
mod map {
    use core::hash::{BuildHasherDefault, Hasher};
    use std::collections::HashMap;

    pub(super) use std::collections::hash_map::Entry;
    pub(in super::super) use std::collections::hash_map::RandomState as HashKey;

    pub(super) type Map<V> = HashMap<u64, V, BuildHasherDefault<HashedAlready>>;

    pub(super) fn shrink<V>(map: &mut Map<V>) {
        map.shrink_to_fit();
    }

    #[cfg(test)]
    pub(super) fn room<V>(map: &Map<V>) -> usize {
        map.capacity()
    }

    /// A hasher for keys that are hashes already. It returns them unchanged.
    #[derive(Default)]
    pub(in super::super) struct HashedAlready(u64);

    impl Hasher for HashedAlready {
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
}

#[cfg(not(feature = "std"))]
mod map {
    use core::hash::BuildHasherDefault;

    use alloc::collections::BTreeMap;
    pub(super) use alloc::collections::btree_map::Entry;

    // Deprecated in favour of the hasher of `std`, which is the same.
    #[allow(deprecated)]
    pub(in super::super) type HashKey = BuildHasherDefault<core::hash::SipHasher>;

    pub(super) type Map<V> = BTreeMap<u64, V>;

    /// Does nothing, because the map frees memory whenever a timer is removed.
    pub(super) fn shrink<V>(_: &mut Map<V>) {}

    #[cfg(test)]
    pub(super) fn room<V>(map: &Map<V>) -> usize {
        map.len()
    }
}

/// The timers of all keys in use, by the hashes of the keys.
#[derive(Default)]
pub(super) struct ByHash(Map<SameHash>);

/// The timers of all keys with the same hash: nearly always a single timer.
enum SameHash {
    One(TimerId),
    Many(Vec<TimerId>),
}

impl ByHash {
    /// Returns the timers whose keys have this hash.
    pub(super) fn of(&self, hash: u64) -> &[TimerId] {
        match self.0.get(&hash) {
            None => &[],
            Some(SameHash::One(id)) => core::slice::from_ref(id),
            Some(SameHash::Many(ids)) => ids,
        }
    }

    pub(super) fn insert(&mut self, hash: u64, id: TimerId) {
        match self.0.entry(hash) {
            Entry::Vacant(vacant) => _ = vacant.insert(SameHash::One(id)),
            Entry::Occupied(mut same) => match same.get_mut() {
                SameHash::One(other) => {
                    let other = *other;
                    same.insert(SameHash::Many(vec![other, id]));
                }
                SameHash::Many(ids) => ids.push(id),
            },
        }
    }

    pub(super) fn remove(&mut self, hash: u64, id: TimerId) {
        let Entry::Occupied(mut same) = self.0.entry(hash) else {
            return;
        };
        if let SameHash::Many(ids) = same.get_mut() {
            ids.retain(|&other| other != id);
            if !ids.is_empty() {
                return;
            }
        }
        same.remove();
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn shrink(&mut self) {
        map::shrink(&mut self.0);
    }

    /// Returns the number of timers.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.keys().map(|&hash| self.of(hash).len()).sum()
    }

    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        map::room(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tick, Wheel};

    #[test]
    fn timers_of_one_hash_are_removed_one_by_one() {
        let mut wheel = Wheel::new(64);
        let timers = [0, 1, 2].map(|n| wheel.schedule_at(Tick(n), ()));
        let mut by_hash = ByHash::default();
        timers.iter().for_each(|&id| by_hash.insert(7, id));
        assert_eq!((by_hash.of(7), by_hash.of(8)), (&timers[..], &[][..]));
        by_hash.remove(7, timers[1]);
        by_hash.remove(7, timers[1]);
        by_hash.remove(8, timers[0]);
        assert_eq!(by_hash.of(7), [timers[0], timers[2]]);
        by_hash.remove(7, timers[0]);
        by_hash.remove(7, timers[2]);
        assert!(by_hash.of(7).is_empty() && by_hash.0.is_empty());
    }
}
