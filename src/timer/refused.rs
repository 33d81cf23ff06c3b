//! What comes back to the caller because it was refused.

use core::fmt;
// Not the one of `crate::sync`, because nobody waits for it.
use std::sync::{Mutex, PoisonError};

use crate::timer::{Refusal, Timer};

/// A timer, payload or firing that was not accepted, and comes back with the reason. The
/// refused call changed nothing.
///
/// Whatever the payload is, `?` turns this into a `Box<dyn Error + Send + Sync>`: what
/// comes back is taken out by value, so it need not be [`Sync`].
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Refusal, Timer};
///
/// let engine = Engine::<&str>::builder().queues(1).start()?;
/// let timer = Timer::after(Duration::from_secs(1), "mine").queue(7);
/// let refused = engine.schedule(timer).unwrap_err();
/// assert_eq!(refused.reason(), Refusal::NoSuchQueue);
/// engine.schedule(refused.into_inner().queue(0))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Refused<R> {
    /// Boxed, because the result of `schedule` is then two words and comes back in
    /// registers. The mutex is never locked: it makes the error `Sync`.
    inner: Box<(Refusal, Mutex<R>)>,
}

impl<R> Refused<R> {
    #[cold]
    pub(crate) fn new(reason: Refusal, returned: R) -> Refused<R> {
        Refused {
            inner: Box::new((reason, Mutex::new(returned))),
        }
    }

    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> Refusal {
        self.inner.0
    }

    /// Returns what was given to the call: a timer as it was, to be changed and scheduled
    /// again, or a payload, or a firing.
    pub fn into_inner(self) -> R {
        let returned = self.inner.1.into_inner();
        returned.unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Refused<Timer<T>> {
    /// Returns the payload of the refused timer. For a task, this is the closure.
    pub fn into_payload(self) -> T {
        self.into_inner().into_payload()
    }

    /// Turns the refusal of a task into a refusal of the closure that it was made from.
    #[cold]
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Refused<Timer<U>> {
        let reason = self.reason();
        let mut timer = self.into_inner().map(f);
        timer.task = false;
        Refused::new(reason, timer)
    }
}

impl<R> fmt::Debug for Refused<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("reason", &self.reason())
            .finish_non_exhaustive()
    }
}

impl<R> fmt::Display for Refused<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reason(), f)
    }
}

impl<R> std::error::Error for Refused<R> {}

/// Keeps the reason and drops what came back.
impl<R> From<Refused<R>> for Refusal {
    fn from(refused: Refused<R>) -> Refusal {
        refused.reason()
    }
}
