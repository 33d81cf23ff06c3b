//! A timer that comes back to the caller because it was refused.

use core::fmt;

use crate::timer::Timer;
use crate::timer::answer::Refusal;

/// A timer that was not accepted, with the reason. The refused call changed
/// nothing.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Refusal, Timer};
///
/// let engine = Engine::<&str>::builder().queues(1).start()?;
/// let timer = Timer::after(Duration::from_secs(1), "mine").queue(7);
/// let refused = engine.schedule(timer).unwrap_err();
/// assert_eq!(refused.reason(), Refusal::NoSuchQueue);
/// assert_eq!(refused.into_payload(), "mine");
/// # Ok::<(), tickwheel::StartError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Refused<T> {
    /// Boxed, because the result of `schedule` is then two words and comes back in
    /// registers.
    inner: Box<(Refusal, Timer<T>)>,
}

impl<T> Refused<T> {
    #[cold]
    pub(crate) fn new(reason: Refusal, timer: Timer<T>) -> Refused<T> {
        Refused {
            inner: Box::new((reason, timer)),
        }
    }

    /// Returns the reason why the timer was refused.
    #[must_use]
    pub fn reason(&self) -> Refusal {
        self.inner.0
    }

    /// Returns the timer as it was, to be changed and scheduled again.
    pub fn into_timer(self) -> Timer<T> {
        self.inner.1
    }

    /// Returns the payload of the refused timer. For a task, this is the closure.
    pub fn into_payload(self) -> T {
        self.into_timer().into_payload()
    }

    /// Turns the refusal of a task into a refusal of the closure that it was made from.
    #[cold]
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Refused<U> {
        let (reason, timer) = *self.inner;
        let mut timer = timer.map(f);
        timer.task = false;
        Refused::new(reason, timer)
    }
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("reason", &self.reason())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reason(), f)
    }
}

impl<T> std::error::Error for Refused<T> {}

/// Keeps the reason and drops the timer.
impl<T> From<Refused<T>> for Refusal {
    fn from(refused: Refused<T>) -> Refusal {
        refused.reason()
    }
}
