//! The calls that read or change a live task, as those of its engine do.

use crate::id::TimerId;
use crate::tasks::TaskEngine;
use crate::timeline::{Time, When};
use crate::timer::{LiveTimer, Refusal};

impl TaskEngine {
    /// Moves a live task to another deadline; see
    /// [`Engine::reschedule`](crate::Engine::reschedule).
    ///
    /// # Errors
    /// Fails as [`Engine::reschedule`](crate::Engine::reschedule) does. A running task
    /// re-arms itself with [`Firing::rearm`](crate::Firing::rearm).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::TaskEngine;
    ///
    /// // A lease that each heartbeat renews.
    /// let second = Duration::from_secs(1);
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let lease = timers.run_after(30 * second, || println!("lost"))?;
    /// clock.run_until(timers.now() + 20 * second);
    /// timers.reschedule(lease, 30 * second)?;
    /// assert_eq!(timers.deadline(lease), Some(timers.now() + 30 * second));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn reschedule(&self, id: TimerId, when: impl Into<When>) -> Result<(), Refusal> {
        self.engine().reschedule(id, when)
    }

    /// Pauses a task; see [`Engine::pause`](crate::Engine::pause).
    ///
    /// # Errors
    /// Fails as [`Engine::pause`](crate::Engine::pause) does.
    pub fn pause(&self, id: TimerId) -> Result<(), Refusal> {
        self.engine().pause(id)
    }

    /// Resumes a paused task; see [`Engine::resume`](crate::Engine::resume).
    ///
    /// # Errors
    /// Fails as [`Engine::resume`](crate::Engine::resume) does.
    pub fn resume(&self, id: TimerId) -> Result<(), Refusal> {
        self.engine().resume(id)
    }

    /// Returns a live task's deadline; see [`Engine::deadline`](crate::Engine::deadline).
    #[must_use]
    pub fn deadline(&self, id: TimerId) -> Option<Time> {
        self.engine().deadline(id)
    }

    /// Returns a live task, paused or not; see [`Engine::find`](crate::Engine::find).
    #[must_use]
    pub fn find(&self, id: TimerId) -> Option<LiveTimer> {
        self.engine().find(id)
    }
}
