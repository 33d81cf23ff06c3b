//! The threads of a task engine, for those who wait until they have ended.

use std::sync::Arc;

use crate::sync::thread::{self, ThreadId};
use crate::sync::{Condvar, Mutex, lock, wait};

#[derive(Default)]
pub(super) struct Crew {
    at_work: Mutex<Vec<ThreadId>>,
    left: Condvar,
}

/// A worker that is at work. Dropped by its own thread when that has done its
/// last task and let go of everything, or when a panic ends it; and by no other,
/// because the one that hires holds the lock.
pub(super) struct AtWork(pub(super) Arc<Crew>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Crew {
    /// Counts the worker that `spawn` starts. It is counted before it can
    /// leave.
    pub(super) fn hire<E>(&self, spawn: impl FnOnce() -> Result<ThreadId, E>) -> Result<(), E> {
        let mut at_work = lock(&self.at_work);
        at_work.push(spawn()?);
        Ok(())
    }

    fn leave(&self) {
        let here = thread::current().id();
        lock(&self.at_work).retain(|&worker| worker != here);
        self.left.notify_all();
    }

    /// Waits until nobody is at work; a worker does not wait, because it would
    /// wait for itself.
    pub(super) fn wait_until_gone(&self) {
        let here = thread::current().id();
        let mut at_work = lock(&self.at_work);
        if at_work.contains(&here) {
            return;
        }
        while !at_work.is_empty() {
            at_work = wait(&self.left, at_work);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync;
    use std::sync::mpsc;
    use std::time::Duration;

    /// Longer than any machine takes for what a test waits for.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A crew of one worker that does `work`.
    fn crew_of_one(work: impl FnOnce() + Send + 'static) -> Arc<Crew> {
        let crew = Arc::new(Crew::default());
        let crew_of_this = Arc::clone(&crew);
        let work = move || {
            let _at_work = AtWork(crew_of_this);
            work();
        };
        crew.hire(|| sync::spawn("worker".into(), work)).unwrap();
        crew
    }

    /// Whether so many who wait for the crew are told that it is gone.
    fn all_are_told(crew: &Arc<Crew>, waiters: usize, then: impl FnOnce()) -> bool {
        let (tell, told) = mpsc::channel();
        for _ in 0..waiters {
            let (crew, tell) = (Arc::clone(crew), tell.clone());
            std::thread::spawn(move || {
                tell.send(()).unwrap();
                crew.wait_until_gone();
                tell.send(()).unwrap();
            });
        }
        // Each is about to wait; and most will when this has slept.
        (0..waiters).for_each(|_| told.recv().unwrap());
        std::thread::sleep(Duration::from_millis(20));
        then();
        (0..waiters).all(|_| told.recv_timeout(PATIENCE).is_ok())
    }

    #[test]
    fn a_worker_that_panics_is_gone() {
        let crew = crew_of_one(|| panic!("on purpose"));
        assert!(all_are_told(&crew, 1, || ()));
    }

    #[test]
    fn all_who_wait_are_told() {
        for _ in 0..5 {
            let (end, ended) = mpsc::channel::<()>();
            let crew = crew_of_one(move || assert!(ended.recv().is_err()));
            assert!(all_are_told(&crew, 8, || drop(end)));
        }
    }
}
