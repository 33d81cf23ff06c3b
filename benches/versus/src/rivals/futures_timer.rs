//! futures-timer: a heap behind a lock, and a thread that sleeps. It takes no instants. A
//! delay enters the heap when it is made, not when it is polled.

use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_timer::Delay;

use crate::rival::{Awaited, Rival};

pub struct Delays;

fn from_now(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

impl Rival for Delays {
    const NAME: &'static str = "futures-timer";
    const LESS: &'static str = "no order among equal deadlines";
}

impl Awaited for Delays {
    type Sleep = Delay;

    fn sleep(delay: Duration) -> Delay {
        Delay::new(delay)
    }

    fn sleep_until(deadline: Instant) -> Delay {
        Delay::new(from_now(deadline))
    }

    fn reset(sleep: Pin<&mut Delay>, deadline: Instant) {
        sleep.get_mut().reset(from_now(deadline));
    }
}
