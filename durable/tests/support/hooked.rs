//! A store with hooks around its calls, which passes everything else on.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_durable::store::{
    Answer, Change, Due, Hear, Kind, Lease, List, Page, Store, StoreError,
};
use tickwheel_durable::{JobId, StoredJob, WallClock, WallTime};

/// What happens around the calls of a store. An error becomes the answer of the call.
pub(crate) trait Hooks: Send + Sync + 'static {
    fn before_acquire(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn before_commit(&self, _: &[Change]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns whether the job of a change is damaged.
    fn is_damaged(&self, _: &Change) -> bool {
        false
    }

    /// Is called after a commit that succeeded.
    fn after_commit(&self, _: &[Change]) -> Result<(), StoreError> {
        Ok(())
    }

    fn linger(&self) -> Duration {
        Duration::ZERO
    }

    fn before_load(&self, _: &[String]) -> Result<(), StoreError> {
        Ok(())
    }

    fn before_recover(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A store with hooks. Clones share them.
pub(crate) struct Hooked<S, H> {
    pub(crate) inner: S,
    pub(crate) hooks: Arc<H>,
}

impl<S: Clone, H> Clone for Hooked<S, H> {
    fn clone(&self) -> Hooked<S, H> {
        Hooked { inner: self.inner.clone(), hooks: Arc::clone(&self.hooks) }
    }
}

impl<S, H> Hooked<S, H> {
    pub(crate) fn with(inner: S, hooks: H) -> Hooked<S, H> {
        let hooks = Arc::new(hooks);
        Hooked { inner, hooks }
    }
}

impl<S: Store, H: Hooks> Store for Hooked<S, H> {
    fn acquire(
        &self,
        owner: &str,
        kinds: &[Kind],
        length: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        self.hooks.before_acquire()?;
        self.inner.acquire(owner, kinds, length)
    }

    fn renew(&self, lease: Lease, length: Duration) -> Result<bool, StoreError> {
        self.inner.renew(lease, length)
    }

    fn commit(&self, changes: &[Change]) -> Result<Vec<Answer>, StoreError> {
        self.hooks.before_commit(changes)?;
        let whole = |change: &&Change| !self.hooks.is_damaged(change);
        let others: Vec<Change> = changes.iter().filter(whole).cloned().collect();
        let mut answers = self.inner.commit(&others)?.into_iter();
        self.hooks.after_commit(changes)?;
        let answer = |change: &Change| {
            if whole(&change) {
                answers.next().expect("one for each")
            } else {
                Answer::Damaged("its row".to_owned())
            }
        };
        Ok(changes.iter().map(answer).collect())
    }

    fn leases_end(&self) -> bool {
        self.inner.leases_end()
    }

    fn renew_after(&self) -> Duration {
        self.inner.renew_after()
    }

    fn linger(&self) -> Duration {
        self.hooks.linger().max(self.inner.linger())
    }

    fn give_back(&self, lease: Lease) {
        self.inner.give_back(lease);
    }

    fn clock(&self) -> Option<Arc<dyn WallClock>> {
        self.inner.clock()
    }

    fn unhandled(&self) -> Result<Vec<(String, WallTime)>, StoreError> {
        self.inner.unhandled()
    }

    fn paused(&self) -> Result<Vec<String>, StoreError> {
        self.inner.paused()
    }

    fn listen(&self, reach: Duration, hear: Hear) {
        self.inner.listen(reach, hear);
    }

    #[cfg(feature = "postgres")]
    fn transactions(&self) -> Option<&dyn tickwheel_durable::store::Transactions> {
        self.inner.transactions()
    }

    fn recover(&self) -> Result<(), StoreError> {
        self.hooks.before_recover()?;
        self.inner.recover()
    }

    fn due_before(
        &self,
        lease: Lease,
        kinds: &[String],
        before: WallTime,
        most: usize,
    ) -> Result<Due, StoreError> {
        self.hooks.before_load(kinds)?;
        self.inner.due_before(lease, kinds, before, most)
    }

    fn get(&self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        self.inner.get(id)
    }

    fn find(&self, kind: &str, key: &str) -> Result<Option<StoredJob>, StoreError> {
        self.inner.find(kind, key)
    }

    fn list(&self, page: Page<'_>) -> Result<Vec<StoredJob>, StoreError> {
        self.inner.list(page)
    }

    fn has_room(&self) -> bool {
        self.inner.has_room()
    }

    fn count(&self, list: List) -> Result<u64, StoreError> {
        self.inner.count(list)
    }
}
