//! The threads of a node: starting them, or saying that the system does not, and waiting for
//! their end.

use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How often a thread that is to end is looked at.
const LOOK: Duration = Duration::from_micros(200);

/// Threads that end together.
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
        // One that has ended keeps its stack until it is joined.
        let ended: Vec<_> = self.0.lock().extract_if(.., |one| one.is_finished()).collect();
        ended.into_iter().for_each(|thread| drop(thread.join()));
        self.0.lock().push(thread);
        Ok(())
    }

    /// Returns whether the calling thread is one of them.
    pub(crate) fn has_current(&self) -> bool {
        self.0.lock().iter().any(is_current)
    }

    /// Waits until `end` for all threads but the calling one. Returns whether they have ended.
    pub(crate) fn join(&self, end: Instant) -> bool {
        let threads = std::mem::take(&mut *self.0.lock());
        threads.into_iter().all(|thread| join(thread, end))
    }
}

/// Waits for a thread until `end`, unless it is the one that calls. Returns whether it has ended.
fn join(thread: JoinHandle<()>, end: Instant) -> bool {
    if is_current(&thread) {
        return true;
    }
    while !thread.is_finished() && Instant::now() < end {
        thread::sleep(LOOK);
    }
    let has_ended = thread.is_finished();
    if has_ended {
        // A panic has ended it, too.
        let _ = thread.join();
    }
    has_ended
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each run beyond its time limit costs a worker.
    #[test]
    fn durable_09_threads_that_have_ended_are_not_kept() {
        let threads = Threads::default();
        for _ in 0..99 {
            threads.spawn("ends", || ()).unwrap();
            while threads.0.lock().iter().any(|thread| !thread.is_finished()) {
                thread::sleep(LOOK);
            }
        }
        assert_eq!(threads.0.lock().len(), 1);
    }

    #[test]
    fn a_thread_that_panicked_keeps_no_others_from_being_waited_for() {
        let (threads, (sender, receiver)) = (Threads::default(), std::sync::mpsc::channel());
        threads.spawn("panics", || panic!("at the disco")).unwrap();
        threads
            .spawn("ends", move || {
                thread::sleep(Duration::from_secs(1));
                sender.send(()).unwrap();
            })
            .unwrap();
        assert!(threads.join(Instant::now() + Duration::from_secs(60)));
        assert!(receiver.try_recv().is_ok());
    }
}
