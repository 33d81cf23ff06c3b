//! Waiting until something has happened a number of times.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Thread};

#[derive(Debug)]
pub struct Countdown {
    left: AtomicUsize,
    waiting: Thread,
}

impl Countdown {
    /// For the calling thread, which will wait.
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

    /// Without using the processor meanwhile.
    pub fn wait(&self) {
        while self.left.load(Ordering::Acquire) > 0 {
            thread::park();
        }
    }
}
