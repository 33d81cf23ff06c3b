//! tickwheel's awaited timers on the process-wide engine, with a thread of its own.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tickwheel::time::{Elapsed, Sleep, sleep, sleep_until, timeout};

use crate::rival::Awaited;

pub struct Global;

impl Awaited for Global {
    const NAME: &'static str = "tickwheel sleep";
    type Sleep = Sleep;
    type Elapsed = Elapsed;

    fn sleep(delay: Duration) -> Sleep {
        sleep(delay)
    }

    fn sleep_until(deadline: Instant) -> Sleep {
        sleep_until(deadline)
    }

    fn reset(sleep: Pin<&mut Sleep>, delay: Duration) {
        sleep.get_mut().reset(delay);
    }

    fn reset_at(sleep: Pin<&mut Sleep>, deadline: Instant) {
        sleep.get_mut().reset(deadline);
    }

    fn timeout<F>(
        limit: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + Send
    where
        F: Future<Output: Send> + Send,
    {
        timeout(limit, future)
    }
}
