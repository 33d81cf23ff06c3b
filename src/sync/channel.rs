//! A channel that is never full: crossbeam's, or in a model one that its
//! scheduler can see into.

use std::time::Duration;

/// Why nothing was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecvError {
    /// Nothing is there (within the time given).
    Empty,
    /// Nothing is there and nothing can come.
    Disconnected,
}

/// A channel that never holds more than `capacity` messages, because its users
/// see to that.
pub(crate) fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    imp::channel(capacity)
}

pub(crate) use imp::{Receiver, Sender};

#[cfg(not(any(loom, shuttle)))]
mod imp {
    use super::{Duration, RecvError};
    use crossbeam_channel as cc;

    pub(crate) struct Sender<T>(cc::Sender<T>);
    pub(crate) struct Receiver<T>(cc::Receiver<T>);

    pub(super) fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        let (sender, receiver) = cc::bounded(capacity);
        (Sender(sender), Receiver(receiver))
    }

    impl<T> Sender<T> {
        pub(crate) fn send(&self, message: T) {
            // Never full by the contract above. Disconnected means that nobody
            // is left who would want to hear it.
            let sent = self.0.try_send(message);
            debug_assert!(!matches!(sent, Err(cc::TrySendError::Full(_))));
        }
    }

    impl<T> Receiver<T> {
        pub(crate) fn recv(&self) -> Result<T, RecvError> {
            self.0.recv().map_err(|_| RecvError::Disconnected)
        }

        pub(crate) fn try_recv(&self) -> Result<T, RecvError> {
            self.0.try_recv().map_err(|error| match error {
                cc::TryRecvError::Empty => RecvError::Empty,
                cc::TryRecvError::Disconnected => RecvError::Disconnected,
            })
        }

        pub(crate) fn recv_timeout(&self, limit: Duration) -> Result<T, RecvError> {
            self.0.recv_timeout(limit).map_err(|error| match error {
                cc::RecvTimeoutError::Timeout => RecvError::Empty,
                cc::RecvTimeoutError::Disconnected => RecvError::Disconnected,
            })
        }
    }

    impl<T> Clone for Sender<T> {
        fn clone(&self) -> Self {
            Sender(self.0.clone())
        }
    }

    impl<T> Clone for Receiver<T> {
        fn clone(&self) -> Self {
            Receiver(self.0.clone())
        }
    }
}

#[cfg(any(loom, shuttle))]
mod imp {
    use super::{Duration, RecvError};
    use crate::sync::{Arc, Condvar, Mutex, lock, wait};
    use std::collections::VecDeque;

    struct Shared<T> {
        messages: Mutex<VecDeque<T>>,
        arrived: Condvar,
        capacity: usize,
    }

    pub(crate) struct Sender<T>(Arc<Shared<T>>);
    pub(crate) struct Receiver<T>(Arc<Shared<T>>);

    pub(super) fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        let shared = Arc::new(Shared {
            messages: Mutex::new(VecDeque::new()),
            arrived: Condvar::new(),
            capacity,
        });
        (Sender(shared.clone()), Receiver(shared))
    }

    impl<T> Sender<T> {
        pub(crate) fn send(&self, message: T) {
            let mut messages = lock(&self.0.messages);
            messages.push_back(message);
            assert!(messages.len() <= self.0.capacity);
            self.0.arrived.notify_one();
        }
    }

    impl<T> Receiver<T> {
        pub(crate) fn recv(&self) -> Result<T, RecvError> {
            let mut messages = lock(&self.0.messages);
            loop {
                if let Some(message) = messages.pop_front() {
                    return Ok(message);
                }
                messages = wait(&self.0.arrived, messages);
            }
        }

        pub(crate) fn try_recv(&self) -> Result<T, RecvError> {
            lock(&self.0.messages).pop_front().ok_or(RecvError::Empty)
        }

        pub(crate) fn recv_timeout(&self, _: Duration) -> Result<T, RecvError> {
            self.recv()
        }
    }

    impl<T> Clone for Sender<T> {
        fn clone(&self) -> Self {
            Sender(self.0.clone())
        }
    }

    impl<T> Clone for Receiver<T> {
        fn clone(&self) -> Self {
            Receiver(self.0.clone())
        }
    }
}
