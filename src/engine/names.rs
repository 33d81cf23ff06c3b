//! The index of timers by name. Timers without a name do not touch it.
//!
//! A bucket's lock is taken before a shard's lock, and never while a shard's lock is
//! held. Therefore no two threads wait for each other. Scheduling and cancelling by name
//! hold the bucket's lock across the shard's; otherwise a timer could end before it is
//! in the index.
//!
//! A map moves all its timers when it grows, and other threads wait meanwhile. As names are
//! spread over many buckets, that is one timer in 64: with a million, half a
//! millisecond. No list holds all timers with a name. Each engine hashes names with its
//! own key, so an attacker cannot choose names that share a bucket.
//!
//! The index holds ids by the hash of the name, and the names themselves are with their
//! timers. Two names may have the same hash, so a timer that is found here must be asked
//! for its name.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::iter::from_fn;

use crate::engine::fairness::step_aside;
use crate::id::TimerId;
use crate::shard::Place;
use crate::sync::{IS_MODEL, Lock, LockGuard, RandomKey};

const BUCKETS: usize = if IS_MODEL { 2 } else { 64 };

/// A map with room for this many times its timers gives memory back.
const SPARSE: usize = 8;

/// A map with room for fewer timers than `SPARSE` times this keeps its memory.
const FEW: usize = 4;

/// The number of timers that one hold of a bucket's lock finds, or tries to cancel.
pub(crate) const NAMESAKES_PER_HOLD: usize = if IS_MODEL { 1 } else { 32 };

pub(crate) struct Names {
    buckets: [Lock<Bucket>; BUCKETS],
    key: RandomKey,
}

#[derive(Default)]
pub(crate) struct Bucket {
    /// One timer of each hash, with its age. Most names have only one.
    one: HashMap<u64, (u64, TimerId), BuildHasherDefault<Hashed>>,
    /// The other timers.
    others: BTreeMap<Place, TimerId>,
    /// The number of timers that were created under a name of this bucket.
    created: u64,
}

/// The hasher of what is a hash already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a hash is a `u64`");
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
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
        // Bits in the middle, because a map uses those at both ends.
        &self.buckets[(hash >> 32) as usize % BUCKETS]
    }
}

impl Bucket {
    pub(crate) fn insert(&mut self, place: Place, id: TimerId) {
        match self.one.entry(place.hash) {
            Entry::Vacant(vacant) => {
                vacant.insert((place.age, id));
            }
            Entry::Occupied(_) => {
                self.others.insert(place, id);
            }
        }
    }

    pub(crate) fn remove(&mut self, place: Place) {
        match self.one.entry(place.hash) {
            Entry::Occupied(one) if one.get().0 == place.age => {
                one.remove();
                self.give_memory_back();
            }
            _ => {
                self.others.remove(&place);
            }
        }
    }

    #[inline]
    fn give_memory_back(&mut self) {
        let (len, capacity) = (self.one.len(), self.one.capacity());
        if capacity > SPARSE * len.max(FEW) {
            self.one.shrink_to(2 * len);
        }
    }

    /// Returns the next of these timers, or `None` after the last one.
    pub(crate) fn next(&self, of: &mut Namesakes<'_>) -> Option<TimerId> {
        let Place { hash, age } = of.next;
        let one = self.one.get(&hash).copied();
        let one = one.filter(|(one, _)| (age..of.end.age).contains(one));
        let mut others = self.others.range(of.next..of.end);
        let other = others.next().map(|(place, &id)| (place.age, id));
        let (age, id) = one.into_iter().chain(other).min_by_key(|&(age, _)| age)?;
        of.next.age = age + 1;
        Some(id)
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

    /// Returns the ages of the timers with a hash, of those whose age is in the range.
    fn ages(bucket: &Bucket, hash: u64, ages: std::ops::Range<u64>) -> Vec<u64> {
        let place = |age| Place { hash, age };
        let mut namesakes = Namesakes {
            name: "",
            next: place(ages.start),
            end: place(ages.end),
        };
        let next = || bucket.next(&mut namesakes).map(|_| namesakes.next.age - 1);
        from_fn(next).collect()
    }

    #[test]
    fn every_timer_is_found_and_memory_comes_back() {
        let (mut bucket, one) = (Bucket::default(), any_id());
        for hash in 0..3_000 {
            assert!(ages(&bucket, hash, 0..9).is_empty());
            bucket.insert(Place { hash, age: 7 }, one);
        }
        for hash in 0..3_000 {
            assert_eq!(ages(&bucket, hash, 0..9), [7]);
            bucket.remove(Place { hash, age: 7 });
            assert!(ages(&bucket, hash, 0..9).is_empty());
            assert!(bucket.one.capacity() <= SPARSE * bucket.one.len().max(FEW));
        }
    }

    #[test]
    fn timers_of_one_hash_come_in_the_order_of_age() {
        let (mut bucket, one) = (Bucket::default(), any_id());
        for age in [5, 3, 9, 1] {
            bucket.insert(Place { hash: 7, age }, one);
        }
        assert_eq!(ages(&bucket, 7, 0..10), [1, 3, 5, 9]);
        assert_eq!(ages(&bucket, 7, 2..9), [3, 5]);
        for (age, left) in [(3, 3), (5, 2), (1, 1), (1, 1), (9, 0), (9, 0)] {
            bucket.remove(Place { hash: 7, age });
            assert_eq!(ages(&bucket, 7, 0..10).len(), left);
        }
        assert!(bucket.one.is_empty() && bucket.others.is_empty());
    }

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
