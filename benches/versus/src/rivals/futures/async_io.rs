//! async-io: an ordered map behind a lock, and a thread that sleeps.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use async_io::Timer;

use super::race::{Late, race};
use crate::rival::Awaited;

pub struct Timers;

impl Awaited for Timers {
    const NAME: &'static str = "async-io";
    const TICK: Duration = Duration::ZERO;
    type Sleep = Timer;
    type Elapsed = Late;

    fn sleep(delay: Duration) -> Timer {
        Timer::after(delay)
    }

    fn sleep_until(deadline: Instant) -> Timer {
        Timer::at(deadline)
    }

    fn reset(sleep: Pin<&mut Timer>, delay: Duration) {
        sleep.get_mut().set_after(delay);
    }

    fn reset_at(sleep: Pin<&mut Timer>, deadline: Instant) {
        sleep.get_mut().set_at(deadline);
    }

    fn timeout<F>(
        limit: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Late>> + Send
    where
        F: Future<Output: Send> + Send,
    {
        race(future, Timer::after(limit))
    }
}
