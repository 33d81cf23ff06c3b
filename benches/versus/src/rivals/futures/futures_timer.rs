//! futures-timer: a heap behind a lock, and a thread that sleeps. It takes no
//! instants. A delay enters the heap when it is made, not when it is polled.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_timer::Delay;

use super::race::{Late, race};
use crate::rival::Awaited;

pub struct Delays;

fn from_now(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

impl Awaited for Delays {
    const NAME: &'static str = "futures-timer";
    const TAKES_INSTANTS: bool = false;
    const TICK: Duration = Duration::ZERO;
    type Sleep = Delay;
    type Elapsed = Late;

    fn sleep(delay: Duration) -> Delay {
        Delay::new(delay)
    }

    fn sleep_until(deadline: Instant) -> Delay {
        Delay::new(from_now(deadline))
    }

    fn reset(sleep: Pin<&mut Delay>, delay: Duration) {
        sleep.get_mut().reset(delay);
    }

    fn reset_at(sleep: Pin<&mut Delay>, deadline: Instant) {
        sleep.get_mut().reset(from_now(deadline));
    }

    fn timeout<F>(
        limit: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Late>> + Send
    where
        F: Future<Output: Send> + Send,
    {
        race(future, Delay::new(limit))
    }
}
