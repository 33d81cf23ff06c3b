//! Awaiting a queue, from async tasks.

use core::borrow::BorrowMut;
use core::future::{Future, poll_fn};
use core::marker::PhantomData;
use core::task::{Poll, Waker, ready};

use crate::queue::{Lead, Queue, Received, RecvError};
use crate::sync::Place;

/// The wait of a task: a future, which borrows its queue, or a stream, which owns it.
///
/// It takes nothing before it is ready, so dropping it loses nothing.
struct Waiting<T, R, Q: BorrowMut<Queue<T, R>>> {
    queue: Q,
    place: Place,
    hands_out: PhantomData<fn() -> (T, R)>,
}

impl<T, R: Received<T>, Q: BorrowMut<Queue<T, R>>> Waiting<T, R, Q> {
    fn new(queue: Q, place: Place) -> Waiting<T, R, Q> {
        Waiting { queue, place, hands_out: PhantomData }
    }

    fn poll(&mut self, waker: &Waker) -> Poll<Result<R, RecvError>> {
        let queue = self.queue.borrow_mut();
        // A virtual clock doesn't know when a task is polled.
        queue.worker.leave(&queue.core.census, queue.index);
        let doorbell = queue.core.doorbell(queue.index);
        let mut received = Err(RecvError::Empty);
        Poll::Ready(loop {
            let lead = match queue.hinted() {
                Some(lead) => lead,
                None => match ready!(doorbell.poll_recv(&mut self.place, waker)) {
                    Some(bell) => Lead::by(bell),
                    None => break queue.receive_last(),
                },
            };
            R::claim(queue, lead, &mut received);
            if received.is_ok() {
                break received;
            }
        })
    }
}

impl<T, R, Q: BorrowMut<Queue<T, R>>> Drop for Waiting<T, R, Q> {
    fn drop(&mut self) {
        let queue = self.queue.borrow_mut();
        queue.core.doorbell(queue.index).leave(&mut self.place);
    }
}

impl<T, R: Received<T>> Queue<T, R> {
    /// Waits as [`recv`](Queue::recv) does, without blocking the thread. Works
    /// on every runtime, beside tasks and blocking workers that take from the same queue:
    /// each timer, or report, goes to one of them.
    ///
    /// Each task needs a handle of its own. The future is `Send` if `T` is. It can be
    /// dropped at any time, as `select!` does, and loses nothing: if it was already woken
    /// for a timer, another task or worker is woken for it. One that is woken and then
    /// neither polled nor dropped keeps that timer from workers that sleep.
    ///
    /// # Errors
    /// Returns [`RecvError::ShutDown`] if the engine was shut down.
    ///
    /// # Wakers
    /// The task's waker is called outside all locks, often by the ticker's thread, and
    /// should not block. A panic in it is caught and counted in
    /// [`Snapshot::panics`](crate::stats::Snapshot::panics).
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
    pub fn recv_async(&mut self) -> impl Future<Output = Result<R, RecvError>> + Unpin {
        let mut waiting = Waiting::new(self, Place::default());
        poll_fn(move |context| waiting.poll(context.waker()))
    }
}

#[cfg(feature = "stream")]
mod stream {
    use core::pin::Pin;
    use core::task::Context;

    use futures_core::Stream;

    use super::*;

    impl<T, R: Received<T>> Stream for Waiting<T, R, Queue<T, R>> {
        type Item = R;

        fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<R>> {
            self.poll(context.waker()).map(Result::ok)
        }
    }

    impl<T, R: Received<T>> Queue<T, R> {
        /// Returns a stream of this queue's expired timers, or of the reports. It ends when the
        /// engine is shut down. A queue is no stream itself, because it is already an iterator,
        /// whose methods have the same names.
        ///
        /// A stream loses nothing either, but it may stop being polled without being
        /// dropped. So a timer that wakes a stream also wakes those behind it,
        /// up to the first that waits otherwise: where many tasks take from one queue,
        /// [`recv_async`](Queue::recv_async) wakes only one of them.
        ///
        /// Exists only with the feature `stream`.
        ///
        /// ```
        /// use futures_core::Stream;
        /// use std::pin::Pin;
        /// use std::task::{Context, Poll, Waker};
        /// use std::time::Duration;
        /// use tickwheel::{Engine, Timer};
        ///
        /// let (engine, clock) = Engine::builder().start_virtual()?;
        /// let mut due = engine.queue(0).into_stream();
        /// engine.schedule(Timer::after(Duration::from_secs(1), "hello"))?;
        /// clock.advance(Duration::from_secs(1));
        /// // With an extension trait of a runtime: `due.next().await`.
        /// let mut context = Context::from_waker(Waker::noop());
        /// let next = Pin::new(&mut due).poll_next(&mut context);
        /// assert!(matches!(next, Poll::Ready(Some(expired)) if *expired.payload() == "hello"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
        pub fn into_stream(self) -> impl Stream<Item = R> + Unpin {
            Waiting::new(self, Place::watching())
        }
    }
}
