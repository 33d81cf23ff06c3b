//! async-io: an ordered map behind a lock, and a thread that sleeps.

use std::pin::Pin;
use std::time::{Duration, Instant};

use async_io::Timer;

use crate::rival::{Awaited, Rival};

pub struct Timers;

impl Rival for Timers {
    const NAME: &'static str = "async-io";
}

impl Awaited for Timers {
    type Sleep = Timer;

    fn sleep(delay: Duration) -> Timer {
        Timer::after(delay)
    }

    fn sleep_until(deadline: Instant) -> Timer {
        Timer::at(deadline)
    }

    fn reset(sleep: Pin<&mut Timer>, deadline: Instant) {
        sleep.get_mut().set_at(deadline);
    }
}
