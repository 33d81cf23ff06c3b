//! tickwheel's awaited timers, driven by tokio's runtime through their descriptor,
//! without a thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::Waker;
use std::time::{Duration, Instant};

use tickwheel::Driver;
use tickwheel::time::{Elapsed, Sleep, Timers};
use tickwheel::wheel::Advance;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Runtime;

use crate::rival::Awaited;

/// Timers with a tick of this many microseconds.
pub struct Driven<const MICROS: u64 = 1_000>;

static TIMERS: OnceLock<&'static Timers> = OnceLock::new();

/// The most entries of one turn of the task that drives. With a thousand, the calls of
/// the reactor between two turns cost more than the wake-ups.
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

impl<const MICROS: u64> Awaited for Driven<MICROS> {
    const NAME: &'static str = "tickwheel sleep, driven";
    const TICK: Duration = Duration::from_micros(MICROS);
    type Sleep = Sleep<&'static Timers>;
    type Elapsed = Elapsed;

    fn start(runtime: &Runtime) {
        let (timers, driver) = Timers::builder()
            .tick(Self::TICK)
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

    fn reset(sleep: Pin<&mut Self::Sleep>, delay: Duration) {
        sleep.get_mut().reset(delay);
    }

    fn reset_at(sleep: Pin<&mut Self::Sleep>, deadline: Instant) {
        sleep.get_mut().reset(deadline);
    }

    fn timeout<F>(
        limit: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + Send
    where
        F: Future<Output: Send> + Send,
    {
        timers().timeout(limit, future)
    }
}
