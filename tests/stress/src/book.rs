//! What a round has to account for: every timer, and what was broken.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::board::Known;

/// A handle: clones share one book.
#[derive(Clone)]
pub struct Book(Arc<Pages>);

struct Pages {
    known: Mutex<Vec<Known>>,
    broken: Mutex<Vec<String>>,
}

impl Book {
    pub fn new() -> Book {
        Book(Arc::new(Pages {
            known: Mutex::new(Vec::new()),
            broken: Mutex::new(Vec::new()),
        }))
    }

    pub fn enter(&self, known: Known) {
        lock(&self.0.known).push(known);
    }

    /// Every timer that got an id.
    pub fn known(&self) -> Vec<Known> {
        lock(&self.0.known).clone()
    }

    /// Notes that something does not hold.
    pub fn broke(&self, what: String) {
        lock(&self.0.broken).push(what);
    }

    pub fn broken(&self) -> Vec<String> {
        lock(&self.0.broken).clone()
    }
}

impl fmt::Debug for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Book").finish_non_exhaustive()
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
