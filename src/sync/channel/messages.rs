//! The messages of a channel: stored in crossbeam's channel or, in a model, in one that the
//! model's scheduler can observe.

#[cfg(any(loom, shuttle))]
pub(super) use counted::Messages;
#[cfg(not(any(loom, shuttle)))]
pub(super) use crossbeam::Messages;

#[cfg(not(any(loom, shuttle)))]
mod crossbeam {
    use crossbeam_channel as cc;

    pub(crate) struct Messages<T> {
        sender: cc::Sender<T>,
        receiver: cc::Receiver<T>,
    }

    impl<T> Messages<T> {
        pub(crate) fn new(capacity: usize) -> Messages<T> {
            let (sender, receiver) = cc::bounded(capacity);
            Messages { sender, receiver }
        }

        pub(crate) fn push(&self, message: T) {
            // The channel has room, by the contract of `Channel`, and is connected,
            // because both of its ends are here.
            let sent = self.sender.try_send(message);
            debug_assert!(sent.is_ok());
        }

        pub(crate) fn pop(&self) -> Option<T> {
            self.receiver.try_recv().ok()
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.receiver.is_empty()
        }
    }
}

// The messages of a channel in a model.
//
// A single count orders threads, as weakly as a channel may: the receiver of a
// message sees everything that its sender did before sending it. Without a fence, a
// receiver may miss a message that was just sent, as on a machine whose stores take
// effect late. A scheduler's mutex around the queue would order every check after
// every message, so a missing fence in `Channel` would go unnoticed.
#[cfg(any(loom, shuttle))]
mod counted {
    use std::collections::VecDeque;
    use std::sync::{Mutex, PoisonError};

    use crate::sync::primitives::{AtomicUsize, Ordering};

    pub(crate) struct Messages<T> {
        /// A mutex that the scheduler does not see. No other thread runs while it is
        /// locked.
        queue: Mutex<VecDeque<T>>,
        /// The number of messages that receivers may take.
        count: AtomicUsize,
        capacity: usize,
    }

    impl<T> Messages<T> {
        pub(crate) fn new(capacity: usize) -> Messages<T> {
            Messages { queue: Mutex::default(), count: AtomicUsize::new(0), capacity }
        }

        /// Threads switch before an atomic operation. The message is therefore put into the
        /// queue after it: before it, the message would be there from the caller's last
        /// operation on, and could not be overtaken.
        pub(crate) fn push(&self, message: T) {
            let before = self.count.fetch_add(1, Ordering::AcqRel);
            assert!(before < self.capacity);
            self.with(|queue| queue.push_back(message));
        }

        pub(crate) fn pop(&self) -> Option<T> {
            let mut count = self.count.load(Ordering::Relaxed);
            while count > 0 {
                let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
                let taken = self.count.compare_exchange(count, count - 1, order, failed);
                match taken {
                    Ok(_) => return self.with(VecDeque::pop_front),
                    Err(now) => count = now,
                }
            }
            None
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.count.load(Ordering::Relaxed) == 0
        }

        fn with<R>(&self, work: impl FnOnce(&mut VecDeque<T>) -> R) -> R {
            work(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
        }
    }
}
