//! Awaited timers. `sleep`, `interval`, `timeout`, `rt` and `delay_queue` hold what
//! tokio's own tests assert of its timers, as numbered behaviours; the comment above a test
//! names tokio's, as of tokio 1.54.1 and tokio-util 0.7.20. A `differs` test shows a
//! deliberate difference; docs/COMPARE.md gives the reasons. The other modules hold
//! awaited timers beside code that they do not know: wakers that panic, block or call back,
//! shutdowns in the middle, hyper, tower and programs that were written for tokio.
//!
//! Time is virtual unless real time is the subject.

mod delay_queue;
mod drop_in;
mod hyper;
mod interval;
mod queue;
mod rt;
mod shutdown;
mod sleep;
mod sleeps;
mod timeout;
mod tower;
mod virtual_time;
mod wakers;

use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::time::{Handle, Interval, Sleep, Timers};
use tickwheel::{Time, VirtualClock};
use tickwheel_await_tests::{ByHand, Wakes, block_on, ms, on_clone, on_drop, on_wake};
use tokio::task::yield_now;

/// Longer than any machine takes for what a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

const HOUR: Duration = Duration::from_secs(3_600);

/// A year, in milliseconds.
const YEAR: u64 = 365 * 24 * 3_600 * 1_000;

/// Timers on a clock that only the test moves. The order of their wake-ups is total.
fn paused() -> (Timers, VirtualClock) {
    Timers::builder().shards(1).start_virtual().unwrap()
}

/// A time counted from the start of the timers, in milliseconds.
fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// Asserts that a task waits for the given millisecond, is woken at it and not before, and
/// then is ready.
fn ends_at<F: Future<Output = ()> + Unpin>(
    task: &mut ByHand<F>,
    clock: &VirtualClock,
    millis: u64,
) {
    assert!(task.poll().is_pending());
    clock.advance_to(at(millis - 1));
    assert!(!task.is_woken(), "woken early");
    assert!(task.poll().is_pending(), "ready early");
    clock.advance_to(at(millis));
    assert!(task.is_woken(), "not woken");
    assert!(task.poll().is_ready(), "not ready");
}

/// Polls a future once, as a task with this waker does.
fn poll_with<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Polls an interval once.
fn poll_tick<H: Handle>(beat: &mut ByHand<Interval<H>>) -> Poll<H::Moment> {
    beat.enter(|beat, context| beat.poll_tick(context))
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
