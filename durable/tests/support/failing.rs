//! A store that fails on request.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::hooked::{Hooked, Hooks};
use tickwheel_durable::RedbStore;
use tickwheel_durable::store::{Change, StoreError};

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

/// Says which changes it is about.
type Choice = fn(&Change) -> bool;

/// A store in memory that fails before or after it has carried out a commit. Clones fail
/// together.
pub(crate) type Failing = Hooked<RedbStore, Faults>;

#[derive(Default)]
pub(crate) struct Faults {
    mode: AtomicU32,
    /// The number of commits that still succeed before the mode holds.
    left: AtomicU32,
    hook: Mutex<Option<Hook>>,
    damaged: Mutex<Option<Choice>>,
    acquires: AtomicU32,
    recoveries: AtomicU32,
}

impl Failing {
    pub(crate) fn new(inner: RedbStore) -> Failing {
        Failing::with(inner, Faults::default())
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.fail_after(0, mode);
    }

    /// Lets so many commits succeed first.
    pub(crate) fn fail_after(&self, commits: u32, mode: Mode) {
        self.hooks.left.store(commits, Ordering::SeqCst);
        self.hooks.mode.store(mode as u32, Ordering::SeqCst);
    }

    /// Calls `hook` before each commit, and without changes before each grant of a lease.
    pub(crate) fn on_commit(
        &self,
        hook: impl FnMut(&[Change]) -> Result<(), StoreError> + Send + 'static,
    ) {
        let mut old = self.hooks.hook.lock().unwrap_or_else(PoisonError::into_inner);
        *old = Some(Box::new(hook));
    }

    /// Lets the store find the jobs of such changes damaged.
    pub(crate) fn damage(&self, is_damaged: Choice) {
        let damaged = self.hooks.damaged.lock();
        *damaged.unwrap_or_else(PoisonError::into_inner) = Some(is_damaged);
    }

    /// Returns how often a lease was asked for.
    pub(crate) fn acquires(&self) -> u32 {
        self.hooks.acquires.load(Ordering::SeqCst)
    }

    /// Returns how often the store was to recover.
    pub(crate) fn recoveries(&self) -> u32 {
        self.hooks.recoveries.load(Ordering::SeqCst)
    }
}

impl Faults {
    fn call_hook(&self, changes: &[Change]) -> Result<(), StoreError> {
        let mut hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner);
        hook.as_mut().map_or(Ok(()), |hook| hook(changes))
    }

    fn check(&self, mode: Mode) -> Result<(), StoreError> {
        let is_set = self.mode.load(Ordering::SeqCst) == mode as u32;
        if is_set && self.left.load(Ordering::SeqCst) == 0 { Err(StoreError::Full) } else { Ok(()) }
    }
}

impl Hooks for Faults {
    fn before_acquire(&self) -> Result<(), StoreError> {
        self.call_hook(&[])?;
        self.acquires.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn before_commit(&self, changes: &[Change]) -> Result<(), StoreError> {
        self.check(Mode::FailsBefore)?;
        self.call_hook(changes)
    }

    fn is_damaged(&self, change: &Change) -> bool {
        let damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        damaged.is_some_and(|damaged| damaged(change))
    }

    fn after_commit(&self, _: &[Change]) -> Result<(), StoreError> {
        self.check(Mode::FailsAfter)?;
        let left = self.left.load(Ordering::SeqCst);
        self.left.store(left.saturating_sub(1), Ordering::SeqCst);
        Ok(())
    }

    fn before_recover(&self) -> Result<(), StoreError> {
        self.recoveries.fetch_add(1, Ordering::SeqCst);
        self.check(Mode::FailsBefore)?;
        self.check(Mode::FailsAfter)
    }
}
