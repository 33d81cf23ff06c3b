//! Wakers that run code of a test.

use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

/// The code of a waker, for each of its calls. Defaults to nothing.
#[derive(Default)]
pub struct Scripted {
    wake: Option<Call>,
    clone: Option<Call>,
    drop: Option<Call>,
}

type Call = Box<dyn Fn() + Send + Sync>;

impl Scripted {
    /// Returns a waker without code.
    #[must_use]
    pub fn new() -> Scripted {
        Scripted::default()
    }

    /// Sets the code of a wake-up.
    #[must_use]
    pub fn on_wake(mut self, call: impl Fn() + Send + Sync + 'static) -> Scripted {
        self.wake = Some(Box::new(call));
        self
    }

    /// Sets the code of a clone, which runs before it.
    #[must_use]
    pub fn on_clone(mut self, call: impl Fn() + Send + Sync + 'static) -> Scripted {
        self.clone = Some(Box::new(call));
        self
    }

    /// Sets the code of the drop of a waker that was not woken.
    #[must_use]
    pub fn on_drop(mut self, call: impl Fn() + Send + Sync + 'static) -> Scripted {
        self.drop = Some(Box::new(call));
        self
    }

    /// Returns the waker.
    #[must_use]
    pub fn waker(self) -> Waker {
        let data = Arc::into_raw(Arc::new(self)).cast();
        // SAFETY: the functions of `VTABLE` keep the contract of `RawWaker` for a pointer
        // from `Arc::into_raw`, and may be called on any thread, as `Call` is.
        unsafe { Waker::from_raw(RawWaker::new(data, &VTABLE)) }
    }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

fn run(call: &Option<Call>) {
    if let Some(call) = call {
        call();
    }
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the waker that is cloned counts as one.
    let script = unsafe { &*data.cast::<Scripted>() };
    run(&script.clone);
    // SAFETY: as above; the clone counts as another one.
    unsafe { Arc::increment_strong_count(data.cast::<Scripted>()) };
    RawWaker::new(data, &VTABLE)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the waker that is used up counted as one.
    let script = unsafe { Arc::from_raw(data.cast::<Scripted>()) };
    run(&script.wake);
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the waker counts as one.
    let script = unsafe { &*data.cast::<Scripted>() };
    run(&script.wake);
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: the waker that is dropped counted as one.
    let script = unsafe { Arc::from_raw(data.cast::<Scripted>()) };
    run(&script.drop);
}
