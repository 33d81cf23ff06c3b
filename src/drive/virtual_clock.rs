//! A clock that stands still until it is told to move: for tests and
//! simulations, with any number of threads.

use std::time::Duration;

#[cfg(any(loom, shuttle))]
use crate::drive::driver::Driver;
use crate::shared::SharedCore;
use crate::sync::Arc;
use crate::time::Time;

/// How often [`VirtualClock::run_until`] serves what was added, before it goes on
/// to the next tick.
const PASSES_AT_A_TIME: usize = 1_000;

/// The clock of an engine that was started with
/// [`Builder::start_virtual`](crate::Builder::start_virtual).
///
/// It drives the very engine that runs in production, only without the ticker
/// thread: moving the clock moves what comes due into its queues, and any
/// number of worker threads may wait there.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Timer};
///
/// let (engine, clock) = Engine::builder().start_virtual()?;
/// engine.schedule(Timer::after(Duration::from_secs(3_600), "an hour later"))?;
/// clock.advance(Duration::from_secs(3_599));
/// assert_eq!(engine.queue(0).len(), 0);
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(engine.queue(0).recv()?.into_payload(), "an hour later");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Nobody looks for due timers between two moves of the clock. A timer that is
/// due at once, by a delay of zero or a time that has passed, is in its queue
/// after the next move, which may be one by nothing:
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Timer};
///
/// let (engine, clock) = Engine::builder().start_virtual()?;
/// engine.schedule(Timer::after(Duration::ZERO, "at once"))?;
/// assert_eq!(engine.queue(0).len(), 0);
/// clock.advance(Duration::ZERO);
/// assert_eq!(engine.queue(0).recv()?.into_payload(), "at once");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct VirtualClock<T> {
    core: Arc<SharedCore<T>>,
}

impl<T> VirtualClock<T> {
    pub(crate) fn new(core: Arc<SharedCore<T>>) -> VirtualClock<T> {
        VirtualClock { core }
    }

    /// What the clock says.
    #[must_use]
    pub fn now(&self) -> Time {
        self.core.clock.now()
    }

    /// Moves the clock forward and returns when everything that is due is in
    /// its queue. The cost follows what is due, not how far the jump goes.
    ///
    /// A repeating timer's later firings become due one after the other, as
    /// its earlier ones are done: see [`MissedTicks`](crate::MissedTicks).
    ///
    /// It returns, too, where other threads file into the past all the while:
    /// everything is in its queue that was due when this was called, and of what
    /// they filed since, perhaps a part.
    pub fn advance(&self, by: Duration) {
        self.advance_to(self.now() + by);
    }

    /// As [`advance`](VirtualClock::advance), to an absolute time; one that
    /// has passed changes nothing.
    pub fn advance_to(&self, time: Time) {
        self.core.advance_to(time);
    }

    /// For models: moves the clock as time itself would, and wakes the ticker
    /// if it sleeps until then. What is due is left to it.
    #[cfg(any(loom, shuttle))]
    #[doc(hidden)]
    pub fn pass_to(&self, time: Time) {
        self.core.clock.set(time);
        self.core.alarm.time_passed();
    }

    /// For models: what drives an engine that has no ticker thread.
    #[cfg(any(loom, shuttle))]
    #[doc(hidden)]
    #[must_use]
    pub fn driver(&self) -> Driver<T> {
        Driver::new(Arc::clone(&self.core))
    }

    /// Moves the clock to `time` from one due tick to the next, waiting each
    /// time until the workers are idle: until every queue that has workers is
    /// empty and each of them is back in `recv`.
    ///
    /// A worker is a [`Queue`](crate::Queue) handle that has waited in `recv`
    /// (or `recv_timeout`) before, and each thread of a
    /// [`TaskEngine`](crate::TaskEngine). What tasks schedule on the way is
    /// served on the way, what they schedule with no delay at the same tick. Do
    /// not call it from a task.
    ///
    /// Time does not stand still for ever: where each task adds another one with
    /// no delay, a thousand of them run one after the other at one tick, and the
    /// next one at the next tick at which anything is due, or at the end.
    pub fn run_until(&self, time: Time) {
        self.serve(self.now());
        let last = self.core.tick.tick_at(time);
        loop {
            let next = self.core.next_due_after(self.core.tick_now());
            if next > last {
                break;
            }
            self.serve(self.core.tick.start_of(next));
        }
        self.serve(time);
    }

    /// Moves the clock to `time`, and serves what is due there and what tasks add
    /// to that.
    fn serve(&self, time: Time) {
        for _ in 0..PASSES_AT_A_TIME {
            self.advance_to(time);
            self.core.wait_until_idle();
            if self.core.next_due() > self.core.tick_now() {
                break;
            }
        }
    }
}
