//! What tokio's own tests assert of its timers, as numbered behaviours: a module for each
//! of tokio's files, and a test for each of its tests, which the comment above names.
//! Read at tokio 1.54.1 and tokio-util 0.7.20. Time is virtual unless real time is the
//! subject.
//!
//! A `differs` test shows a deliberate difference; docs/COMPARE.md gives the reasons. The
//! word "Better" above a test says where tokio's test allows for more than this crate needs.
//!
//! Left out are `tracing_time.rs` (there are no spans) and `time_wasm.rs` (there is no such
//! platform).

mod alt;
mod delay_queue;
mod interval;
mod panic;
mod pause;
mod rt;
mod sleep;
mod timeout;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use tickwheel::Time;
use tickwheel::time::{Timers, TimersClock};
use tickwheel_await_tests::{ByHand, block_on, ms};
use tokio::runtime::{Builder, Runtime};

/// A year, in milliseconds.
const YEAR: u64 = 365 * 24 * 3_600 * 1_000;

/// Timers on a clock that only the test moves.
fn paused() -> (Timers, TimersClock) {
    Timers::builder().start_virtual().unwrap()
}

/// A time counted from the start of the timers, in milliseconds.
fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// Asserts that a task waits for the given millisecond, is woken at it and not before, and
/// then is ready.
fn ends_at<F: Future<Output = ()> + Unpin>(task: &mut ByHand<F>, clock: &TimersClock, millis: u64) {
    assert!(task.poll().is_pending());
    clock.advance_to(at(millis - 1));
    assert!(!task.is_woken(), "woken early");
    assert!(task.poll().is_pending(), "ready early");
    clock.advance_to(at(millis));
    assert!(task.is_woken(), "not woken");
    assert!(task.poll().is_ready(), "not ready");
}

/// tokio's kinds of runtime.
fn runtimes() -> [Runtime; 3] {
    [Builder::new_current_thread(), workers(1), workers(4)]
        .map(|mut builder| builder.enable_all().build().unwrap())
}

fn workers(count: usize) -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(count);
    builder
}
