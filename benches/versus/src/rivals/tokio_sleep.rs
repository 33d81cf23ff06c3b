//! tokio's timers in its own tasks.

use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::time::{self, Sleep};

use crate::rival::{Awaited, Rival};

pub struct Sleeps;

impl Rival for Sleeps {
    const NAME: &'static str = "tokio";
    const LESS: &'static str = "no order among equal deadlines";
}

impl Awaited for Sleeps {
    type Sleep = Sleep;

    fn sleep(delay: Duration) -> Sleep {
        time::sleep(delay)
    }

    fn sleep_until(deadline: Instant) -> Sleep {
        time::sleep_until(deadline.into())
    }

    fn reset(sleep: Pin<&mut Sleep>, deadline: Instant) {
        sleep.reset(deadline.into());
    }
}
