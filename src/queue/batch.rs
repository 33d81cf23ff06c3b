//! Several expired timers for one worker.

use crate::queue::{Expired, Queue};

/// Expired timers, taken one at a time as they are asked for; from
/// [`Queue::recv_batch`].
#[derive(Debug)]
#[must_use = "a batch takes timers only when it is asked for them"]
pub struct Batch<'a, T> {
    queue: &'a Queue<T>,
    first: Option<Expired<T>>,
    more: usize,
}

impl<'a, T> Batch<'a, T> {
    pub(super) fn new(queue: &'a Queue<T>, first: Option<Expired<T>>, more: usize) -> Self {
        Batch { queue, first, more }
    }
}

impl<T> Iterator for Batch<'_, T> {
    type Item = Expired<T>;

    fn next(&mut self) -> Option<Expired<T>> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        self.more = self.more.checked_sub(1)?;
        self.queue.try_recv().ok()
    }
}
