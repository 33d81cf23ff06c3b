//! tokio's alternative timers, with a wheel per worker. They exist with
//! `--cfg tokio_unstable`, and only in a runtime that has workers.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::time::{Sleep, error::Elapsed};

use super::tokio::Classic;
use crate::rival::Awaited;

pub struct Alternative;

/// The calls are those of the classic timers. The runtime decides.
impl Awaited for Alternative {
    const NAME: &'static str = "tokio, alternative";
    const ON_ONE_THREAD: bool = false;
    type Sleep = Sleep;
    type Elapsed = Elapsed;

    fn configure(builder: &mut Builder) {
        builder.enable_alt_timer();
    }

    fn sleep(delay: Duration) -> Sleep {
        Classic::sleep(delay)
    }

    fn sleep_until(deadline: Instant) -> Sleep {
        Classic::sleep_until(deadline)
    }

    fn reset(sleep: Pin<&mut Sleep>, delay: Duration) {
        Classic::reset(sleep, delay);
    }

    fn reset_at(sleep: Pin<&mut Sleep>, deadline: Instant) {
        Classic::reset_at(sleep, deadline);
    }

    fn timeout<F>(
        limit: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + Send
    where
        F: Future<Output: Send> + Send,
    {
        Classic::timeout(limit, future)
    }
}
