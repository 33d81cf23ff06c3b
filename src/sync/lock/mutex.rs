//! The lock of a shard in a model: a mutex of the scheduler's.

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

    pub(crate) fn lock_low_priority(&self) -> LockGuard<'_, T> {
        self.lock()
    }

    pub(crate) fn has_waiters(&self) -> bool {
        false
    }

    pub(crate) fn wake_spinners(&self) {}

    /// Returns true, so that the holder releases the lock and other threads get in.
    pub(crate) fn has_urgent_waiters(&self) -> bool {
        true
    }
}
