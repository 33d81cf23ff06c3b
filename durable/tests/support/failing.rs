//! A store that fails on request.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tickwheel_durable::store::{Answer, Change, DueJob, Lease, List, Store, StoreError};
use tickwheel_durable::{JobId, MemoryStore, StoredJob, WallTime};

/// How a store treats commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Mode {
    Works,
    FailsBefore,
    FailsAfter,
}

/// What is called before a commit. An error makes it fail.
type Hook = Box<dyn FnMut(&[Change]) -> Result<(), StoreError> + Send>;

/// A store in memory that fails before or after it has carried out a commit. Clones fail
/// together.
#[derive(Clone)]
pub(crate) struct Failing {
    inner: MemoryStore,
    mode: Arc<AtomicU32>,
    /// The number of commits that still succeed before the mode holds.
    left: Arc<AtomicU32>,
    hook: Arc<Mutex<Option<Hook>>>,
    acquires: Arc<AtomicU32>,
    recoveries: Arc<AtomicU32>,
}

impl Failing {
    pub(crate) fn new(inner: MemoryStore) -> Failing {
        Failing {
            inner,
            mode: Arc::default(),
            left: Arc::default(),
            hook: Arc::default(),
            acquires: Arc::default(),
            recoveries: Arc::default(),
        }
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.fail_after(0, mode);
    }

    /// Lets so many commits succeed first.
    pub(crate) fn fail_after(&self, commits: u32, mode: Mode) {
        self.left.store(commits, Ordering::SeqCst);
        self.mode.store(mode as u32, Ordering::SeqCst);
    }

    /// Calls `hook` before each commit, and without changes before each grant of a lease.
    #[allow(dead_code, reason = "not every test has hooks")]
    pub(crate) fn on_commit(
        &self,
        hook: impl FnMut(&[Change]) -> Result<(), StoreError> + Send + 'static,
    ) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(hook));
    }

    fn call_hook(&self, changes: &[Change]) -> Result<(), StoreError> {
        let mut hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        hook.as_mut().map_or(Ok(()), |hook| hook(changes))
    }

    /// Returns how often a lease was asked for.
    #[allow(dead_code, reason = "not every test counts them")]
    pub(crate) fn acquires(&self) -> u32 {
        self.acquires.load(Ordering::SeqCst)
    }

    /// Returns how often the store was to recover.
    #[allow(dead_code, reason = "not every test counts them")]
    pub(crate) fn recoveries(&self) -> u32 {
        self.recoveries.load(Ordering::SeqCst)
    }

    fn check(&self, mode: Mode) -> Result<(), StoreError> {
        let is_set = self.mode.load(Ordering::SeqCst) == mode as u32;
        match is_set && self.left.load(Ordering::SeqCst) == 0 {
            true => Err(StoreError::Full),
            false => Ok(()),
        }
    }
}

impl Store for Failing {
    fn acquire(&self, owner: &str, length: Duration) -> Result<Option<Lease>, StoreError> {
        self.call_hook(&[])?;
        self.acquires.fetch_add(1, Ordering::SeqCst);
        self.inner.acquire(owner, length)
    }

    fn renew(&self, lease: Lease, length: Duration) -> Result<bool, StoreError> {
        self.inner.renew(lease, length)
    }

    fn commit(&self, changes: &[Change]) -> Result<Vec<Answer>, StoreError> {
        self.check(Mode::FailsBefore)?;
        self.call_hook(changes)?;
        let answers = self.inner.commit(changes)?;
        self.check(Mode::FailsAfter)?;
        let left = self.left.load(Ordering::SeqCst);
        self.left.store(left.saturating_sub(1), Ordering::SeqCst);
        Ok(answers)
    }

    fn recover(&self) -> Result<(), StoreError> {
        self.recoveries.fetch_add(1, Ordering::SeqCst);
        self.check(Mode::FailsBefore)?;
        self.check(Mode::FailsAfter)
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
