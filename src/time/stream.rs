//! The ticks of an interval as a stream.

use core::pin::Pin;
use core::task::{Context, Poll};

use futures_core::Stream;

use crate::time::handle::Handle;
use crate::time::interval::Interval;

/// Yields the time at which each tick was due, as [`Interval::tick`] does. Ends when the
/// engine is shut down. Exists only with the feature `stream`.
///
/// ```
/// use futures_core::Stream;
/// use std::pin::Pin;
/// use std::task::{Context, Poll, Waker};
/// use std::time::Duration;
/// use tickwheel::time::Timers;
///
/// let (timers, clock) = Timers::builder().start_virtual()?;
/// let mut beats = timers.interval(Duration::from_secs(1));
/// let mut context = Context::from_waker(Waker::noop());
/// let mut next = || Pin::new(&mut beats).poll_next(&mut context);
/// assert!(next().is_ready());
/// assert!(next().is_pending());
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(next(), Poll::Ready(Some(clock.now())));
/// timers.shutdown();
/// assert_eq!(next(), Poll::Ready(None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
impl<H: Handle> Stream for Interval<H> {
    type Item = H::Moment;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<H::Moment>> {
        self.poll_next_tick(context)
    }
}
