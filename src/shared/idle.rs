//! Who is at work, for those who wait until nobody is.
//!
//! Three kinds of callers wait for other threads: `cancel_and_wait`, `drain`,
//! and a virtual clock's `run_until`. All three wait for something to end, and
//! then look again.

use std::time::Duration;

use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait, wait_for};

/// The workers of each queue; kept up to date only under a virtual clock.
pub(crate) struct Idle {
    presence: Mutex<Presence>,
    changed: Condvar,
}

struct Presence {
    workers: Vec<usize>,
    busy: usize,
    /// Counts what has ended, so that a change between looking and waiting is
    /// not missed.
    changes: u64,
    /// How many threads wait for a change: mostly none, and then nobody need
    /// be woken.
    waiting: usize,
}

impl Idle {
    pub(crate) fn new(queues: usize) -> Idle {
        Idle {
            presence: Mutex::new(Presence {
                workers: vec![0; queues],
                busy: 0,
                changes: 0,
                waiting: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// A worker of `queue` came (busy until it says otherwise).
    pub(crate) fn join(&self, queue: usize) {
        let mut presence = lock(&self.presence);
        presence.workers[queue] += 1;
        presence.busy += 1;
    }

    /// A worker of `queue` went.
    pub(crate) fn leave(&self, queue: usize, busy: bool) {
        let mut presence = lock(&self.presence);
        presence.workers[queue] -= 1;
        presence.busy -= usize::from(busy);
        self.announce(presence);
    }

    /// A worker has something to do, or no longer has.
    pub(crate) fn set_busy(&self, busy: bool) {
        let mut presence = lock(&self.presence);
        if busy {
            presence.busy += 1;
        } else {
            presence.busy -= 1;
            self.announce(presence);
        }
    }

    /// Something that others may wait for has happened.
    pub(crate) fn notify(&self) {
        let presence = lock(&self.presence);
        self.announce(presence);
    }

    fn announce(&self, mut presence: MutexGuard<'_, Presence>) {
        presence.changes += 1;
        let waiting = presence.waiting;
        drop(presence);
        if waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// Waits for a change, for at most `limit` if there is one.
    fn wait_for_change<'a>(
        &self,
        mut presence: MutexGuard<'a, Presence>,
        limit: Option<Duration>,
    ) -> MutexGuard<'a, Presence> {
        presence.waiting += 1;
        let mut presence = match limit {
            None => wait(&self.changed, presence),
            Some(limit) => wait_for(&self.changed, presence, limit),
        };
        presence.waiting -= 1;
        presence
    }

    /// Waits until no worker is busy and `is_empty` holds for every queue that
    /// has one.
    pub(crate) fn wait_until_idle(&self, is_empty: impl Fn(usize) -> bool) {
        loop {
            let mut presence = lock(&self.presence);
            while presence.busy > 0 {
                presence = self.wait_for_change(presence, None);
            }
            let seen = presence.changes;
            let staffed: Vec<usize> = (0..presence.workers.len())
                .filter(|&queue| presence.workers[queue] > 0)
                .collect();
            drop(presence);
            let empty = staffed.into_iter().all(&is_empty);
            presence = lock(&self.presence);
            if presence.changes != seen || presence.busy > 0 {
                continue;
            }
            if empty {
                return;
            }
            // A worker is on its way to what is there, and will be busy.
            drop(self.wait_for_change(presence, None));
        }
    }

    /// Waits until `done` holds, looking whenever something has happened;
    /// gives up when `left` says that no time is left, however much happens.
    pub(crate) fn wait_until(
        &self,
        mut done: impl FnMut() -> bool,
        left: impl Fn() -> Option<Duration>,
    ) -> bool {
        let mut presence = lock(&self.presence);
        loop {
            let seen = presence.changes;
            drop(presence);
            if done() {
                return true;
            }
            let left = left();
            if left == Some(Duration::ZERO) {
                return false;
            }
            presence = lock(&self.presence);
            if presence.changes == seen {
                presence = self.wait_for_change(presence, left);
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_goes_on_happening_does_not_prolong_a_wait() {
        let (idle, looks) = (Idle::new(1), Cell::new(0));
        let never = || {
            looks.set(looks.get() + 1);
            assert!(looks.get() < 100, "waits as long as anything happens");
            idle.notify();
            false
        };
        let left = || Some(Duration::from_secs(u64::from(looks.get() < 3)));
        assert!(!idle.wait_until(never, left));
        assert_eq!(looks.get(), 3);
    }
}
