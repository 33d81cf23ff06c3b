//! Panics of foreign code, after they were caught.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Reports a panic with `report`, and drops its payload. Both run foreign code, which may
/// panic again. The payload of that second panic is leaked, because dropping it could
/// panic without end. The two are caught separately, because a drop that panics while
/// another panic unwinds ends the process.
pub(crate) fn dispose(thrown: Box<dyn Any + Send>, report: impl FnOnce(&(dyn Any + Send))) {
    let reported = catch_unwind(AssertUnwindSafe(|| report(&*thrown)));
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(thrown)));
    for result in [reported, dropped] {
        result.unwrap_or_else(mem::forget);
    }
}
