//! A store that fails, before or after it has carried out a commit.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// How a store treats commits.
pub(crate) const WORKS: u32 = 0;
pub(crate) const FAILS_BEFORE: u32 = 1;
pub(crate) const FAILS_AFTER: u32 = 2;

/// A store that fails on request. Clones fail together.
#[derive(Clone)]
pub(crate) struct Failing {
    pub(crate) inner: MemoryStore,
    pub(crate) mode: Arc<AtomicU32>,
}

impl Failing {
    fn check(&self, mode: u32) -> Result<(), StoreError> {
        match self.mode.load(Ordering::SeqCst) == mode {
            true => Err(StoreError::Full),
            false => Ok(()),
        }
    }
}

impl Store for Failing {
    fn acquire(&self, owner: &str, length: Duration) -> Result<Option<Lease>, StoreError> {
        self.inner.acquire(owner, length)
    }

    fn renew(&self, lease: Lease, length: Duration) -> Result<bool, StoreError> {
        self.inner.renew(lease, length)
    }

    fn commit(&self, changes: &[Change]) -> Result<Vec<Answer>, StoreError> {
        self.check(FAILS_BEFORE)?;
        let answers = self.inner.commit(changes)?;
        self.check(FAILS_AFTER)?;
        Ok(answers)
    }

    fn recover(&self) -> Result<(), StoreError> {
        self.check(FAILS_BEFORE)?;
        self.check(FAILS_AFTER)
    }

    fn due_before(
        &self,
        lease: Lease,
        before: WallTime,
        most: usize,
    ) -> Result<Vec<DueJob>, StoreError> {
        self.inner.due_before(lease, before, most)
    }

    fn get(&self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        self.inner.get(id)
    }

    fn find(&self, kind: &str, key: &str) -> Result<Option<StoredJob>, StoreError> {
        self.inner.find(kind, key)
    }

    fn list(
        &self,
        list: List,
        after: Option<&StoredJob>,
        most: usize,
    ) -> Result<Vec<StoredJob>, StoreError> {
        self.inner.list(list, after, most)
    }

    fn count(&self, list: List) -> Result<u64, StoreError> {
        self.inner.count(list)
    }
}

/// A node on a store that can fail, and the switch.
fn node(world: &World) -> (Durable, VirtualNode, Arc<AtomicU32>) {
    let mode = Arc::new(AtomicU32::new(WORKS));
    let store = Failing {
        inner: world.store.clone(),
        mode: Arc::clone(&mode),
    };
    let builder = world.notes(|_| ());
    let (jobs, node) = builder.open_virtual(store, world.clock.clone()).unwrap();
    (jobs, node, mode)
}

/// A store that has failed takes no job; what it holds runs once it works again.
#[test]
fn durable_14_a_full_disk_loses_nothing() {
    for how in [FAILS_BEFORE, FAILS_AFTER] {
        let world = World::new();
        let (jobs, node, mode) = node(&world);
        jobs.schedule(note("first", 10)).unwrap();
        node.run_until(at(5));
        mode.store(how, Ordering::SeqCst);
        node.run_until(at(20));
        assert_eq!(world.log.texts(), [""; 0], "no start is durable");
        assert!(jobs.status().failure.is_some());
        let refused = jobs.schedule(note("second", 30)).unwrap_err();
        assert!(matches!(refused.reason, Refusal::Store(StoreError::Full)));
        assert_eq!(refused.job.into_payload(), b"second");

        mode.store(WORKS, Ordering::SeqCst);
        node.run_until(at(21));
        assert_eq!(world.log.take(), [said("first", 20_000)]);
        assert_eq!((world.count(List::Live), jobs.status().running), (0, 0));
        jobs.schedule(note("third", 30)).unwrap();
        node.run_until(at(31));
        assert_eq!(world.log.take(), [said("third", 30_000)]);
    }
}

/// The outcome of a run is kept until the store takes it.
#[test]
fn durable_14_an_outcome_outlives_the_failure() {
    for how in [FAILS_BEFORE, FAILS_AFTER] {
        let world = World::new();
        let mode = Arc::new(AtomicU32::new(WORKS));
        let store = Failing {
            inner: world.store.clone(),
            mode: Arc::clone(&mode),
        };
        let switch = Arc::clone(&mode);
        let builder = world.notes(move |_| switch.store(how, Ordering::SeqCst));
        let (jobs, node) = builder.open_virtual(store, world.clock.clone()).unwrap();
        jobs.schedule(note("once", 10)).unwrap();
        node.run_until(at(20));
        assert_eq!(jobs.status().running, 1);
        mode.store(WORKS, Ordering::SeqCst);
        node.run_until(at(30));
        assert_eq!(world.log.take(), [said("once", 10_000)]);
        assert_eq!((world.count(List::Live), jobs.status().running), (0, 0));
    }
}
