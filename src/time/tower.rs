//! A limit on every call of a tower service (feature `tower`).
//!
//! tower's own layer sleeps on tokio's timers and boxes its errors. This one runs on any
//! executor, and its error is an enum.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use tower_layer::Layer;
use tower_service::Service;

use crate::time::handle::{Global, Handle};
use crate::time::sleep::Sleep;
use crate::time::timeout::{Elapsed, Timeout as Limited};

/// Puts a [`Timeout`] around services.
///
/// The limit of a call runs from the first poll that finds its response not ready. A
/// call that is ready at once costs nothing; see [`timeout`](crate::time::timeout).
///
/// ```
/// use std::time::Duration;
/// use tickwheel::time::tower::{Timeout, TimeoutLayer};
/// use tower_layer::Layer;
///
/// # struct Backend;
/// let layer = TimeoutLayer::new(Duration::from_secs(30));
/// let service: Timeout<Backend> = layer.layer(Backend);
/// ```
///
/// With tower: `ServiceBuilder::new().layer(TimeoutLayer::new(limit)).service(backend)`.
#[derive(Clone, Copy, Debug)]
pub struct TimeoutLayer<H = Global> {
    limit: Duration,
    timers: H,
}

impl TimeoutLayer {
    /// Limits each call to `limit`, on the process-wide timers.
    #[must_use]
    pub const fn new(limit: Duration) -> TimeoutLayer {
        TimeoutLayer::on(Global, limit)
    }
}

impl<H> TimeoutLayer<H> {
    /// Limits each call to `limit`, on `timers`: a `&'static Timers` or a `Timers`.
    #[must_use]
    pub const fn on(timers: H, limit: Duration) -> TimeoutLayer<H> {
        TimeoutLayer { limit, timers }
    }
}

impl<S, H: Clone> Layer<S> for TimeoutLayer<H> {
    type Service = Timeout<S, H>;

    fn layer(&self, service: S) -> Timeout<S, H> {
        Timeout { service, limit: self.limit, timers: self.timers.clone() }
    }
}

/// A service whose calls end with [`TimeoutError::Elapsed`] when they exceed a limit.
///
/// The call's future is dropped with the response future, as tower does. The time
/// until the service is ready does not count.
#[derive(Clone, Copy, Debug)]
pub struct Timeout<S, H = Global> {
    service: S,
    limit: Duration,
    timers: H,
}

impl<S> Timeout<S> {
    /// Limits each call of `service` to `limit`, on the process-wide timers.
    #[must_use]
    pub const fn new(service: S, limit: Duration) -> Timeout<S> {
        Timeout { service, limit, timers: Global }
    }
}

impl<S: Service<R>, R, H: Handle + Clone> Service<R> for Timeout<S, H> {
    type Response = S::Response;
    type Error = TimeoutError<S::Error>;
    type Future = ResponseFuture<S::Future, H>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let ready = self.service.poll_ready(context);
        ready.map_err(TimeoutError::Service)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let call = self.service.call(request);
        let limited = Limited::new(call, Sleep::lazy(self.timers.clone(), self.limit));
        ResponseFuture { limited }
    }
}

/// The response of a [`Timeout`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct ResponseFuture<F, H: Handle = Global> {
    limited: Limited<F, H>,
}

impl<F, R, E, H: Handle> Future for ResponseFuture<F, H>
where
    F: Future<Output = Result<R, E>>,
{
    type Output = Result<R, TimeoutError<E>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the only field is pinned whenever the struct is. The struct has no
        // destructor, is not packed, and moves the field nowhere.
        let limited = unsafe { self.map_unchecked_mut(|this| &mut this.limited) };
        limited.poll(context).map(|answer| match answer {
            Ok(response) => response.map_err(TimeoutError::Service),
            Err(elapsed) => Err(TimeoutError::Elapsed(elapsed)),
        })
    }
}

/// The reason why a call through a [`Timeout`] failed.
///
/// ```
/// use tickwheel::time::tower::TimeoutError;
///
/// fn status<E>(failed: &TimeoutError<E>) -> u16 {
///     match failed {
///         TimeoutError::Elapsed(_) => 504,
///         TimeoutError::Service(_) => 502,
///     }
/// }
/// # assert_eq!(status(&TimeoutError::Service("no route")), 502);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeoutError<E> {
    /// The call exceeded its limit, or the timers were
    /// [shut down](Elapsed::is_shut_down).
    Elapsed(Elapsed),
    /// The service itself failed.
    Service(E),
}

impl<E> TimeoutError<E> {
    /// Returns whether the call was given up, and the service did not fail.
    #[must_use]
    pub const fn is_elapsed(&self) -> bool {
        matches!(self, TimeoutError::Elapsed(_))
    }
}

impl<E: fmt::Display> fmt::Display for TimeoutError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeoutError::Elapsed(elapsed) => elapsed.fmt(f),
            TimeoutError::Service(error) => error.fmt(f),
        }
    }
}

/// Has no `source`, because many services have boxed errors, which are no `Error`
/// themselves. The message is that of the variant.
impl<E: fmt::Debug + fmt::Display> std::error::Error for TimeoutError<E> {}
