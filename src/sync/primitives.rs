//! Atomics, mutexes, threads and random keys: the standard library's, or those
//! of a model's scheduler.

use std::io;
use std::sync::PoisonError;
use std::time::Duration;

#[cfg(loom)]
use ::loom as threads;
#[cfg(shuttle)]
use ::shuttle as threads;
#[cfg(not(any(loom, shuttle)))]
use ::std as threads;

#[cfg(any(loom, shuttle))]
pub(crate) use threads::lazy_static;
pub(crate) use threads::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread, thread_local,
};

/// A hashing key that no caller can predict. In a model every run has the same
/// key.
#[cfg(not(any(loom, shuttle)))]
pub(crate) type RandomKey = std::hash::RandomState;
#[cfg(any(loom, shuttle))]
pub(crate) type RandomKey = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// Whether the crate is built as a model.
pub(crate) const IS_MODEL: bool = cfg!(any(loom, shuttle));

/// Starts a detached thread.
pub(crate) fn spawn(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<thread::ThreadId> {
    let thread = thread::Builder::new().name(name).spawn(body)?;
    Ok(thread.thread().id())
}

/// Locks a mutex. Ignores poison, because no caller panics while it holds a mutex.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks until `condvar` is notified.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Blocks until `condvar` is notified or `limit` has passed. A model has no time,
/// so the limit never passes there.
pub(crate) fn wait_for<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Duration,
) -> MutexGuard<'a, T> {
    let waited = condvar.wait_timeout(guard, limit);
    waited.unwrap_or_else(PoisonError::into_inner).0
}
