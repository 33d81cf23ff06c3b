//! A timer that comes back to the caller because it was refused.

use core::fmt;

use crate::timer::Timer;
use crate::timer::answer::Refusal;

/// A timer that was not accepted, with the reason; nothing has changed.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Refusal, Timer};
///
/// let engine = Engine::<&str>::builder().queues(1).start()?;
/// let timer = Timer::after(Duration::from_secs(1), "mine").queue(7);
/// let refused = engine.schedule(timer).unwrap_err();
/// assert_eq!(refused.reason(), Refusal::NoSuchQueue);
/// assert_eq!(refused.into_timer().into_payload(), "mine");
/// # Ok::<(), tickwheel::StartError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Refused<T> {
    /// In a box, because the answer to `schedule` is then two words, which
    /// come back in registers: it is faster by a third.
    inner: Box<(Refusal, Timer<T>)>,
}

impl<T> Refused<T> {
    #[cold]
    pub(crate) fn new(reason: Refusal, timer: Timer<T>) -> Refused<T> {
        Refused {
            inner: Box::new((reason, timer)),
        }
    }

    /// Why the timer was refused.
    #[must_use]
    pub fn reason(&self) -> Refusal {
        self.inner.0
    }

    /// The timer as it was, to be changed and tried again.
    pub fn into_timer(self) -> Timer<T> {
        self.inner.1
    }

    /// The refusal of what the payload of a task was made of.
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

/// For who wants to know why, and not to have the timer back.
impl<T> From<Refused<T>> for Refusal {
    fn from(refused: Refused<T>) -> Refusal {
        refused.reason()
    }
}
