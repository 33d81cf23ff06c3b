//! Wakers that run code of a test.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

#[derive(Clone, Copy, PartialEq)]
enum Call {
    Clone,
    Wake,
    Drop,
}

type Script = Box<dyn Fn(Call) + Send + Sync>;

/// Returns a waker that runs `code` when it is woken.
pub fn on_wake(code: impl Fn() + Send + Sync + 'static) -> Waker {
    scripted(Call::Wake, code)
}

/// Returns a waker that runs `code` before it is cloned.
pub fn on_clone(code: impl Fn() + Send + Sync + 'static) -> Waker {
    scripted(Call::Clone, code)
}

/// Returns a waker that runs `code` when it, or a clone, is dropped without being woken.
pub fn on_drop(code: impl Fn() + Send + Sync + 'static) -> Waker {
    scripted(Call::Drop, code)
}

fn scripted(on: Call, code: impl Fn() + Send + Sync + 'static) -> Waker {
    let script: Script = Box::new(move |call| {
        if call == on {
            code();
        }
    });
    let data = Arc::into_raw(Arc::new(script)).cast();
    // SAFETY: the functions of `VTABLE` keep the contract of `RawWaker` for a pointer from
    // `Arc::into_raw`, and may be called on any thread, as a script is.
    unsafe { Waker::from_raw(RawWaker::new(data, &VTABLE)) }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: the waker that is cloned counts as one, and goes on doing so.
        let script = ManuallyDrop::new(unsafe { owned(data) });
        script(Call::Clone);
        RawWaker::new(Arc::into_raw(Arc::clone(&script)).cast(), &VTABLE)
    },
    // SAFETY: the waker that is used up counted as one.
    |data| unsafe { owned(data) }(Call::Wake),
    // SAFETY: the waker counts as one, and goes on doing so.
    |data| ManuallyDrop::new(unsafe { owned(data) })(Call::Wake),
    // SAFETY: the waker that is dropped counted as one.
    |data| unsafe { owned(data) }(Call::Drop),
);

/// # Safety
/// The pointer is from `scripted`, and counts as one owner.
unsafe fn owned(data: *const ()) -> Arc<Script> {
    // SAFETY: as above.
    unsafe { Arc::from_raw(data.cast()) }
}
