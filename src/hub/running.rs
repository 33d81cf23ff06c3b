//! The tasks that the calling thread is running.
//!
//! A task may drive another engine, whose tasks then run inside it, and so on. A thread
//! can therefore be running any number of tasks, and cannot wait for any of them.

use std::cell::RefCell;

use crate::id::TimerId;
use crate::sync::thread_local;

thread_local! {
    /// The timers whose tasks this thread is running, the outermost first.
    // Loom's macro does not know `const`.
    #[allow(clippy::missing_const_for_thread_local)]
    static RUNNING: RefCell<Vec<TimerId>> = RefCell::new(Vec::new());
}

/// Returns whether the calling thread is running a task of this timer.
pub(crate) fn is_running_here(id: TimerId) -> bool {
    let is_same = |&running: &TimerId| running.is_same_timer(id);
    with(|running| running.iter().any(is_same)).unwrap_or(false)
}

/// Notes that the calling thread is running a task of this timer, until the guard
/// is dropped.
pub(crate) fn enter(id: TimerId) -> Running {
    with(|running| running.push(id));
    Running(())
}

#[must_use = "the task counts as running until this is dropped"]
pub(crate) struct Running(());

impl Drop for Running {
    fn drop(&mut self) {
        with(Vec::pop);
    }
}

/// Returns `None` if the thread is ending and its variables are gone.
fn with<R>(f: impl FnOnce(&mut Vec<TimerId>) -> R) -> Option<R> {
    RUNNING
        .try_with(|running| f(&mut running.borrow_mut()))
        .ok()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_task_runs_here_whatever_index_a_forged_id_of_it_has() {
        let id = |sequence, index| TimerId::new(7.into(), sequence, index);
        let _running = enter(id(5, 3));
        assert!(is_running_here(id(5, 3)) && is_running_here(id(5, 4)));
        assert!(!is_running_here(id(6, 3)));
    }
}
