//! Waking the tasks of timers that have come due.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use crate::caught;
use crate::hub::Core;
use crate::observe;

/// Wakes a task, and counts a panic of its waker. A waker is foreign code: no
/// lock is held.
pub(super) fn wake(core: &Core<Waker>, waker: Waker) {
    if let Err(thrown) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        core.count_panic();
        caught::dispose(thrown, |thrown| {
            observe::waker_panicked(core.subject(), thrown)
        });
    }
}
