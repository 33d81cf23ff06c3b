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

/// Starts a detached thread of an engine, whose part in it is `role`.
pub(crate) fn spawn(
    engine: &str,
    role: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<thread::ThreadId> {
    let name = thread_name(engine, role);
    let thread = thread::Builder::new().name(name).spawn(body)?;
    Ok(thread.thread().id())
}

/// Linux keeps the first 15 bytes of a thread's name. The role, which tells threads of an
/// engine apart, comes last and has at most six characters (`-w4095`), so the engine's name is
/// cut to leave room for it.
fn thread_name(engine: &str, role: &str) -> String {
    let mut end = engine.len().min(9);
    while !engine.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{role}", &engine[..end])
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::thread_name;

    #[test]
    fn a_threads_name_fits_into_what_linux_keeps_and_is_cut_between_two_characters() {
        let names = [
            ("a", "a-w4095"),
            ("tickwheel", "tickwheel-w4095"),
            ("tickwheels", "tickwheel-w4095"),
            ("1234567é", "1234567é-w4095"),
            ("12345678é", "12345678-w4095"),
            ("時計の輪と時計の輪", "時計の-w4095"),
        ];
        for (engine, thread) in names {
            assert_eq!(thread_name(engine, "w4095"), thread);
            assert!(thread.len() <= 15, "{thread}");
        }
        assert_eq!(thread_name("tickwheel", "tick"), "tickwheel-tick");
    }
}
