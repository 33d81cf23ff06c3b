//! The timers that may have a given key, by the key's hash.
//!
//! A key is stored once, beside its timer's payload, with its hash. Hashing,
//! comparing, cloning or dropping a key runs the caller's code, which may panic.
//! This file does none of these things. The caller's code runs before anything
//! changes or after everything has changed.

use alloc::vec;
use alloc::vec::Vec;

use super::by_hash::{ByHash, Entry, shrink};
use crate::id::TimerId;

/// The timers of all keys in use, by the hashes of the keys.
#[derive(Default)]
pub(super) struct Ids {
    by_hash: ByHash<SameHash>,
}

/// The timers of all keys with the same hash: nearly always a single timer.
enum SameHash {
    One(TimerId),
    Many(Vec<TimerId>),
}

impl Ids {
    /// Returns the timers whose keys have this hash.
    pub(super) fn of(&self, hash: u64) -> &[TimerId] {
        match self.by_hash.get(&hash) {
            None => &[],
            Some(SameHash::One(id)) => core::slice::from_ref(id),
            Some(SameHash::Many(ids)) => ids,
        }
    }

    pub(super) fn insert(&mut self, hash: u64, id: TimerId) {
        match self.by_hash.entry(hash) {
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
        let Entry::Occupied(mut same) = self.by_hash.entry(hash) else {
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
        self.by_hash.clear();
    }

    pub(super) fn shrink(&mut self) {
        shrink(&mut self.by_hash);
    }

    /// Returns the number of timers.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_hash.keys().map(|&hash| self.of(hash).len()).sum()
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
        let mut ids = Ids::default();
        timers.iter().for_each(|&id| ids.insert(7, id));
        assert_eq!((ids.of(7), ids.of(8)), (&timers[..], &[][..]));
        ids.remove(7, timers[1]);
        ids.remove(7, timers[1]);
        ids.remove(8, timers[0]);
        assert_eq!(ids.of(7), [timers[0], timers[2]]);
        ids.remove(7, timers[0]);
        ids.remove(7, timers[2]);
        assert!(ids.of(7).is_empty() && ids.by_hash.is_empty());
    }
}
