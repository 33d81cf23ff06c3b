//! Scheduling a timer whose payload contains its own id.

use crate::engine::Engine;
use crate::id::TimerId;
use crate::timer::{Refused, Timer};

impl<T> Engine<T> {
    /// Schedules a timer whose payload is made from its id, so that the payload
    /// can contain the id. The timer cannot fire before the payload is made. A
    /// delay counts from the end of the closure.
    ///
    /// The closure runs once, in the calling thread, and may use the engine.
    /// While it runs, the timer counts as live and running: it already has its
    /// id and its name, and [`cancel`](Engine::cancel) returns
    /// [`Cancel::Running`](crate::Cancel::Running). A timer that was cancelled
    /// or shut down meanwhile ends when the closure returns. Its payload then
    /// goes to its report, or is dropped if no report was requested. If the
    /// closure panics, the timer ends as failed, and the panic continues.
    ///
    /// # Errors
    /// Fails as [`schedule`](Engine::schedule) does. The closure has not been
    /// called, and is returned with the timer.
    ///
    /// # Cost
    /// Takes the shard's lock twice, and keeps a record for as long as the timer
    /// lives, as a named timer does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer, TimerId};
    ///
    /// struct Session {
    ///     expiry: TimerId,
    ///     user: &'static str,
    /// }
    ///
    /// let engine = Engine::builder().start()?;
    /// let timer = Timer::after(Duration::from_secs(30), |expiry| Session { expiry, user: "ann" });
    /// let id = engine.schedule_with(timer)?;
    /// let session = engine.cancel(id).into_payload().unwrap();
    /// assert_eq!((session.expiry, session.user), (id, "ann"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule_with<F>(&self, timer: Timer<F>) -> Result<TimerId, Refused<Timer<F>>>
    where
        F: FnOnce(TimerId) -> T,
    {
        self.core.schedule_with(timer)
    }
}
