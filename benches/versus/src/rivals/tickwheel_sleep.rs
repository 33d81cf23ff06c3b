//! tickwheel's awaited timers: on the process-wide engine, which has a thread of its own, and
//! driven by tokio's runtime through their descriptor, without a thread.

use std::pin::Pin;
use std::sync::OnceLock;
use std::task::Waker;
use std::time::{Duration, Instant};

use tickwheel::Driver;
use tickwheel::time::{self, Sleep, Timers};
use tickwheel::wheel::Advance;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Runtime;

use crate::rival::{Awaited, Rival};

pub struct Global;

impl Rival for Global {
    const NAME: &'static str = "tickwheel";
}

impl Awaited for Global {
    type Sleep = Sleep;

    fn sleep(delay: Duration) -> Sleep {
        time::sleep(delay)
    }

    fn sleep_until(deadline: Instant) -> Sleep {
        time::sleep_until(deadline)
    }

    fn reset(sleep: Pin<&mut Sleep>, deadline: Instant) {
        sleep.get_mut().reset(deadline);
    }
}

/// Timers with a tick of this many microseconds.
pub struct Driven<const MICROS: u64 = 1_000>;

static TIMERS: OnceLock<&'static Timers> = OnceLock::new();

/// The most entries of one turn of the task that drives. With a thousand, the calls of the
/// reactor between two turns cost more than the wake-ups.
const BUDGET: usize = 10_000;

fn timers() -> &'static Timers {
    TIMERS.get().expect("the runtime has started them")
}

/// Wakes due tasks until the timers are shut down.
async fn drive(driver: Driver<Waker>) {
    // SAFETY: a driver has one descriptor, which stays open until it is dropped.
    let registered = unsafe { AsyncFd::register_with_interest(driver, Interest::READABLE) };
    let driver = registered.expect("the runtime has a reactor");
    loop {
        let mut readable = driver.readable().await.expect("the runtime lives");
        match driver.get_ref().process_due(BUDGET) {
            // The descriptor stays readable.
            Advance::More => tokio::task::yield_now().await,
            Advance::ShutDown => return,
            _ => readable.clear_ready(),
        }
    }
}

impl<const MICROS: u64> Rival for Driven<MICROS> {
    const NAME: &'static str = match MICROS {
        1_000 => "tickwheel, driven by the runtime",
        _ => "tickwheel, driven, tick of 1 µs",
    };
}

impl<const MICROS: u64> Awaited for Driven<MICROS> {
    type Sleep = Sleep<&'static Timers>;

    fn start(runtime: &Runtime) {
        let (timers, driver) = Timers::builder()
            .tick(Duration::from_micros(MICROS))
            .start_driven()
            .expect("the system has a descriptor");
        TIMERS.get_or_init(|| timers.leak());
        runtime.spawn(drive(driver));
    }

    fn sleep(delay: Duration) -> Self::Sleep {
        timers().sleep(delay)
    }

    fn sleep_until(deadline: Instant) -> Self::Sleep {
        timers().sleep_until(deadline)
    }

    fn reset(sleep: Pin<&mut Self::Sleep>, deadline: Instant) {
        sleep.get_mut().reset(deadline);
    }
}
