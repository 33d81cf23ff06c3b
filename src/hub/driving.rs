//! The engines that the calling thread is driving.
//!
//! A task may drive another engine, whose tasks then run inside it, and so on. A task
//! that drives an engine which its thread is driving already would run the next task
//! inside itself. Such a call is refused, so no stack is deeper than the number of
//! engines.

use std::cell::RefCell;

use crate::id::WheelNumber;
use crate::sync::thread_local;

thread_local! {
    /// The first wheels of the engines that this thread is driving, the outermost first.
    // Loom's macro does not know `const`.
    #[allow(clippy::missing_const_for_thread_local)]
    static DRIVEN: RefCell<Vec<WheelNumber>> = RefCell::new(Vec::new());
}

/// Notes that the calling thread is driving this engine, until the guard is dropped.
/// Returns `None` if it is driving the engine already.
pub(super) fn enter(engine: WheelNumber) -> Option<Driving> {
    let is_first = with(|driven| {
        let is_first = !driven.contains(&engine);
        if is_first {
            driven.push(engine);
        }
        is_first
    });
    is_first.unwrap_or(true).then(|| Driving(()))
}

#[must_use = "the engine counts as driven until this is dropped"]
pub(crate) struct Driving(());

impl Drop for Driving {
    fn drop(&mut self) {
        with(Vec::pop);
    }
}

/// Returns `None` if the thread is ending and its variables are gone.
fn with<R>(f: impl FnOnce(&mut Vec<WheelNumber>) -> R) -> Option<R> {
    DRIVEN.try_with(|driven| f(&mut driven.borrow_mut())).ok()
}
