//! The timer of hyper's servers and clients (feature `hyper`).

use core::pin::Pin;
use core::time::Duration;
use std::sync::OnceLock;
use std::time::Instant;

use hyper::rt;

use crate::engine::Engine;
use crate::time::handle::{Global, Handle};
use crate::time::sleep::Sleep;
use crate::time::timers::Timers;
use crate::timeline::Time;

impl<H: Handle + Send + Sync> rt::Sleep for Sleep<H> {}

impl rt::Timer for Global {
    fn sleep(&self, delay: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Sleep::after(Global, delay))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Sleep::until(Global, deadline))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep>() {
            Some(own) => own.get_mut().reset_at(deadline),
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

/// On timers that follow a virtual or boot-time clock, hyper's time is that clock's. The
/// instants that hyper receives are then good for nothing else.
impl rt::Timer for &'static Timers {
    fn sleep(&self, delay: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Timers::sleep(self, delay))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Timers::sleep_until(self, time_of(self, deadline)))
    }

    fn now(&self) -> Instant {
        let now = Engine::now(self);
        let instant = self.core().clock.instant_of(now);
        instant.unwrap_or_else(|| origin() + now.since(Time::START))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep<&'static Timers>>() {
            Some(own) => own.get_mut().reset_at(time_of(self, deadline)),
            None => *sleep = rt::Timer::sleep_until(self, deadline),
        }
    }
}

fn time_of(timers: &Timers, instant: Instant) -> Time {
    let time = timers.core().clock.time_of(instant);
    time.unwrap_or_else(|| Time::START + instant.saturating_duration_since(origin()))
}

/// Returns the instant that stands for the start of clocks that measure no instants.
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}
