//! The worker threads of a task engine, and the wait for their end.

use std::sync::Arc;

use crate::sync::thread::{self, ThreadId};
use crate::sync::{Condvar, Mutex, lock, wait};

#[derive(Default)]
pub(super) struct Workers {
    at_work: Mutex<Vec<ThreadId>>,
    ended: Condvar,
}

/// A worker at work. The worker's own thread drops this after everything else that
/// it holds: after its last task, or when a panic ends it. No other thread
/// drops it, because the thread that starts workers holds the lock.
pub(super) struct AtWork(pub(super) Arc<Workers>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.remove();
    }
}

impl Workers {
    /// Counts the worker that `spawn` starts, before that worker can end.
    pub(super) fn start<E>(&self, spawn: impl FnOnce() -> Result<ThreadId, E>) -> Result<(), E> {
        let mut at_work = lock(&self.at_work);
        at_work.push(spawn()?);
        Ok(())
    }

    fn remove(&self) {
        let here = thread::current().id();
        lock(&self.at_work).retain(|&worker| worker != here);
        self.ended.notify_all();
    }

    /// Blocks until no worker is at work. Returns at once on a worker's
    /// thread, which would otherwise wait for itself.
    pub(super) fn wait_until_ended(&self) {
        let here = thread::current().id();
        let mut at_work = lock(&self.at_work);
        if at_work.contains(&here) {
            return;
        }
        while !at_work.is_empty() {
            at_work = wait(&self.ended, at_work);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync;
    use std::sync::mpsc;
    use std::time::Duration;

    /// A time that exceeds every wait of these tests on any machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Starts one worker that does `work`.
    fn one_worker(work: impl FnOnce() + Send + 'static) -> Arc<Workers> {
        let workers = Arc::new(Workers::default());
        let these = Arc::clone(&workers);
        let work = move || {
            let _at_work = AtWork(these);
            work();
        };
        workers
            .start(|| sync::spawn("worker".into(), work))
            .unwrap();
        workers
    }

    /// Returns whether `waiters` calls that wait for the workers return.
    fn all_return(workers: &Arc<Workers>, waiters: usize, then: impl FnOnce()) -> bool {
        let (tell, told) = mpsc::channel();
        for _ in 0..waiters {
            let (workers, tell) = (Arc::clone(workers), tell.clone());
            std::thread::spawn(move || {
                tell.send(()).unwrap();
                workers.wait_until_ended();
                tell.send(()).unwrap();
            });
        }
        // Each thread is about to wait, and most are waiting after this sleep.
        (0..waiters).for_each(|_| told.recv().unwrap());
        std::thread::sleep(Duration::from_millis(20));
        then();
        (0..waiters).all(|_| told.recv_timeout(PATIENCE).is_ok())
    }

    #[test]
    fn a_worker_that_panics_is_gone() {
        let workers = one_worker(|| panic!("on purpose"));
        assert!(all_return(&workers, 1, || ()));
    }

    #[test]
    fn all_who_wait_are_told() {
        for _ in 0..5 {
            let (end, ended) = mpsc::channel::<()>();
            let workers = one_worker(move || assert!(ended.recv().is_err()));
            assert!(all_return(&workers, 8, || drop(end)));
        }
    }
}
