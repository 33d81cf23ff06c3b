//! A wait until a number of events have happened.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Thread};

#[derive(Debug)]
pub struct Countdown {
    left: AtomicUsize,
    waiting: Thread,
}

impl Countdown {
    /// Returns a countdown on which the calling thread will wait.
    pub fn new(count: usize) -> Countdown {
        Countdown {
            left: AtomicUsize::new(count),
            waiting: thread::current(),
        }
    }

    pub fn count(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.waiting.unpark();
        }
    }

    /// Sleeps until the count is zero.
    pub fn wait(&self) {
        while self.left.load(Ordering::Acquire) > 0 {
            thread::park();
        }
    }
}
