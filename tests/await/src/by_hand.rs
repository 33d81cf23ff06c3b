//! A task without an executor: its future is polled by hand, and its wake-ups are counted.

use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A future, or anything else that takes a waker, with a waker of its own.
#[derive(Debug)]
pub struct ByHand<T> {
    polled: T,
    wakes: Arc<Wakes>,
    /// The wake-ups before the last poll.
    seen: usize,
}

impl<T> ByHand<T> {
    /// Wraps what is to be polled.
    pub fn new(polled: T) -> ByHand<T> {
        let wakes = Arc::default();
        ByHand { polled, wakes, seen: 0 }
    }

    /// Calls `poll` with the task's waker, and forgets earlier wake-ups.
    pub fn enter<R>(&mut self, poll: impl FnOnce(&mut T, &mut Context<'_>) -> R) -> R {
        self.seen = self.wakes.count();
        let waker = self.wakes.waker();
        poll(&mut self.polled, &mut Context::from_waker(&waker))
    }

    /// Returns whether the task was woken since it was last polled.
    pub fn is_woken(&self) -> bool {
        self.wakes.count() > self.seen
    }

    /// Returns the count of the task's wake-ups.
    pub fn wakes(&self) -> Arc<Wakes> {
        Arc::clone(&self.wakes)
    }

    /// Returns what was wrapped, without its task.
    pub fn into_inner(self) -> T {
        self.polled
    }
}

impl<F: Future + Unpin> ByHand<F> {
    /// Polls the future once.
    pub fn poll(&mut self) -> Poll<F::Output> {
        self.enter(|future, context| Pin::new(future).poll(context))
    }
}

impl<T> Deref for ByHand<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.polled
    }
}

impl<T> DerefMut for ByHand<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.polled
    }
}

/// A waker that counts.
#[derive(Debug, Default)]
pub struct Wakes(AtomicUsize);

impl Wakes {
    /// Returns the number of wake-ups so far.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a waker that adds to this count.
    pub fn waker(self: &Arc<Wakes>) -> Waker {
        Arc::clone(self).into()
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Wakes>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
