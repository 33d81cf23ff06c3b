//! A sleep on a condition variable: in models, and elsewhere than on Linux.

use super::parker::{LONGEST, Parker};
use crate::sync::primitives::{AtomicU32, Condvar, Mutex, Ordering, lock, wait_for};

/// A condition variable, and what it takes.
#[derive(Default)]
pub struct Bed {
    mutex: Mutex<()>,
    woken: Condvar,
}

impl Parker for Bed {
    fn park(&self, word: &AtomicU32, seen: u32) {
        let guard = lock(&self.mutex);
        if word.load(Ordering::Relaxed) == seen {
            drop(wait_for(&self.woken, guard, LONGEST));
        }
    }

    fn wake_one(&self, _word: &AtomicU32) {
        // Whoever has looked at the word is asleep when this is free.
        drop(lock(&self.mutex));
        self.woken.notify_one();
    }
}
