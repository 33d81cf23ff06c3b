//! Foreign code that must not unwind into its caller: the wakers of tasks. The caller may
//! be the ticker, or hold a message that must not be lost.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs foreign code, and returns whether it panicked. Dropping the payload of a panic
/// runs foreign code, too. If that panics, the second payload is leaked, because dropping
/// it could panic without end.
pub(super) fn panicked(run: impl FnOnce()) -> bool {
    let ran = catch_unwind(AssertUnwindSafe(run));
    let Err(thrown) = ran else {
        return false;
    };
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(thrown)));
    dropped.unwrap_or_else(mem::forget);
    true
}
