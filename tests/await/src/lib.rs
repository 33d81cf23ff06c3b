//! Awaited timers on real runtimes. The tests are in `tests`; this library holds what
//! several of them need.

mod by_hand;
mod scripted;

pub use by_hand::{ByHand, Wakes};
pub use scripted::{on_clone, on_drop, on_wake};

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::Duration;

/// Returns a number of milliseconds.
pub const fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// Runs a future on the current thread, without a runtime.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}
