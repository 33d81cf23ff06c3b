//! The threads of a task engine, for those who wait until they have ended.

use crate::sync::thread::{self, ThreadId};
use crate::sync::{Condvar, Mutex, lock, wait};

#[derive(Default)]
pub(super) struct Crew {
    at_work: Mutex<Vec<ThreadId>>,
    left: Condvar,
}

impl Crew {
    /// Counts the worker that `spawn` starts. It is counted before it can
    /// leave.
    pub(super) fn hire<E>(&self, spawn: impl FnOnce() -> Result<ThreadId, E>) -> Result<(), E> {
        let mut at_work = lock(&self.at_work);
        at_work.push(spawn()?);
        Ok(())
    }

    /// The calling worker has done its last task, and let go of everything.
    pub(super) fn leave(&self) {
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
