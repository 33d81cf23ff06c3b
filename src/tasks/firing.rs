//! What a task's closure can learn from its firing, and do with it.

use std::fmt;
use std::time::Duration;

use crate::id::TimerId;
use crate::tasks::task::Firing;
use crate::tick::Tick;
use crate::time::Time;
use crate::timer::{CloseReason, Timer};

impl Firing {
    /// Returns the timer's id, for instance to cancel it from within the task.
    #[must_use]
    pub fn id(&self) -> TimerId {
        self.firing.id
    }

    /// Returns the number of this due tick in the timer's series, counted from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.firing.number
    }

    /// Returns the tick at which this firing was due.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.firing.tick
    }

    /// Returns the time at which this firing was due.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Returns the time that has passed since the deadline; see
    /// [`Expired::lateness`]. Returns zero if the task runs early because
    /// its timer was cancelled or shut down.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::TaskEngine;
    ///
    /// let timers = TaskEngine::builder().start()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let beat = timers.run_every(Duration::from_millis(5), move |firing| {
    ///     // Too late for this one to be of use? Then wait for the next.
    ///     if firing.lateness() < Duration::from_secs(60) {
    ///         let _ = tell.send(firing.number());
    ///     }
    /// })?;
    /// assert_eq!(told.recv()?, 1);
    /// # let _ = timers.cancel(beat);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn lateness(&self) -> Duration {
        self.core.clock.now() - self.firing.requested
    }

    /// Returns the reason for the run: [`CloseReason::Completed`] at the
    /// deadline. A [`notified`](Timer::notified) task also runs when its
    /// timer is cancelled or shut down.
    #[must_use]
    pub fn outcome(&self) -> CloseReason {
        self.firing.outcome
    }
}

impl fmt::Debug for Firing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Firing")
            .field("id", &self.firing.id)
            .field("number", &self.firing.number)
            .field("tick", &self.firing.tick)
            .field("outcome", &self.firing.outcome)
            .finish_non_exhaustive()
    }
}

impl<F: FnMut(Firing) + Send + 'static> Timer<F> {
    /// Makes a worker run the closure also when the timer is cancelled or
    /// shut down; [`Firing::outcome`] then says which. A one-shot's closure thus
    /// runs exactly once. It never runs inline in `cancel`. Meant for
    /// [`TaskEngine::run`](crate::TaskEngine::run).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{CloseReason, Firing, TaskEngine, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let task = move |firing: Firing| tell.send(firing.outcome()).unwrap();
    /// let id = timers.run(Timer::after(Duration::from_secs(9), task).notified())?;
    /// timers.cancel(id).payload().unwrap();
    /// assert_eq!(told.recv()?, CloseReason::Cancelled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn notified(mut self) -> Timer<F> {
        self.notified = true;
        self
    }
}
