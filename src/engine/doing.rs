//! What a thread is in the middle of: running a task, or serving an engine.

use std::cell::RefCell;

use crate::id::{TimerId, WheelNumber};
use crate::sync::thread_local;

/// What a thread is in the middle of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// A task of this timer. The thread can't wait for its end.
    Task(TimerId),
    /// Serving the due timers of the engine whose first wheel has this number.
    Loop(WheelNumber),
}

thread_local! {
    /// The outermost first: a task may drive another engine, whose tasks then run inside it,
    /// and so on.
    // Loom's macro does not know `const`.
    #[allow(clippy::missing_const_for_thread_local)]
    static DOING: RefCell<Vec<Doing>> = RefCell::new(Vec::new());
}

/// Notes what the calling thread does, until the guard is dropped.
#[inline]
pub(crate) fn begin(doing: Doing) -> InMiddle {
    with(|all| all.push(doing));
    InMiddle(())
}

/// Whether the calling thread does something for which `is_it`.
pub(crate) fn is_in_middle_of(is_it: impl Fn(Doing) -> bool) -> bool {
    with(|all| all.iter().any(|&doing| is_it(doing))).unwrap_or(false)
}

#[must_use = "the thread counts as being in the middle of it until this is dropped"]
pub(crate) struct InMiddle(());

impl Drop for InMiddle {
    #[inline]
    fn drop(&mut self) {
        with(Vec::pop);
    }
}

/// Returns `None` if the thread is ending and its variables are gone.
#[inline]
fn with<R>(f: impl FnOnce(&mut Vec<Doing>) -> R) -> Option<R> {
    DOING.try_with(|all| f(&mut all.borrow_mut())).ok()
}
