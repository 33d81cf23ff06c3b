//! pingora-timeout: a map per thread from instants to lists of wakers, and a thread that wakes
//! up every 10 ms. It takes no instants and can't move a sleep. Its sleep is a future without a
//! name, so it is in a box here; a time limit of its own is in two.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use pingora_timeout::sleep;

use crate::rival::{Awaited, Rival};

pub struct Sleeps;

impl Rival for Sleeps {
    const NAME: &'static str = "pingora-timeout";
    const LESS: &'static str = "a tick of 10 ms, at each of which it wakes up; fires before the \
        deadline";
}

impl Awaited for Sleeps {
    type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn sleep(delay: Duration) -> Self::Sleep {
        Box::pin(sleep(delay))
    }

    fn sleep_until(deadline: Instant) -> Self::Sleep {
        Box::pin(sleep(deadline.saturating_duration_since(Instant::now())))
    }

    fn reset(mut sleep: Pin<&mut Self::Sleep>, deadline: Instant) {
        sleep.set(Self::sleep_until(deadline));
    }
}
