//! A count that a waiting thread shares with the timers that it waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::thread::{self, Thread};

#[derive(Debug)]
pub struct Countdown {
    left: AtomicUsize,
    waiting: Thread,
}

impl Countdown {
    /// Begins a count for which the calling thread will wait.
    pub fn from(count: usize) -> Arc<Countdown> {
        Arc::new(Countdown { left: AtomicUsize::new(count), waiting: thread::current() })
    }

    pub fn count(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.waiting.unpark();
        }
    }

    /// Waits until all have been counted.
    pub fn wait(&self) {
        while self.left.load(Ordering::Acquire) > 0 {
            thread::park();
        }
    }
}

/// The waker of a task, as far as a timer can tell.
impl Wake for Countdown {
    fn wake(self: Arc<Countdown>) {
        self.count();
    }

    fn wake_by_ref(self: &Arc<Countdown>) {
        self.count();
    }
}
