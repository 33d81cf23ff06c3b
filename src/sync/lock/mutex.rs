//! The lock of a shard in a model, which is a mutex of the scheduler.

use crate::sync::primitives::{self, Mutex, MutexGuard};

pub(crate) struct Lock<T>(Mutex<T>);

pub(crate) type LockGuard<'a, T> = MutexGuard<'a, T>;

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Lock<T> {
        Lock(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        primitives::lock(&self.0)
    }

    /// Waits for the lock: a call that finds it taken would do the same.
    pub(crate) fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        Some(self.lock())
    }

    pub(crate) fn lock_low_priority(&self) -> LockGuard<'_, T> {
        self.lock()
    }

    pub(crate) fn has_waiters(&self) -> bool {
        false
    }

    pub(crate) fn wake_spinners(&self) {}

    /// Returns true, so that the holder lets other threads take the lock.
    pub(crate) fn has_urgent_waiters(&self) -> bool {
        true
    }
}
