//! tokio's timers, the classic ones.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::time::{self, Sleep, error::Elapsed};

use crate::rival::Awaited;

pub struct Classic;

impl Awaited for Classic {
    const NAME: &'static str = "tokio";
    type Sleep = Sleep;
    type Elapsed = Elapsed;

    fn sleep(delay: Duration) -> Sleep {
        time::sleep(delay)
    }

    fn sleep_until(deadline: Instant) -> Sleep {
        time::sleep_until(deadline.into())
    }

    fn reset(sleep: Pin<&mut Sleep>, delay: Duration) {
        sleep.reset(time::Instant::now() + delay);
    }

    fn reset_at(sleep: Pin<&mut Sleep>, deadline: Instant) {
        sleep.reset(deadline.into());
    }

    fn timeout<F>(
        limit: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + Send
    where
        F: Future<Output: Send> + Send,
    {
        time::timeout(limit, future)
    }
}
