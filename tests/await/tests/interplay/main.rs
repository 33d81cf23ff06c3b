//! Awaited timers beside code that they do not know: wakers that panic, block, or call
//! back; sleeps that are moved, shared and leaked; shutdowns and forks in the middle.
//!
//! Time is virtual where the subject is not the waking thread.

#[cfg(target_os = "linux")]
mod fork;
mod shutdown;
mod sleeps;
mod wakers;

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use tickwheel::time::{Sleep, Timers, TimersClock};
use tickwheel_await_tests::{ByHand, Scripted, Wakes, block_on, ms};

/// Longer than any machine takes for what a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

const HOUR: Duration = Duration::from_secs(3_600);

/// Timers on a clock that only the test moves. The order of their wake-ups is total.
fn paused() -> (Timers, TimersClock) {
    Timers::builder().shards(1).start_virtual().unwrap()
}

/// Polls a future once, as a task with this waker does.
fn poll_with<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// A sleep that any number of wakers may drop.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Option<Sleep<Timers>>>>);

impl Shared {
    fn put(&self, sleep: Sleep<Timers>) {
        *self.0.lock().unwrap() = Some(sleep);
    }

    fn take(&self) -> Option<Sleep<Timers>> {
        self.0.lock().unwrap().take()
    }
}
