//! The tasks that the calling thread is running.
//!
//! A task may drive another engine, whose tasks then run inside it, and so on. A thread
//! can therefore be running any number of tasks, and cannot wait for any of them.

use std::cell::{Cell, RefCell};

use crate::id::TimerId;
use crate::sync::thread_local;

thread_local! {
    /// The timer of the innermost task that this thread is running.
    // Loom's macro does not know `const`.
    #[allow(clippy::missing_const_for_thread_local)]
    static INNERMOST: Cell<Option<TimerId>> = Cell::new(None);
    /// The timers of the other tasks, the outermost first.
    #[allow(clippy::missing_const_for_thread_local)]
    static OUTER: RefCell<Vec<TimerId>> = RefCell::new(Vec::new());
}

/// Returns whether the calling thread is running a task of this timer.
pub(crate) fn is_running_here(id: TimerId) -> bool {
    is_any_here(|running| running.is_same_timer(id))
}

/// Returns whether the calling thread is running a task of a timer for which `is_it`.
pub(crate) fn is_any_here(is_it: impl Fn(TimerId) -> bool) -> bool {
    let innermost = INNERMOST.try_with(Cell::get).ok().flatten();
    innermost.is_some_and(&is_it)
        || with_outer(|outer| outer.iter().any(|&id| is_it(id))).unwrap_or(false)
}

/// Notes that the calling thread is running a task of this timer, until the guard
/// is dropped.
#[inline]
pub(crate) fn enter(id: TimerId) -> Running {
    let outer = replace_innermost(Some(id));
    if let Some(outer) = outer {
        with_outer(|others| others.push(outer));
    }
    Running {
        is_nested: outer.is_some(),
    }
}

#[must_use = "the task counts as running until this is dropped"]
pub(crate) struct Running {
    is_nested: bool,
}

impl Drop for Running {
    #[inline]
    fn drop(&mut self) {
        let outer = match self.is_nested {
            true => with_outer(Vec::pop).flatten(),
            false => None,
        };
        replace_innermost(outer);
    }
}

/// Returns `None` if the thread is ending and its variables are gone.
#[inline]
fn replace_innermost(id: Option<TimerId>) -> Option<TimerId> {
    INNERMOST.try_with(|innermost| innermost.replace(id)).ok()?
}

/// Returns `None` if the thread is ending and its variables are gone.
#[cold]
fn with_outer<R>(f: impl FnOnce(&mut Vec<TimerId>) -> R) -> Option<R> {
    OUTER.try_with(|outer| f(&mut outer.borrow_mut())).ok()
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

    #[test]
    fn a_task_that_drives_another_engine_goes_on_running() {
        let ids = [1, 2, 3].map(|sequence| TimerId::new(7.into(), sequence, 0));
        let running = ids.map(enter);
        assert!(ids.into_iter().all(is_running_here));
        for (running, id) in running.into_iter().zip(ids).rev() {
            assert!(is_running_here(id));
            drop(running);
            assert!(!is_running_here(id));
        }
    }
}
