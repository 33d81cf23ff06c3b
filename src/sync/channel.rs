//! A channel that is never full, and how its receivers sleep.
//!
//! The messages are in crossbeam's channel, or in a model in one that its
//! scheduler can see into. Crossbeam's own receivers step aside several times
//! before they sleep, and on a busy machine whoever steps aside is not back for
//! milliseconds (measured, beside two busy threads: half of the timers were in
//! their worker's hands 2.5 ms late and more, instead of 0.5). Here they sleep
//! at once.

#[cfg_attr(any(loom, shuttle), path = "channel/counted.rs")]
#[cfg_attr(not(any(loom, shuttle)), path = "channel/crossbeam.rs")]
mod messages;

mod limits;

use std::time::Instant;

use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, fence, lock, wait, wait_for};
use limits::Limits;
use messages::Messages;

/// Why nothing was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvError {
    /// Nothing is there (within the time given).
    Empty,
    /// Nothing is there and nothing can come.
    Disconnected,
}

/// Never holds more messages than its capacity, because its users see to that.
pub struct Channel<T> {
    messages: Messages<T>,
    /// How many receivers sleep, or are about to: changed under `sleep`.
    sleepers: AtomicUsize,
    sleep: Mutex<Limits>,
    arrived: Condvar,
}

impl<T> Channel<T> {
    /// Makes one, with nothing in it.
    pub fn new(capacity: usize) -> Channel<T> {
        Channel {
            messages: Messages::new(capacity),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(Limits::default()),
            arrived: Condvar::new(),
        }
    }

    /// Leaves a message, and wakes a receiver if one sleeps. Never waits.
    pub fn send(&self, message: T) {
        self.messages.push(message);
        // Who sends leaves the message first and looks for sleepers second; who
        // goes to sleep says so first and looks for messages second.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            // Whoever is about to sleep holds the lock until it does.
            drop(lock(&self.sleep));
            self.arrived.notify_one();
        }
    }

    /// Takes a message if there is one.
    pub fn try_recv(&self) -> Result<T, RecvError> {
        self.messages.pop().ok_or(RecvError::Empty)
    }

    /// Takes a message, and sleeps until there is one.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.try_recv().or_else(|_| self.sleep(None))
    }

    /// As [`Channel::recv`], until `end` at most. Reads the clock only if it has
    /// to wait.
    pub fn recv_until(&self, end: Instant) -> Result<T, RecvError> {
        self.try_recv().or_else(|_| self.sleep(Some(end)))
    }

    /// Sleeps until a message comes, or the end. What wakes a receiver may be a
    /// message though its time is up: so it looks before it ends.
    #[cold]
    fn sleep(&self, end: Option<Instant>) -> Result<T, RecvError> {
        let mut guard = lock(&self.sleep);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let received = loop {
            let received = self.try_recv();
            let left = end.map(|end| guard.left(end));
            if received.is_ok() || left.is_some_and(|left| left.is_zero()) {
                break received;
            }
            guard = match left {
                None => wait(&self.arrived, guard),
                Some(left) => wait_for(&self.arrived, guard, left),
            };
        };
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        drop(guard);
        received
    }

    /// For models: from now on the limits of waits have passed. Wakes nobody: who
    /// is woken by something else finds its time up.
    #[cfg(any(loom, shuttle))]
    pub fn pass_limits(&self) {
        lock(&self.sleep).pass();
    }

    /// For models: has all receivers look at the time.
    #[cfg(any(loom, shuttle))]
    pub fn wake_receivers(&self) {
        let _sleep = lock(&self.sleep);
        self.arrived.notify_all();
    }
}
