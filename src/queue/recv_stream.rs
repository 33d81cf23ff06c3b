//! A queue, or the reports, as a stream.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures_core::Stream;

use crate::engine::Waits;
use crate::queue::recv_future::{Receiver, Waiting};
use crate::queue::{Queue, Reports};

/// Stream of expired timers or of reports; from [`Queue::into_stream`] and
/// [`Reports::into_stream`]. Its items are `Expired<T>` or `Closed<T>`. It ends when the
/// engine is shut down.
///
/// Exists only with the feature `stream`.
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
#[must_use = "a stream takes nothing unless it is polled"]
pub struct RecvStream<R: Receiver> {
    receiver: R,
    waits: Waiting,
}

impl<R: Receiver> RecvStream<R> {
    fn new(receiver: R) -> RecvStream<R> {
        let waits = Waiting(Waits::watching());
        RecvStream { receiver, waits }
    }

    /// Returns the queue or the reports.
    pub fn get_ref(&self) -> &R {
        &self.receiver
    }
}

// A receiver is never pinned.
impl<R: Receiver> Unpin for RecvStream<R> {}

impl<R: Receiver> Stream for RecvStream<R> {
    type Item = R::Received;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<R::Received>> {
        let this = &mut *self;
        let received = this.receiver.poll_receive(&mut this.waits, context.waker());
        received.map(Result::ok)
    }
}

impl<R: Receiver> Drop for RecvStream<R> {
    fn drop(&mut self) {
        self.receiver.leave(&mut self.waits);
    }
}

impl<R: Receiver + fmt::Debug> fmt::Debug for RecvStream<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecvStream").field(&self.receiver).finish()
    }
}

impl<T> Queue<T> {
    /// Returns a stream of this queue's expired timers. It ends when the engine is shut
    /// down. A queue is no stream itself, because it is already an iterator, whose
    /// methods have the same names.
    ///
    /// A stream loses nothing either, but it may stop being polled without being
    /// dropped. So a timer that wakes a stream also wakes the next one that
    /// waits: where many tasks take from one queue,
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
    pub fn into_stream(self) -> RecvStream<Queue<T>> {
        RecvStream::new(self)
    }
}

impl<T> Reports<T> {
    /// Returns a stream of the reports, which works as [`Queue::into_stream`] does. It
    /// ends when [`recv`](Reports::recv) would fail.
    ///
    /// Exists only with the feature `stream`.
    #[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
    pub fn into_stream(self) -> RecvStream<Reports<T>> {
        RecvStream::new(self)
    }
}
