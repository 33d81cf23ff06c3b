//! The lock around a shard. It is held for nanoseconds and taken millions of times
//! a second, nearly always by the same thread.
//!
//! Taking it costs one atomic swap. Releasing it costs a plain store and a check of
//! a word that is nearly always zero. `raw.rs` describes contention: a waiter
//! polls, requests the lock, and then sleeps. Waiters are counted by priority, so
//! that the ticker can step aside for them.
//!
//! When two threads contend, both pay for every cache line that moves between them.
//! The value therefore has lines of its own, which stay with the holder while
//! waiters poll the lock. A waiter polls once early and seldom afterwards, so that
//! the holder completes many critical sections before the lines move (DESIGN.md,
//! "How long a caller waits beside a hot thread"). A holder that steps aside wakes
//! spinning waiters through a line that is written for this purpose alone.
//!
//! In a model a mutex replaces the lock of a shard, because the engine could not be
//! explored with the interleavings of the lock's protocol. The protocol has models
//! of its own.

mod parker;
mod raw;

#[cfg(not(any(loom, shuttle)))]
mod guarded;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use guarded::{Lock, LockGuard};

/// The lock of a shard in a model, which is a mutex of the scheduler.
#[cfg(any(loom, shuttle))]
mod mutex {
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
}
#[cfg(any(loom, shuttle))]
pub(crate) use mutex::{Lock, LockGuard};
#[cfg(any(loom, shuttle))]
pub use {parker::CondvarParker, raw::RawLock};
