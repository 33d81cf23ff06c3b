//! Awaiting a queue, or the reports, from async tasks.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};

use crate::engine::{WaitError, Waits};
use crate::queue::{Expired, Place, Queue, RecvError, Reports};
use crate::timer::Closed;

/// What can be awaited: a [`Queue`] or [`Reports`].
pub trait Receiver {
    /// An expired timer, or a report.
    type Received;

    #[doc(hidden)]
    fn poll_receive(
        &mut self,
        waits: &mut Waiting,
        waker: &Waker,
    ) -> Poll<Result<Self::Received, RecvError>>;

    #[doc(hidden)]
    fn leave(&self, waits: &mut Waiting);
}

/// The places of a task among those that wait.
#[derive(Debug)]
pub struct Waiting(pub(super) Waits);

/// Future of the next expired timer or report; from [`Queue::recv_async`] and
/// [`Reports::recv_async`]. Its output is a `Result<Expired<T>, RecvError>` or a
/// `Result<Closed<T>, RecvError>`.
///
/// It takes nothing before it is ready, so dropping it loses nothing.
#[must_use = "a future takes nothing unless it is awaited"]
pub struct RecvFuture<'a, R: Receiver> {
    receiver: &'a mut R,
    waits: Waiting,
}

impl<'a, R: Receiver> RecvFuture<'a, R> {
    fn new(receiver: &'a mut R) -> RecvFuture<'a, R> {
        let waits = Waiting(Waits::default());
        RecvFuture { receiver, waits }
    }
}

impl<R: Receiver> Future for RecvFuture<'_, R> {
    type Output = Result<R::Received, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let waker = context.waker();
        this.receiver.poll_receive(&mut this.waits, waker)
    }
}

impl<R: Receiver> Drop for RecvFuture<'_, R> {
    fn drop(&mut self) {
        self.receiver.leave(&mut self.waits);
    }
}

impl<R: Receiver + fmt::Debug> fmt::Debug for RecvFuture<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecvFuture").field(&self.receiver).finish()
    }
}

impl<T> Queue<T> {
    /// Waits until a timer has expired, and takes it, without blocking the thread. Works
    /// on every runtime, beside tasks and blocking workers that take from the same queue:
    /// each timer goes to one of them.
    ///
    /// Each task needs a handle of its own. The future is `Send` if `T` is. It can be
    /// dropped at any time, as `select!` does, and loses nothing: if it was already woken
    /// for a timer, another task or worker is woken for it.
    ///
    /// # Errors
    /// Returns [`RecvError::ShutDown`] if the engine was shut down.
    ///
    /// # Wakers
    /// The task's waker is called outside all locks, often by the ticker's thread, and
    /// should not block. A panic in it is caught and counted in
    /// [`Snapshot::panics`](crate::Snapshot::panics).
    ///
    /// # Virtual clocks
    /// [`VirtualClock::run_until`](crate::VirtualClock::run_until) does not wait for tasks:
    /// it cannot know when they are polled. While threads wait for the same queue, they
    /// are woken before tasks.
    ///
    /// # Cost
    /// As much as [`recv`](Queue::recv), if an expired timer is there. Otherwise a poll
    /// takes the lock of the queue's sleepers, and clones the waker if it is a new one.
    ///
    /// ```
    /// use std::pin::pin;
    /// use std::task::{Context, Poll, Waker};
    /// use std::time::Duration;
    /// use tickwheel::{Engine, RecvError, Timer};
    ///
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// let mut queue = engine.queue(0);
    /// let server = async move {
    ///     let mut taken = Vec::new();
    ///     while let Ok(expired) = queue.recv_async().await {
    ///         taken.push(expired.into_payload());
    ///     }
    ///     taken
    /// };
    ///
    /// // In place of a runtime. Never woken, but polled when there is something to do.
    /// let mut server = pin!(server);
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert!(server.as_mut().poll(&mut context).is_pending());
    /// engine.schedule(Timer::after(Duration::from_secs(1), "hello"))?;
    /// clock.advance(Duration::from_secs(1));
    /// assert!(server.as_mut().poll(&mut context).is_pending());
    /// engine.shutdown();
    /// assert_eq!(server.poll(&mut context), Poll::Ready(vec!["hello"]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recv_async(&mut self) -> RecvFuture<'_, Queue<T>> {
        RecvFuture::new(self)
    }

    fn poll_take(&self, waits: &mut Waits, waker: &Waker) -> Poll<Result<Expired<T>, RecvError>> {
        let doorbell = self.core.doorbell(self.index);
        loop {
            let place = match self.hinted() {
                Some(hint) => hint,
                None => match ready!(doorbell.poll_answer(waits, waker)) {
                    Err(WaitError::Stopped) => {
                        return Poll::Ready(self.last(Queue::expired).ok_or(RecvError::ShutDown));
                    }
                    bell => Place::of(bell?),
                },
            };
            if let Some(expired) = self.claim(place, Queue::expired) {
                return Poll::Ready(Ok(expired));
            }
        }
    }
}

impl<T> Receiver for Queue<T> {
    type Received = Expired<T>;

    fn poll_receive(
        &mut self,
        Waiting(waits): &mut Waiting,
        waker: &Waker,
    ) -> Poll<Result<Expired<T>, RecvError>> {
        self.worker.leave(&self.core.census, self.index);
        let taken = Queue::poll_take(self, waits, waker);
        if taken.is_ready() {
            self.notify_census();
        }
        taken
    }

    fn leave(&self, Waiting(waits): &mut Waiting) {
        self.core.doorbell(self.index).leave(waits);
    }
}

impl<T> Reports<T> {
    /// Waits until there is a report, and takes it, without blocking the thread. Works as
    /// [`Queue::recv_async`] does.
    ///
    /// # Errors
    /// Fails as [`recv`](Reports::recv) does.
    ///
    /// ```
    /// use std::pin::pin;
    /// use std::task::{Context, Poll, Waker};
    /// use std::time::Duration;
    /// use tickwheel::{Closed, Engine, Timer};
    ///
    /// let engine = Engine::builder().start()?;
    /// let mut reports = engine.reports();
    /// let mut report = pin!(reports.recv_async());
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert!(report.as_mut().poll(&mut context).is_pending());
    /// let id = engine.schedule(Timer::after(Duration::from_secs(9), "order").reported())?;
    /// engine.cancel(id);
    /// let report = report.poll(&mut context);
    /// assert!(matches!(report, Poll::Ready(Ok(Closed { id: closed, .. })) if closed == id));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recv_async(&mut self) -> RecvFuture<'_, Reports<T>> {
        RecvFuture::new(self)
    }
}

impl<T> Receiver for Reports<T> {
    type Received = Closed<T>;

    fn poll_receive(
        &mut self,
        Waiting(waits): &mut Waiting,
        waker: &Waker,
    ) -> Poll<Result<Closed<T>, RecvError>> {
        self.poll_take(waits, waker)
    }

    fn leave(&self, Waiting(waits): &mut Waiting) {
        self.leave_places(waits);
    }
}
