//! The threads of a node: starting them, or saying that the system does not, and waiting for
//! their end.

use std::io;
use std::sync::{Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

/// Threads in the order of their start.
#[derive(Default)]
pub(crate) struct Threads(Mutex<Vec<JoinHandle<()>>>);

impl Threads {
    /// Starts a thread.
    pub(crate) fn spawn(
        &self,
        name: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), io::Error> {
        #[cfg(test)]
        refusal::check()?;
        let thread = thread::Builder::new().name(format!("durable-{name}"));
        let thread = thread.spawn(run)?;
        self.lock().push(thread);
        Ok(())
    }

    /// Waits for all threads but the first, calls `last`, and then waits for the first. Does not
    /// wait for the calling thread, nor for the first if the calling thread is another of them.
    pub(crate) fn join(&self, last: impl FnOnce()) {
        let mut threads = std::mem::take(&mut *self.lock());
        let others = threads.split_off(threads.len().min(1));
        let is_own = others.iter().any(is_current);
        others.into_iter().for_each(join);
        last();
        if !is_own {
            threads.into_iter().for_each(join);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.0.lock().unwrap_or_else(|error| error.into_inner())
    }
}

/// Waits for a thread, unless it is the one that calls.
fn join(thread: JoinHandle<()>) {
    if !is_current(&thread) {
        let _ = thread.join();
    }
}

fn is_current(thread: &JoinHandle<()>) -> bool {
    thread.thread().id() == thread::current().id()
}

/// A system that refuses to start threads, for tests.
#[cfg(test)]
pub(crate) mod refusal {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    /// Lets the calling thread start so many more threads while `act` runs.
    pub(crate) fn after<R>(threads: usize, act: impl FnOnce() -> R) -> R {
        LEFT.set(threads);
        let result = act();
        LEFT.set(usize::MAX);
        result
    }

    pub(super) fn check() -> io::Result<()> {
        let left = LEFT.get().checked_sub(1);
        LEFT.set(left.ok_or(io::ErrorKind::WouldBlock)?);
        Ok(())
    }
}
