//! A store in memory, for tests and for jobs that need not outlive the process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::redb::backends::InMemoryBackend;
use parking_lot::Mutex;

use super::redb::{RedbOptions, RedbStore};
use crate::job::{JobId, StoredJob};
use crate::store::{Answer, Change, Due, Kind, Lease, List, Store, StoreError};
use crate::wall::{SystemClock, WallClock, WallTime};

/// A store in memory: a [`RedbStore`] without a file. Clones share the jobs, so that several nodes
/// can work on them, one after the other.
///
/// One lease is for all jobs.
#[derive(Clone)]
pub struct MemoryStore {
    jobs: Arc<RedbStore>,
    /// The time at which the lease runs out, and its owner.
    lease: Arc<Mutex<Option<(WallTime, String)>>>,
    clock: Arc<dyn WallClock>,
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs = self.count(List::Live);
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
        let jobs = RedbOptions::new().open_backend(InMemoryBackend::new());
        MemoryStore {
            jobs: Arc::new(jobs.expect("an empty store in memory can be written")),
            lease: Arc::default(),
            clock: Arc::new(clock),
        }
    }
}

impl Store for MemoryStore {
    fn acquire(
        &self,
        owner: &str,
        kinds: &[Kind],
        length: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let (mut held, now) = (self.lease.lock(), self.clock.now());
        let is_held = |(end, holder): &(WallTime, String)| *end > now && holder != owner;
        if held.as_ref().is_some_and(is_held) {
            return Ok(None);
        }
        *held = Some((now + length, owner.to_owned()));
        self.jobs.acquire(owner, kinds, length)
    }

    fn renew(&self, lease: Lease, length: Duration) -> Result<bool, StoreError> {
        let (mut held, now) = (self.lease.lock(), self.clock.now());
        let is_last = self.jobs.renew(lease, length)?;
        match &mut *held {
            Some((end, _)) if is_last && *end > now => *end = now + length,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn commit(&self, changes: &[Change]) -> Result<Vec<Answer>, StoreError> {
        self.jobs.commit(changes)
    }

    fn recover(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn due_before(
        &self,
        lease: Lease,
        kinds: &[String],
        before: WallTime,
        most: usize,
    ) -> Result<Due, StoreError> {
        self.jobs.due_before(lease, kinds, before, most)
    }

    fn unhandled(&self) -> Result<Vec<(String, WallTime)>, StoreError> {
        self.jobs.unhandled()
    }

    fn paused(&self) -> Result<Vec<String>, StoreError> {
        self.jobs.paused()
    }

    fn get(&self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        self.jobs.get(id)
    }

    fn find(&self, kind: &str, key: &str) -> Result<Option<StoredJob>, StoreError> {
        self.jobs.find(kind, key)
    }

    fn list(
        &self,
        list: List,
        kind: Option<&str>,
        after: Option<&StoredJob>,
        most: usize,
    ) -> Result<Vec<StoredJob>, StoreError> {
        self.jobs.list(list, kind, after, most)
    }

    fn count(&self, list: List) -> Result<u64, StoreError> {
        self.jobs.count(list)
    }
}
