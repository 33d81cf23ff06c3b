//! A channel that is never full, and how its receivers sleep.
//!
//! The messages are in crossbeam's channel, or in a model in one that its
//! scheduler can see into. Crossbeam's own receivers step aside several times
//! before they sleep, and on a busy machine whoever steps aside is not back for
//! milliseconds (measured, beside two busy threads: half of the timers were in
//! their worker's hands 2.5 ms late and more, instead of 0.5). Here they sleep
//! at once.

use std::time::Instant;

use crate::sync::{AtomicUsize, Condvar, IS_MODEL, Mutex, Ordering, fence, lock, wait, wait_for};
use messages::Messages;

/// Why nothing was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecvError {
    /// Nothing is there (within the time given).
    Empty,
    /// Nothing is there and nothing can come.
    Disconnected,
}

/// Never holds more messages than its capacity, because its users see to that.
pub(crate) struct Channel<T> {
    messages: Messages<T>,
    /// How many receivers sleep, or are about to: changed under `sleep`.
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    arrived: Condvar,
}

impl<T> Channel<T> {
    pub(crate) fn new(capacity: usize) -> Channel<T> {
        Channel {
            messages: Messages::new(capacity),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            arrived: Condvar::new(),
        }
    }

    pub(crate) fn send(&self, message: T) {
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

    pub(crate) fn try_recv(&self) -> Result<T, RecvError> {
        self.messages.pop().ok_or(RecvError::Empty)
    }

    pub(crate) fn recv(&self) -> Result<T, RecvError> {
        self.try_recv().or_else(|_| self.sleep(None))
    }

    /// As [`Channel::recv`], until `end` at most. Reads the clock only if it has
    /// to wait.
    pub(crate) fn recv_until(&self, end: Instant) -> Result<T, RecvError> {
        // A model has no time: there it waits for ever.
        let end = Some(end).filter(|_| !IS_MODEL);
        self.try_recv().or_else(|_| self.sleep(end))
    }

    /// Sleeps until a message comes, or the end.
    #[cold]
    fn sleep(&self, end: Option<Instant>) -> Result<T, RecvError> {
        let mut guard = lock(&self.sleep);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let received = loop {
            let received = self.try_recv();
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
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
}

#[cfg(not(any(loom, shuttle)))]
mod messages {
    use crossbeam_channel as cc;

    pub(super) struct Messages<T> {
        sender: cc::Sender<T>,
        receiver: cc::Receiver<T>,
    }

    impl<T> Messages<T> {
        pub(super) fn new(capacity: usize) -> Messages<T> {
            let (sender, receiver) = cc::bounded(capacity);
            Messages { sender, receiver }
        }

        pub(super) fn push(&self, message: T) {
            // Never full by the contract above, and with both its ends here
            // never disconnected.
            let sent = self.sender.try_send(message);
            debug_assert!(sent.is_ok());
        }

        pub(super) fn pop(&self) -> Option<T> {
            self.receiver.try_recv().ok()
        }
    }
}

#[cfg(any(loom, shuttle))]
mod messages {
    use crate::sync::{Mutex, lock};
    use std::collections::VecDeque;

    pub(super) struct Messages<T> {
        queue: Mutex<VecDeque<T>>,
        capacity: usize,
    }

    impl<T> Messages<T> {
        pub(super) fn new(capacity: usize) -> Messages<T> {
            Messages {
                queue: Mutex::new(VecDeque::new()),
                capacity,
            }
        }

        pub(super) fn push(&self, message: T) {
            let mut queue = lock(&self.queue);
            queue.push_back(message);
            assert!(queue.len() <= self.capacity);
        }

        pub(super) fn pop(&self) -> Option<T> {
            lock(&self.queue).pop_front()
        }
    }
}
