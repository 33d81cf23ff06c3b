//! What a task is told.

use std::fmt;
use std::time::Duration;

use crate::clock::Clock;
use crate::id::TimerId;
use crate::queue::Expired;
use crate::shard;
use crate::tick::Tick;
use crate::time::Time;
use crate::timer::{CloseReason, Timer};

/// What a task is told about the firing that it is run for.
#[derive(Clone)]
pub struct Firing {
    firing: shard::Firing,
    clock: Clock,
}

impl Firing {
    pub(super) fn of<T>(expired: &Expired<T>) -> Firing {
        Firing {
            firing: expired.firing().clone(),
            clock: expired.clock().clone(),
        }
    }

    /// The timer, for instance to cancel it from inside.
    #[must_use]
    pub fn id(&self) -> TimerId {
        self.firing.id
    }

    /// Which due tick of the timer this is, counted from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.firing.number
    }

    /// The tick at which this firing was due.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.firing.tick
    }

    /// When this firing was due.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.firing.deadline
    }

    /// How long after its deadline this is, at the moment of the call; see
    /// [`Expired::lateness`]. For a task that is told of another ending before
    /// its deadline, zero.
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
        self.clock.now() - self.firing.requested
    }

    /// Why the task is run: [`CloseReason::Completed`] because its time has
    /// come; or, for a timer that asked to be [`notified`](Timer::notified),
    /// because it was cancelled or shut down.
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

impl<F: FnMut(&Firing) + Send + 'static> Timer<F> {
    /// Asks that the closure is run on a worker when the timer is cancelled or
    /// shut down, too, with [`Firing::outcome`] saying so: a one-shot's
    /// closure then runs exactly once, whatever happens to it. It is never run
    /// inline in `cancel`. Meant for
    /// [`TaskEngine::run`](crate::TaskEngine::run).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{CloseReason, Firing, TaskEngine, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let task = move |firing: &Firing| tell.send(firing.outcome()).unwrap();
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
