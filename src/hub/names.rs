//! The index of timers by name. Timers without a name do not touch it.
//!
//! A bucket's lock is taken before a shard's lock, and never while a shard's lock is
//! held. Therefore no two threads wait for each other. Scheduling and cancelling by name
//! hold the bucket's lock across the shard's; otherwise a timer could end before it is
//! in the index.
//!
//! No operation under a bucket's lock costs more than a search in a sorted map: no table
//! grows all at once (`names/table.rs`), and no list holds all timers with a name. Each
//! engine hashes names with its own key, so an attacker cannot choose names that share a
//! bucket.
//!
//! The index holds ids by the hash of the name, and the names themselves are with their
//! timers. Two names may have the same hash, so a timer that is found here must be asked
//! for its name.

mod table;

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher};
use std::iter::from_fn;

use crate::hub::fairness::step_aside;
use crate::id::TimerId;
use crate::shard::Place;
use crate::sync::{IS_MODEL, Lock, LockGuard, RandomKey};
use table::Table;

const BUCKETS: usize = 16;

/// The number of timers that one hold of a bucket's lock finds, or tries to cancel.
pub(crate) const NAMESAKES_PER_HOLD: usize = if IS_MODEL { 1 } else { 32 };

pub(crate) struct Names {
    buckets: [Lock<Bucket>; BUCKETS],
    key: RandomKey,
}

/// The timers by the hash of their name and by age.
#[derive(Default)]
pub(crate) struct Bucket {
    table: Table,
    /// The number of timers that were created under a name of this bucket.
    created: u64,
}

/// The place of a timer that is being created, and the lock of its bucket.
pub(crate) struct Naming<'a> {
    bucket: LockGuard<'a, Bucket>,
    pub(crate) place: Place,
}

impl Naming<'_> {
    /// Enters the timer under its name, and releases the bucket.
    #[inline]
    pub(crate) fn end(mut self, id: TimerId) {
        self.bucket.insert(self.place, id);
    }
}

/// The timers with a name, or another one of its hash, that were created before some
/// moment, oldest first.
pub(crate) struct Namesakes<'a> {
    pub(crate) name: &'a str,
    /// The place of the first timer that has not been visited.
    next: Place,
    /// The place behind the youngest timer.
    end: Place,
}

impl Names {
    pub(crate) fn new() -> Names {
        Names {
            buckets: std::array::from_fn(|_| Lock::new(Bucket::default())),
            key: RandomKey::default(),
        }
    }

    /// Locks the bucket for a timer that is being created, and makes the timer's place.
    #[inline]
    pub(crate) fn begin(&self, name: &str) -> Naming<'_> {
        let hash = self.hash(name);
        let mut bucket = self.lock_of(hash).lock();
        let age = bucket.created;
        bucket.created += 1;
        Naming {
            bucket,
            place: Place { hash, age },
        }
    }

    /// Returns the timers that have this name, or its hash, now.
    pub(crate) fn namesakes<'a>(&self, name: &'a str) -> Namesakes<'a> {
        let hash = self.hash(name);
        let place = |age| Place { hash, age };
        Namesakes {
            name,
            next: place(0),
            end: place(self.lock_of(hash).lock().created),
        }
    }

    pub(crate) fn bucket_of(&self, namesakes: &Namesakes<'_>) -> LockGuard<'_, Bucket> {
        self.lock_of(namesakes.next.hash).lock()
    }

    /// Lets waiting threads take a bucket's lock between two holds of it.
    pub(crate) fn step_aside(&self, namesakes: &Namesakes<'_>) {
        step_aside(self.lock_of(namesakes.next.hash));
    }

    /// Appends the next few of these timers. Returns whether there may be more of them.
    pub(crate) fn find_some(&self, of: &mut Namesakes<'_>, found: &mut VecDeque<TimerId>) -> bool {
        // Reserved before the lock is taken, because growing would copy the ids under it.
        found.reserve(NAMESAKES_PER_HOLD);
        let bucket = self.bucket_of(of);
        let before = found.len();
        found.extend(from_fn(|| bucket.next(of)).take(NAMESAKES_PER_HOLD));
        found.len() - before == NAMESAKES_PER_HOLD
    }

    /// Removes a timer that has ended.
    pub(crate) fn remove(&self, place: Place) {
        self.lock_of(place.hash).lock().remove(place);
    }

    /// Hashes the bytes of a name. A `str` would end with one more byte, which sets names
    /// apart only in a key of several parts.
    fn hash(&self, name: &str) -> u64 {
        let mut hasher = self.key.build_hasher();
        hasher.write(name.as_bytes());
        hasher.finish()
    }

    fn lock_of(&self, hash: u64) -> &Lock<Bucket> {
        &self.buckets[hash as usize % BUCKETS]
    }
}

impl Bucket {
    pub(crate) fn insert(&mut self, place: Place, id: TimerId) {
        self.table.insert(place.hash, place.age, id);
    }

    pub(crate) fn remove(&mut self, place: Place) {
        self.table.remove(place.hash, place.age);
    }

    /// Returns the next of these timers, or `None` after the last one.
    pub(crate) fn next(&self, of: &mut Namesakes<'_>) -> Option<TimerId> {
        let ages = of.next.age..of.end.age;
        let (age, id) = self.table.find(of.next.hash, ages).next()?;
        of.next.age = age + 1;
        Some(id)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn which_bucket_a_name_comes_into_cannot_be_foretold() {
        let buckets = |names: &Names| -> Vec<u64> {
            let name = |n: u32| format!("name {n}");
            (0..64)
                .map(|n| names.namesakes(&name(n)).next.hash)
                .collect()
        };
        assert_ne!(buckets(&Names::new()), buckets(&Names::new()));
    }
}
