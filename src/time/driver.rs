//! Driving awaited timers from the caller's own loop or runtime.

use core::fmt;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::task::Waker;
use std::time::Duration;

use crate::drive::Driver;
use crate::time::wake::wake;
use crate::timeline::Time;
use crate::wheel::Advance;

/// Drives [`Timers`](crate::time::Timers) that were started with
/// [`TimersBuilder::start_driven`](crate::time::TimersBuilder::start_driven).
///
/// On Linux it is a descriptor (`AsFd`) for epoll, mio, or a runtime's own reactor. It
/// becomes readable when a timer is due. A runtime that waits for it saves a thread and a
/// switch of threads for each wake-up.
///
/// ```
/// use std::future::Future;
/// use std::pin::pin;
/// use std::task::{Context, Waker};
/// use std::time::Duration;
/// use tickwheel::time::Timers;
///
/// let (timers, driver) = Timers::builder().start_driven()?;
/// let mut sleep = pin!(timers.sleep(Duration::from_millis(2)));
/// let mut cx = Context::from_waker(Waker::noop());
/// while sleep.as_mut().poll(&mut cx).is_pending() {
///     std::thread::sleep(driver.timeout().unwrap_or_default());
///     let _ = driver.wake_due(1_000);
/// }
/// # Ok::<(), tickwheel::StartError>(())
/// ```
pub struct TimersDriver {
    driver: Driver<Waker>,
}

impl TimersDriver {
    pub(super) fn new(driver: Driver<Waker>) -> TimersDriver {
        TimersDriver { driver }
    }

    /// Wakes the tasks whose timers are due, touching at most `budget` entries, and arms
    /// the descriptor for the next deadline. Never blocks, unless a waker does.
    ///
    /// Returns [`Advance::More`] if the budget did not suffice; the descriptor then stays
    /// readable. Returns [`Advance::ShutDown`] if the engine was shut down.
    ///
    /// A call from within a waker that this call runs does nothing, because the outer
    /// call goes on.
    pub fn wake_due(&self, budget: usize) -> Advance {
        let Some(_in_loop) = self.driver.enter_loop() else {
            return self.driver.done();
        };
        let mut budget = budget;
        match self.driver.take_due(&mut budget, &mut wake) {
            true => self.driver.done(),
            false => Advance::More,
        }
    }

    /// Returns the time at which the engine next has work; see [`Driver::next_wakeup`].
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Time> {
        self.driver.next_wakeup()
    }

    /// Returns the time left until then, for which a loop may sleep; see
    /// [`Driver::timeout`].
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.driver.timeout()
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl AsFd for TimersDriver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.driver.as_fd()
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl AsRawFd for TimersDriver {
    fn as_raw_fd(&self) -> RawFd {
        self.driver.as_raw_fd()
    }
}

impl fmt::Debug for TimersDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimersDriver")
            .field("driver", &self.driver)
            .finish()
    }
}
