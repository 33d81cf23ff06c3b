//! A bounded channel that never overflows, and the sleep of its receivers.
//!
//! Both ends are one value, so a channel is never disconnected. Its users never
//! send more messages than it has room for, so a sender never waits. The messages
//! are stored in crossbeam's channel or, in a model, in one that the model's
//! scheduler can observe.
//!
//! Crossbeam's own receivers yield several times before they sleep. On a busy
//! machine each yield costs the rest of a time slice, a few milliseconds, and only
//! a thread that has slept is scheduled ahead of others. Receivers here sleep at
//! once (DESIGN.md, "A worker that finds nothing sleeps at once").
//!
//! # Why no receiver sleeps through a message
//!
//! A sender pushes its message and then checks for sleepers. A receiver registers
//! as a sleeper and then checks for messages. Both have a SeqCst fence between the
//! two steps. If the sender's fence comes first, the receiver sees the message. If
//! the receiver's fence comes first, the sender sees the sleeper and notifies it.

#[cfg_attr(any(loom, shuttle), path = "channel/counted.rs")]
#[cfg_attr(not(any(loom, shuttle)), path = "channel/crossbeam.rs")]
mod messages;

mod limits;

use std::time::Instant;

use crate::sync::primitives::{
    AtomicBool, AtomicUsize, Condvar, Mutex, Ordering, fence, lock, wait, wait_for,
};
use limits::Limits;
use messages::Messages;

/// A channel between threads. Its users never send more than it has room for.
pub struct Channel<T> {
    messages: Messages<T>,
    /// The number of receivers that sleep or are about to. Changed under `sleep`.
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

    /// Sends a message and wakes one sleeping receiver. Never waits for room.
    pub fn send(&self, message: T) {
        self.messages.push(message);
        // Orders the message before the check for sleepers.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            // A receiver that is about to sleep holds the lock until it sleeps.
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
            if let Some(message) = self.try_recv().or_else(|| self.sleep(None, None)) {
                return message;
            }
        }
    }

    /// Blocks until there is a message or `end` has passed. Reads the clock only
    /// if it has to wait.
    pub fn recv_until(&self, end: Instant) -> Option<T> {
        self.try_recv().or_else(|| self.sleep(Some(end), None))
    }

    /// Blocks until there is a message or `flag` is set. The thread that sets the flag
    /// calls [`wake_receivers`](Channel::wake_receivers) afterwards.
    pub fn recv_unless(&self, flag: &AtomicBool) -> Option<T> {
        self.try_recv().or_else(|| self.sleep(None, Some(flag)))
    }

    /// Sleeps until there is a message, `end` has passed or `flag` is set. A message may
    /// wake a receiver whose time is up, so a receiver checks for messages before it
    /// gives up.
    #[cold]
    fn sleep(&self, end: Option<Instant>, flag: Option<&AtomicBool>) -> Option<T> {
        let mut guard = lock(&self.sleep);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Orders the registration before the check for messages.
        fence(Ordering::SeqCst);
        let received = loop {
            let received = self.try_recv();
            let left = end.map(|end| guard.left(end));
            let is_set = flag.is_some_and(|flag| flag.load(Ordering::Relaxed));
            if received.is_some() || is_set || left.is_some_and(|left| left.is_zero()) {
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

    /// In a model, treats the limits of all waits as passed from now on. Does not
    /// wake any receiver: a receiver learns that its time is up at its next wake-up.
    #[cfg(any(loom, shuttle))]
    pub fn pass_limits(&self) {
        lock(&self.sleep).pass();
    }

    /// Wakes all receivers, so that they check their flags and, in a model, their limits.
    /// A receiver that is about to sleep holds the lock until it sleeps.
    pub fn wake_receivers(&self) {
        let _sleep = lock(&self.sleep);
        self.arrived.notify_all();
    }
}
