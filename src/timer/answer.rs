//! The answer to a cancel.

/// The result of [`Engine::cancel`](crate::Engine::cancel).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cancel<T> {
    /// The timer was live and will not fire. This is its payload.
    Cancelled(T),
    /// The timer was live and will not fire. Its task runs once more and learns the
    /// outcome; the payload stays with the task. Returned only for
    /// [`notified`](crate::Timer::notified) timers.
    Notified,
    /// A worker has a firing of the timer at this moment. The timer will not fire
    /// again: it does not repeat, and [`Firing::rearm`](crate::Firing::rearm) and
    /// [`Expired::rearm`](crate::Expired::rearm) are refused from now on.
    Running,
    /// The timer has ended, or never existed.
    Gone,
}

impl<T> Cancel<T> {
    /// Returns the payload if this answer contains it.
    #[must_use]
    #[inline]
    pub fn into_payload(self) -> Option<T> {
        match self {
            Cancel::Cancelled(payload) => Some(payload),
            Cancel::Notified | Cancel::Running | Cancel::Gone => None,
        }
    }

    /// Returns whether the call ended a timer that was not running, no matter who has the
    /// payload.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Cancel, Engine, Firing, TaskEngine, Timer};
    ///
    /// let (timers, _clock) = TaskEngine::builder().start_virtual()?;
    /// let task = |firing: Firing| println!("{:?}", firing.outcome());
    /// let id = timers.run(Timer::after(Duration::from_secs(9), task).notified())?;
    /// let answer = Engine::cancel(&timers, id);
    /// assert!(matches!(answer, Cancel::Notified) && answer.is_cancelled());
    /// assert!(!Engine::cancel(&timers, id).is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Cancel::Cancelled(_) | Cancel::Notified)
    }

    /// Drops the payload from the answer.
    pub(crate) fn without_payload(self) -> Cancel<()> {
        match self {
            Cancel::Cancelled(_) | Cancel::Notified => Cancel::Cancelled(()),
            Cancel::Running => Cancel::Running,
            Cancel::Gone => Cancel::Gone,
        }
    }
}
