//! Ticks at equal distances.

use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::Duration;

use crate::time::Timers;
use crate::time::handle::{Global, Handle, Moment};
use crate::time::sleep::{Ended, Sleep, panic_of_refusal};
use crate::timeline::{PointInTime, Time, nanos};
use crate::timer::MissedTicks;

/// A tick that is taken later than this counts as missed, in addition to the engine's
/// tick.
const LATE: Duration = Duration::from_millis(5);

/// Ticks every `period`, for the first time at once.
///
/// For another first tick, use [`interval_at`] or [`Interval::reset`].
///
/// # Panics
/// Panics if `period` is zero.
///
/// ```
/// # use std::pin::pin;
/// # use std::task::{Context, Poll, Waker};
/// use std::time::Duration;
/// use tickwheel::time::{MissedTickBehavior, interval};
///
/// let mut beats = interval(Duration::from_secs(1));
/// beats.set_missed_tick_behavior(MissedTickBehavior::Skip);
/// # let mut tick = pin!(beats.tick());
/// # let first = tick.as_mut().poll(&mut Context::from_waker(Waker::noop()));
/// # assert!(first.is_ready());
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    Interval::new(Sleep::at(Global, Global.now()), period)
}

/// Ticks every `period`, for the first time at `start`: an `Instant`, or a [`Time`] of
/// [`Global`]'s clock. An instant before the first use of that clock counts as the first use,
/// and the later ticks follow from there.
///
/// # Panics
/// Panics if `period` is zero.
#[track_caller]
pub fn interval_at(start: impl PointInTime, period: Duration) -> Interval {
    Interval::new(Sleep::until(Global, start), period)
}

impl Timers {
    /// Ticks every `period`, for the first time at once; see
    /// [`interval`](crate::time::interval).
    ///
    /// # Panics
    /// Panics if `period` is zero.
    #[track_caller]
    pub fn interval(&self, period: Duration) -> Interval<&Timers> {
        Interval::new(Sleep::at(self, self.now()), period)
    }

    /// Ticks every `period`, for the first time at `start`; see
    /// [`interval_at`](crate::time::interval_at).
    ///
    /// # Panics
    /// Panics if `period` is zero, or if `start` is an instant that the engine's clock does not
    /// measure.
    #[track_caller]
    pub fn interval_at(&self, start: impl PointInTime, period: Duration) -> Interval<&Timers> {
        Interval::new(Sleep::until(self, start), period)
    }
}

/// Ticks at equal distances; from [`interval`], [`interval_at`], or the calls of
/// [`Timers`](crate::time::Timers) with these names.
///
/// Ticks that nobody awaits are missed; [`MissedTicks`] says what happens to them.
/// Defaults to [`MissedTicks::CatchUp`]. A tick at [`Time::MAX`] never comes.
///
/// # Panics
/// Waiting for a tick panics if the engine was [shut
/// down](crate::time::Timers::shutdown).
#[derive(Debug)]
pub struct Interval<H: Handle = Global> {
    sleep: Sleep<H>,
    period: Duration,
    missed: MissedTicks,
}

impl<H: Handle> Interval<H> {
    #[track_caller]
    pub(super) fn new(first: Sleep<H>, period: Duration) -> Interval<H> {
        assert!(!period.is_zero(), "the period of an interval must not be zero");
        Interval { sleep: first, period, missed: MissedTicks::CatchUp }
    }

