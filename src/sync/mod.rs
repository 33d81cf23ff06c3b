//! The only place that knows whether the crate runs for real or as a model.
//!
//! Built with `--cfg loom`, everything that threads meet in (locks, atomics,
//! channels, the ticker's sleep) is loom's, so that the models in
//! `loom-tests` explore the shipped code and not a copy of its idea.

mod channel;
mod lock;

pub(crate) use channel::{Receiver, RecvError, Sender, channel};
pub(crate) use lock::{Lock, LockGuard};

#[cfg(loom)]
pub(crate) use loom::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread,
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread,
};

use std::sync::PoisonError;
use std::time::Duration;

/// Locks a mutex that nothing panics under, so that poison says nothing.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits to be notified.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Waits to be notified, for at most `limit`. A model has no time: there the
/// limit never passes.
pub(crate) fn wait_for<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Duration,
) -> MutexGuard<'a, T> {
    #[cfg(loom)]
    {
        let _ = limit;
        wait(condvar, guard)
    }
    #[cfg(not(loom))]
    {
        let (guard, _) = condvar
            .wait_timeout(guard, limit)
            .unwrap_or_else(PoisonError::into_inner);
        guard
    }
}
