//! A sleep on a condition variable, for models and for systems without `futex.rs`.

use super::parker::{LONGEST, Parker};
use crate::sync::primitives::{AtomicU32, Condvar, Mutex, Ordering, lock, wait_for};

/// A condition variable with its mutex.
#[derive(Default)]
pub struct CondvarParker {
    mutex: Mutex<()>,
    woken: Condvar,
}

impl Parker for CondvarParker {
    fn park(&self, word: &AtomicU32, seen: u32) {
        let guard = lock(&self.mutex);
        if word.load(Ordering::Relaxed) == seen {
            drop(wait_for(&self.woken, guard, LONGEST));
        }
    }

    fn wake_one(&self, _word: &AtomicU32) {
        // A waiter that has checked the word is asleep once the mutex is free.
        drop(lock(&self.mutex));
        self.woken.notify_one();
    }
}