    /// Waits for the next tick, and returns the time at which it was due.
    ///
    /// Cancel safe: a tick is consumed only by a call that returns it.
    pub async fn tick(&mut self) -> H::Moment {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick, as [`tick`](Interval::tick) does.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<H::Moment> {
        self.poll_next_tick(cx).map(|tick| match tick {
            Some(moment) => moment,
            None => panic_of_refusal(),
        })
    }

    /// Polls for the next tick. Returns `None` if the engine was shut down.
    fn poll_next_tick(&mut self, cx: &mut Context<'_>) -> Poll<Option<H::Moment>> {
        // It has passed without anyone waiting for it. Otherwise, registering it says
        // whether the engine was shut down. The end of time never passes: ticks beyond it
        // are all set to it, and would be ready for ever.
        let due = self.sleep.deadline;
        if self.sleep.is_new() && due < Time::MAX && due <= self.sleep.core().clock.now() {
            let is_shut_down = self.sleep.core().is_shut_down();
            return Poll::Ready((!is_shut_down).then(|| self.take_tick()));
        }
        self.sleep.poll_ended(cx).map(|ended| match ended {
            Ended::Elapsed => Some(self.take_tick()),
            Ended::ShutDown | Ended::Refused => None,
        })
    }

    fn take_tick(&mut self) -> H::Moment {
        let core = self.sleep.core();
        let (due, now) = (self.sleep.deadline, core.clock.now());
        let on_time = core.tick.start_of(core.tick.tick_after(due)) + LATE;
        let period = nanos(self.period);
        let (next, _) = self.missed.next(due, period, now, now > on_time);
        let moment = Moment::at(self.sleep.handle.timers(), due);
        self.sleep.set_deadline(next);
        moment
    }

    /// Returns the time between two ticks.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Returns what happens to missed ticks.
    #[must_use]
    pub fn missed_tick_behavior(&self) -> MissedTicks {
        self.missed
    }

    /// Sets what happens to missed ticks. Defaults to [`MissedTicks::CatchUp`].
    ///
    /// A tick counts as missed if it is taken more than five milliseconds after the engine's
    /// tick to which it is rounded up.
    pub fn set_missed_tick_behavior(&mut self, missed: MissedTicks) {
        self.missed = missed;
    }

    /// Sets the next tick a full period from now.
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// Makes the next tick due now.
    pub fn reset_immediately(&mut self) {
        let now = self.sleep.core().clock.now();
        self.sleep.set_deadline(now);
    }

    /// Sets the next tick a delay from now.
    pub fn reset_after(&mut self, delay: Duration) {
        self.sleep.reset(delay);
    }

    /// Sets the next tick: an `Instant` or a [`Time`]. Later ticks follow at equal
    /// distances.
    ///
    /// # Panics
    /// As [`Sleep::reset`].
    pub fn reset_at(&mut self, next: impl PointInTime) {
        self.sleep.reset_at(next);
    }
}

impl Interval<&Timers> {
    /// Returns the same ticks with a handle of its own, which a spawned task needs; see
    /// [`Sleep::into_owned`].
    pub fn into_owned(self) -> Interval<Timers> {
        Interval { sleep: self.sleep.into_owned(), period: self.period, missed: self.missed }
    }
}

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
#[cfg(feature = "stream")]
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
impl<H: Handle> futures_core::Stream for Interval<H> {
    type Item = H::Moment;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<H::Moment>> {
        self.poll_next_tick(context)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::task::Waker;

    use super::*;

    /// Returns the second tick of an interval that skips what it has missed, after the
    /// first one, due at half a tick, was taken at `taken`.
    fn second_tick(taken: Time) -> u64 {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        let half = Time::from_nanos(500_000);
        let mut beats = timers.interval_at(half, Duration::from_millis(2));
        beats.set_missed_tick_behavior(MissedTicks::Skip);
        clock.advance_to(taken);
        let mut context = Context::from_waker(Waker::noop());
        assert!(beats.poll_tick(&mut context).is_ready());
        beats.sleep.deadline.as_nanos()
    }

    #[test]
    fn a_tick_is_missed_once_it_is_more_than_five_milliseconds_late() {
        let on_time = Time::from_millis(1) + LATE;
        assert_eq!(second_tick(on_time), 2_500_000);
        assert_eq!(second_tick(on_time + Duration::from_nanos(1)), 6_500_000);
    }

    /// The clock of each engine is behind `Instant`s by another small time.
    #[test]
    fn the_first_tick_is_ready_at_once() {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..1_000 {
            let (timers, _driver) = Timers::builder().shards(1).start_driven().unwrap();
            let mut poll = || timers.interval(LATE).poll_tick(&mut context);
            assert!((0..100).all(|_| poll().is_ready()));
        }
    }

    #[test]
    fn ticks_end_with_time() {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        let nearly = Time::from_nanos(u64::MAX - 1);
        let mut beats = timers.interval_at(nearly, Duration::from_nanos(1));
        clock.advance_to(Time::MAX);
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(beats.poll_tick(&mut context), Poll::Ready(nearly));
        assert!(beats.poll_tick(&mut context).is_pending());
        beats.reset_immediately();
        assert!(beats.poll_tick(&mut context).is_pending());
    }
}

const _: () = {
    const fn is_unpin<T: Unpin + Send + Sync>() {}
    is_unpin::<Sleep>();
    is_unpin::<Interval>();
    assert!(size_of::<Sleep>() == 24);
    let _ = is_unpin::<Pin<&mut Sleep>>;
};
