//! Messages, in a model.
//!
//! What orders threads here is one count, and no more than a channel has to: who
//! receives a message sees what its sender did before. A message that was just
//! sent may not be seen yet, as on a machine whose stores take their time, unless
//! a fence says otherwise. With a scheduler's mutex around the queue each look
//! would be ordered behind each message, and no fence of `Channel` be missed.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::sync::{AtomicUsize, Ordering};

pub(super) struct Messages<T> {
    /// A mutex that the scheduler does not see: nothing else happens while it is
    /// locked.
    queue: Mutex<VecDeque<T>>,
    /// How many messages may be taken.
    count: AtomicUsize,
    capacity: usize,
}

impl<T> Messages<T> {
    pub(super) fn new(capacity: usize) -> Messages<T> {
        Messages {
            queue: Mutex::default(),
            count: AtomicUsize::new(0),
            capacity,
        }
    }

    pub(super) fn push(&self, message: T) {
        self.with(|queue| queue.push_back(message));
        let before = self.count.fetch_add(1, Ordering::AcqRel);
        assert!(before < self.capacity);
    }

    pub(super) fn pop(&self) -> Option<T> {
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

    fn with<R>(&self, work: impl FnOnce(&mut VecDeque<T>) -> R) -> R {
        work(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
