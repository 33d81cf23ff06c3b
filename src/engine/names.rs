//! Which timers go by which name.
//!
//! Only timers that have a name come here: the others touch none of it. A
//! bucket's lock is taken before a shard's and never while one is held, except
//! that scheduling and cancelling by name hold it across the shard's, so that a
//! timer cannot end before it is entered.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
// Not the one of `crate::sync`: no thread waits for another through a name.
use std::sync::Arc;

use crate::id::TimerId;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock};

const BUCKETS: usize = 16;

pub(crate) struct Names {
    buckets: [Mutex<Bucket>; BUCKETS],
    /// Names are given out in the order in which timers were created.
    created: AtomicU64,
}

/// Timers by name, and by age under each.
#[derive(Default)]
pub(crate) struct Bucket(HashMap<Arc<str>, BTreeMap<u64, TimerId>>);

/// A timer's own knowledge of its name.
#[derive(Clone)]
pub(crate) struct NameTag {
    name: Arc<str>,
    age: u64,
}

impl Names {
    pub(crate) fn new() -> Names {
        Names {
            buckets: std::array::from_fn(|_| Mutex::new(Bucket::default())),
            created: AtomicU64::new(0),
        }
    }

    /// A tag for a timer that is being created.
    pub(crate) fn tag(&self, name: &Arc<str>) -> NameTag {
        NameTag {
            name: Arc::clone(name),
            age: self.created.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub(crate) fn bucket(&self, name: &str) -> MutexGuard<'_, Bucket> {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        lock(&self.buckets[hasher.finish() as usize % BUCKETS])
    }

    /// Forgets a timer that has ended.
    pub(crate) fn remove(&self, tag: &NameTag) {
        self.bucket(&tag.name).remove(tag);
    }
}

impl NameTag {
    pub(crate) fn into_name(self) -> Arc<str> {
        self.name
    }
}

impl Bucket {
    pub(crate) fn insert(&mut self, tag: NameTag, id: TimerId) {
        self.0.entry(tag.name).or_default().insert(tag.age, id);
    }

    pub(crate) fn remove(&mut self, tag: &NameTag) {
        if let Some(timers) = self.0.get_mut(&tag.name) {
            timers.remove(&tag.age);
            if timers.is_empty() {
                self.0.remove(&tag.name);
            }
        }
    }

    /// The timers of a name, the one that was created first first.
    pub(crate) fn timers(&self, name: &str) -> Vec<TimerId> {
        let timers = self.0.get(name);
        timers.map_or_else(Vec::new, |timers| timers.values().copied().collect())
    }
}
