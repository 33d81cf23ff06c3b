//! A bounded channel that is never full, and the sleep of its receivers.
//!
//! Both ends are one value, so a channel is never disconnected. Its users send no
//! more messages than it has room for, so a sender never waits. The messages lie
//! in crossbeam's channel, or, in a model, in one that the model's scheduler can
//! observe.
//!
//! Crossbeam's own receivers yield several times before they sleep. On a busy
//! machine each yield costs the rest of a time slice, some milliseconds, and only a
//! thread that slept is scheduled ahead of others. Receivers here sleep at once
//! (DESIGN.md, "A worker that finds nothing sleeps at once").
//!
//! # Why no message is slept over
//!
//! A sender leaves its message, then checks for sleepers; a receiver registers as
//! a sleeper, then checks for messages. Both put a SeqCst fence between the two.
//! Either the sender's fence comes first: then the receiver sees the message. Or
//! the receiver's does: then the sender sees the sleeper, and notifies it.

#[cfg_attr(any(loom, shuttle), path = "channel/counted.rs")]
#[cfg_attr(not(any(loom, shuttle)), path = "channel/crossbeam.rs")]
mod messages;

mod limits;

use std::time::Instant;

use crate::sync::primitives::{AtomicUsize, Condvar, Mutex, Ordering, fence, lock, wait, wait_for};
use limits::Limits;
use messages::Messages;

/// Sends messages between threads. Its users keep it from being full.
pub struct Channel<T> {
    messages: Messages<T>,
    /// How many receivers sleep or are about to. Changed under `sleep`.
    sleepers: AtomicUsize,
    sleep: Mutex<Limits>,
    arrived: Condvar,
}

impl<T> Channel<T> {
    /// Creates an empty channel with room for `capacity` messages.
    pub fn new(capacity: usize) -> Channel<T> {
        Channel {
            messages: Messages::new(capacity),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(Limits::default()),
            arrived: Condvar::new(),
        }
    }

    /// Sends a message and wakes one sleeping receiver. Never blocks for room.
    pub fn send(&self, message: T) {
        self.messages.push(message);
        // Orders the message before the check for sleepers.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            // A receiver that is about to sleep holds the lock until it does.
            drop(lock(&self.sleep));
            self.arrived.notify_one();
        }
    }

    /// Takes a message, or returns `None` if there is no message.
    pub fn try_recv(&self) -> Option<T> {
        self.messages.pop()
    }

    /// Blocks until there is a message, and takes it.
    pub fn recv(&self) -> T {
        loop {
            if let Some(message) = self.try_recv().or_else(|| self.sleep(None)) {
                return message;
            }
        }
    }

    /// Blocks until there is a message or `end` has passed. Reads the clock only
    /// if it has to wait.
    pub fn recv_until(&self, end: Instant) -> Option<T> {
        self.try_recv().or_else(|| self.sleep(Some(end)))
    }

    /// Sleeps until there is a message, or until `end`. A receiver whose time is
    /// up may be the one that a message woke, so it checks for messages before it
    /// gives up.
    #[cold]
    fn sleep(&self, end: Option<Instant>) -> Option<T> {
        let mut guard = lock(&self.sleep);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Orders the registration before the check for messages.
        fence(Ordering::SeqCst);
        let received = loop {
            let received = self.try_recv();
            let left = end.map(|end| guard.left(end));
            if received.is_some() || left.is_some_and(|left| left.is_zero()) {
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

    /// For models: lets the limits of all waits pass, from now on. Wakes nobody: a
    /// receiver finds its time up when something else wakes it.
    #[cfg(any(loom, shuttle))]
    pub fn pass_limits(&self) {
        lock(&self.sleep).pass();
    }

    /// For models: wakes all receivers, so that they check their limits.
    #[cfg(any(loom, shuttle))]
    pub fn wake_receivers(&self) {
        let _sleep = lock(&self.sleep);
        self.arrived.notify_all();
    }
}
