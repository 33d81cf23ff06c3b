//! The only place that knows whether the crate runs for real or as a model.
//!
//! Built with `--cfg loom` or `--cfg shuttle`, everything that threads meet in
//! (locks, atomics, channels, the ticker's sleep) belongs to that scheduler, so
//! that the models in `loom-tests` explore the shipped code and not a copy of
//! its idea. The rest of the crate asks for neither by name: what differs in a
//! model differs for `any(loom, shuttle)`.

mod channel;
mod lock;

#[cfg(not(any(loom, shuttle)))]
pub(crate) use channel::Channel;
#[cfg(any(loom, shuttle))]
pub use channel::Channel;
pub(crate) use channel::RecvError;
pub(crate) use lock::{Lock, LockGuard};
#[cfg(any(loom, shuttle))]
pub use {lock::Bed, lock::RawLock};

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

use std::io;
use std::sync::PoisonError;
use std::time::Duration;

/// A key for hashing that nobody can foretell. A model must be the same in every
/// run.
#[cfg(not(any(loom, shuttle)))]
pub(crate) type RandomKey = std::hash::RandomState;
#[cfg(any(loom, shuttle))]
pub(crate) type RandomKey = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// Whether the crate runs as a model.
pub(crate) const IS_MODEL: bool = cfg!(any(loom, shuttle));

/// Starts a thread that nobody joins.
pub(crate) fn spawn(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<thread::ThreadId> {
    let thread = thread::Builder::new().name(name).spawn(body)?;
    Ok(thread.thread().id())
}

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
    let waited = condvar.wait_timeout(guard, limit);
    waited.unwrap_or_else(PoisonError::into_inner).0
}
