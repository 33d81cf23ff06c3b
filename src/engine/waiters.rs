//! Waiting for a condition that other threads bring about.
//!
//! `cancel_and_wait`, `drain` and a virtual clock's `run_until` wait for other
//! threads. Each evaluates its condition at once and after each change, without this
//! lock. No change is missed: a waiter notes the count of changes before it evaluates
//! the condition, and sleeps only if the count is unchanged under the lock.

use std::time::Duration;

use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait, wait_for};

/// A state that threads change, and the threads that wait for changes.
pub(crate) struct Waiters<S = ()> {
    inner: Mutex<Inner<S>>,
    changed: Condvar,
}

struct Inner<S> {
    state: S,
    changes: u64,
    /// The number of threads that are waiting for a change. If it is zero, as it mostly
    /// is, a change does not wake any thread.
    waiting: usize,
}

impl<S> Waiters<S> {
    pub(crate) fn new(state: S) -> Waiters<S> {
        Waiters {
            inner: Mutex::new(Inner { state, changes: 0, waiting: 0 }),
            changed: Condvar::new(),
        }
    }

    /// Reads or modifies the state without waking the waiters. `access` also gets the
    /// count of changes.
    pub(crate) fn with<R>(&self, access: impl FnOnce(&mut S, u64) -> R) -> R {
        let mut inner = lock(&self.inner);
        let changes = inner.changes;
        access(&mut inner.state, changes)
    }

    /// Modifies the state and wakes the waiters.
    #[inline]
    pub(crate) fn change(&self, change: impl FnOnce(&mut S)) {
        let mut inner = lock(&self.inner);
        change(&mut inner.state);
        inner.changes += 1;
        let waiting = inner.waiting;
        drop(inner);
        if waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// Wakes the waiters after a change outside the state.
    pub(crate) fn notify(&self) {
        self.change(|_| ());
    }

    /// Blocks until `done` returns true. Calls it at once and after each change, but
    /// gives up when `left` returns zero, however many changes there are.
    pub(crate) fn wait_until(
        &self,
        mut done: impl FnMut() -> bool,
        left: impl Fn() -> Option<Duration>,
    ) -> bool {
        let mut inner = lock(&self.inner);
        loop {
            let seen = inner.changes;
            drop(inner);
            if done() {
                return true;
            }
            let left = left();
            if left == Some(Duration::ZERO) {
                return false;
            }
            inner = lock(&self.inner);
            if inner.changes == seen {
                inner = self.wait_for_change(inner, left);
            }
        }
    }

    /// Waits for a change, for at most `limit` if there is one.
    fn wait_for_change<'a>(
        &self,
        mut inner: MutexGuard<'a, Inner<S>>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, Inner<S>> {
        inner.waiting += 1;
        let mut inner = match limit {
            None => wait(&self.changed, inner),
            Some(limit) => wait_for(&self.changed, inner, limit),
        };
        inner.waiting -= 1;
        inner
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_goes_on_happening_does_not_prolong_a_wait() {
        let (waiters, looks) = (Waiters::new(()), Cell::new(0));
        let never = || {
            looks.set(looks.get() + 1);
            assert!(looks.get() < 100, "waits as long as anything happens");
            waiters.notify();
            false
        };
        let left = || Some(Duration::from_secs(u64::from(looks.get() < 3)));
        assert!(!waiters.wait_until(never, left));
        assert_eq!(looks.get(), 3);
    }
}
