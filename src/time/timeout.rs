//! A future that gives up another one after a limit.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use std::time::Duration;

use crate::time::Timers;
use crate::time::handle::{Global, Handle};
use crate::time::sleep::{Ended, Sleep};
use crate::timeline::PointInTime;

/// Requires a future to complete within a limit.
///
/// Returns the output of `future`, or [`Elapsed`] if the limit has passed first. The
/// limit counts from the first poll that does not find `future` ready. A future that is
/// ready at once therefore costs nothing, not even a reading of the clock. For a limit
/// that counts from elsewhere, use [`timeout_at`].
///
/// `future` is polled before the limit is checked: an output that is there is returned,
/// however late.
///
/// ```
/// # use std::task::{Context, Poll, Waker};
/// # use std::pin::pin;
/// use std::time::Duration;
/// use tickwheel::time::timeout;
///
/// let answer = timeout(Duration::from_secs(30), async { 42 });
/// # let mut answer = pin!(answer);
/// # let answer = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
/// # let Poll::Ready(answer) = answer else { unreachable!() };
/// assert_eq!(answer, Ok(42));
/// ```
#[inline]
pub fn timeout<F: IntoFuture>(limit: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout::new(future, Sleep::lazy(Global, limit))
}

/// Requires a future to complete before a deadline: an `Instant`, or a
/// [`Time`](crate::Time) of [`Global`]'s clock. See [`timeout`].
#[inline]
pub fn timeout_at<F: IntoFuture>(deadline: impl PointInTime, future: F) -> Timeout<F::IntoFuture> {
    Timeout::new(future, Sleep::until(Global, deadline))
}

impl Timers {
    /// Requires a future to complete within a limit; see
    /// [`timeout`](crate::time::timeout).
    #[inline]
    pub fn timeout<F: IntoFuture>(
        &self,
        limit: Duration,
        future: F,
    ) -> Timeout<F::IntoFuture, &Timers> {
        Timeout::new(future, Sleep::lazy(self, limit))
    }

    /// Requires a future to complete before a deadline; see
    /// [`timeout_at`](crate::time::timeout_at).
    ///
    /// # Panics
    /// Panics if `deadline` is an instant that the engine's clock does not measure.
    #[inline]
    pub fn timeout_at<F: IntoFuture>(
        &self,
        deadline: impl PointInTime,
        future: F,
    ) -> Timeout<F::IntoFuture, &Timers> {
        Timeout::new(future, Sleep::until(self, deadline))
    }
}

/// The future of [`timeout`] and [`timeout_at`], and of the calls of
/// [`Timers`](crate::time::Timers) with these names.
///
/// Registers a timer when the inner future is first found not ready. Dropping the
/// `Timeout` frees the timer at once.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Timeout<F, H: Handle = Global> {
    future: F,
    sleep: Sleep<H>,
}

/// The error of a [`Timeout`] whose limit has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elapsed {
    shut_down: bool,
}

impl Elapsed {
    /// Returns whether the wait ended early, because its engine was
    /// [shut down](crate::time::Timers::shutdown).
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.shut_down
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.shut_down {
            "the timers were shut down before the deadline"
        } else {
            "deadline has elapsed"
        })
    }
}

impl std::error::Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, elapsed)
    }
}

impl<F: Future, H: Handle> Timeout<F, H> {
    #[inline]
    pub(super) fn new(future: impl IntoFuture<IntoFuture = F>, sleep: Sleep<H>) -> Timeout<F, H> {
        Timeout { future: future.into_future(), sleep }
    }
}

impl<F, H: Handle> Timeout<F, H> {
    /// Returns the inner future.
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// Returns the inner future.
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// Drops the limit and returns the inner future.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F> Timeout<F, &Timers> {
    /// Returns the same future with a handle of its own, which a spawned task needs; see
    /// [`Sleep::into_owned`].
    pub fn into_owned(self) -> Timeout<F, Timers> {
        Timeout { future: self.future, sleep: self.sleep.into_owned() }
    }
}

impl<F: Future, H: Handle> Future for Timeout<F, H> {
    type Output = Result<F::Output, Elapsed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing moves out of `this`. `future` is pinned along with the
        // `Timeout`, which is `Unpin` only if `future` is, and which has no `Drop` of its
        // own that could move it. `sleep` is `Unpin`.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        if let Poll::Ready(output) = future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        this.sleep.poll_ended(cx).map(|ended| {
            let shut_down = ended != Ended::Elapsed;
            Err(Elapsed { shut_down })
        })
    }
}
