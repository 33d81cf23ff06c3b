//! A store in memory, for tests and for jobs that need not outlive the process.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use crate::job::{JobId, StoredJob};
use crate::store::apply::{Kinds, Place, Rows, apply};
use crate::store::{Answer, Change, Due, DueJob, Lease, List, Store, StoreError};
use crate::wall::{SystemClock, WallClock, WallTime};
use parking_lot::Mutex;

/// A store in memory. Clones share the jobs, so that several nodes can work on them, or one
/// after the other.
///
/// One lease is for all jobs.
#[derive(Clone)]
pub struct MemoryStore {
    jobs: Arc<Mutex<Jobs>>,
    clock: Arc<dyn WallClock>,
}

/// Where a row lies.
type At = (Place, JobId);

/// The smallest id.
const FIRST: JobId = JobId {
    born: WallTime::from_unix_micros(0),
    number: 0,
};

#[derive(Default)]
struct Jobs {
    rows: BTreeMap<At, StoredJob>,
    /// The places of jobs that do not lie where they were born.
    places: HashMap<u64, Place>,
    keys: HashMap<(String, String), JobId>,
    next_number: u64,
    fence: u64,
    kinds: Kinds,
    /// The time at which the lease runs out, and its owner.
    lease: Option<(WallTime, String)>,
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs = self.jobs.lock().rows.len();
        f.debug_struct("MemoryStore")
            .field("jobs", &jobs)
            .finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// Returns an empty store, whose leases run out by the clock of the system.
    #[must_use]
    pub fn new() -> MemoryStore {
        MemoryStore::with_clock(SystemClock)
    }

    /// Returns an empty store, whose leases run out by `clock`.
    #[must_use]
    pub fn with_clock(clock: impl WallClock) -> MemoryStore {
        MemoryStore {
            jobs: Arc::default(),
            clock: Arc::new(clock),
        }
    }
}

impl Store for MemoryStore {
    fn acquire(
        &self,
        owner: &str,
        kinds: &[String],
        length: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let (mut jobs, now) = (self.jobs.lock(), self.clock.now());
        let is_held = |(end, holder): &(WallTime, String)| *end > now && holder != owner;
        if jobs.lease.as_ref().is_some_and(is_held) {
            return Ok(None);
        }
        jobs.fence += 1;
        jobs.kinds = Kinds::of(kinds);
        jobs.lease = Some((now + length, owner.to_owned()));
        Ok(Some(Lease { fence: jobs.fence }))
    }

    fn renew(&self, lease: Lease, length: Duration) -> Result<bool, StoreError> {
        let (mut jobs, now) = (self.jobs.lock(), self.clock.now());
        let is_last = jobs.fence == lease.fence;
        match &mut jobs.lease {
            Some((end, _)) if is_last && *end > now => *end = now + length,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn commit(&self, changes: &[Change]) -> Result<Vec<Answer>, StoreError> {
        let mut jobs = self.jobs.lock();
        let apply = |change| apply(&mut *jobs, change);
        changes.iter().map(apply).collect()
    }

    fn recover(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn due_before(&self, _: Lease, before: WallTime, most: usize) -> Result<Due, StoreError> {
        let jobs = self.jobs.lock();
        let due = jobs.rows.range(..(Place::Live(before), FIRST));
        let due = due.filter(|(_, job)| jobs.kinds.has(&job.kind));
        Ok(Due::first(
            due.map(|(_, job)| DueJob::of(job, jobs.fence))
                .take(most)
                .collect(),
            most,
        ))
    }

    fn unhandled(&self) -> Result<Vec<(String, WallTime)>, StoreError> {
        let jobs = self.jobs.lock();
        let mut found = BTreeMap::new();
        for (_, job) in jobs.rows.range(bounds(List::Live)) {
            jobs.kinds.note_unhandled(&mut found, &job.kind, job.due);
        }
        Ok(found.into_iter().collect())
    }

    fn get(&self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        self.jobs.lock().get(id)
    }

    fn find(&self, kind: &str, key: &str) -> Result<Option<StoredJob>, StoreError> {
        let mut jobs = self.jobs.lock();
        let holder = jobs.holder(kind, key)?;
        Ok(holder.map(|id| jobs.get(id)).transpose()?.flatten())
    }

    fn list(
        &self,
        list: List,
        after: Option<&StoredJob>,
        most: usize,
    ) -> Result<Vec<StoredJob>, StoreError> {
        let jobs = self.jobs.lock();
        let (mut first, end) = bounds(list);
        if let Some(job) = after {
            first = Bound::Excluded((Place::of(job), job.id));
        }
        let listed = jobs.rows.range((first, end)).take(most);
        Ok(listed.map(|(_, job)| job.clone()).collect())
    }

    fn count(&self, list: List) -> Result<u64, StoreError> {
        Ok(self.jobs.lock().rows.range(bounds(list)).count() as u64)
    }
}

/// The places of a list: dead letters lie behind all others.
fn bounds(list: List) -> (Bound<At>, Bound<At>) {
    let dead = (Place::Dead(WallTime::default()), FIRST);
    match list {
        List::Live => (Bound::Unbounded, Bound::Excluded(dead)),
        List::Dead => (Bound::Included(dead), Bound::Unbounded),
    }
}

impl Jobs {
    fn place_of(&self, id: JobId) -> Place {
        let moved = self.places.get(&id.number).copied();
        moved.unwrap_or(Place::Live(id.born))
    }
}

impl Rows for Jobs {
    fn handles(&self, kind: &str) -> bool {
        self.kinds.has(kind)
    }

    fn fence(&mut self) -> Result<u64, StoreError> {
        Ok(self.fence)
    }

    fn next_number(&mut self) -> Result<u64, StoreError> {
        self.next_number += 1;
        Ok(self.next_number)
    }

    fn get(&mut self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        Ok(self.rows.get(&(self.place_of(id), id)).cloned())
    }

    fn put(&mut self, job: &StoredJob) -> Result<(), StoreError> {
        let place = Place::of(job);
        match place.is_birthplace(job.id) {
            true => self.places.remove(&job.id.number),
            false => self.places.insert(job.id.number, place),
        };
        self.rows.insert((place, job.id), job.clone());
        Ok(())
    }

    fn remove(&mut self, job: &StoredJob) -> Result<(), StoreError> {
        self.places.remove(&job.id.number);
        self.rows.remove(&(Place::of(job), job.id));
        Ok(())
    }

    fn holder(&mut self, kind: &str, key: &str) -> Result<Option<JobId>, StoreError> {
        let name = (kind.to_owned(), key.to_owned());
        Ok(self.keys.get(&name).copied())
    }

    fn set_holder(&mut self, kind: &str, key: &str, id: Option<JobId>) -> Result<(), StoreError> {
        let name = (kind.to_owned(), key.to_owned());
        match id {
            Some(id) => self.keys.insert(name, id),
            None => self.keys.remove(&name),
        };
        Ok(())
    }
}
