//! A future that is ready when a deadline has passed.
//!
//! All that tasks and the waking thread share is in the engine, under the lock of a
//! shard. A sleep is therefore a plain value: it can be moved between two polls, and
//! dropped in its own wake-up.
//!
//! # Why no wake-up is lost
//! The payload of a sleep's timer is the waker of the last poll. The thread that ends
//! the timer takes the waker under the shard's lock. A poll looks at the timer, and
//! replaces its waker, under the same lock. Either the timer has not ended, and the new
//! waker will be woken; or the poll finds that it has, and is ready.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::engine::{Core, Registered, Seen};
use crate::id::TimerId;
use crate::time::Timers;
use crate::time::handle::{Global, Handle, Moment};
use crate::timeline::{PointInTime, Time, When};

/// Waits until a delay has passed; for a loop over several, see
/// [`interval`](crate::time::interval).
///
/// The delay counts from this call. The sleep is never ready early, and at most a tick,
/// a wake-up and a turn of its task late.
///
/// # Cost
/// One reading of the clock. The first poll takes one short lock, that of the thread's
/// own shard, and so does a drop before the deadline.
///
/// # Panics
/// The first use of the process-wide engine panics if it cannot start; see [`Global`].
///
/// ```
/// use std::time::{Duration, Instant};
/// use tickwheel::time::sleep;
///
/// # pollster::block_on(async {
/// let start = Instant::now();
/// sleep(Duration::from_millis(5)).await;
/// assert!(start.elapsed() >= Duration::from_millis(5));
/// # });
/// ```
#[inline]
pub fn sleep(delay: Duration) -> Sleep {
    Sleep::after(Global, delay)
}

/// Waits until a deadline: an `Instant`, or a [`Time`] of [`Global`]'s clock.
///
/// Does not read the clock. A deadline is rounded up to a tick. If that has begun, the sleep is
/// ready at once, or after one wake-up.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tickwheel::time::sleep_until;
///
/// let deadline = Instant::now() + Duration::from_secs(30);
/// assert_eq!(sleep_until(deadline).deadline(), deadline);
/// ```
#[inline]
pub fn sleep_until(deadline: impl PointInTime) -> Sleep {
    Sleep::until(Global, deadline)
}

impl Timers {
    /// Waits until a delay has passed; see [`sleep`](crate::time::sleep).
    #[inline]
    pub fn sleep(&self, delay: Duration) -> Sleep<&Timers> {
        Sleep::after(self, delay)
    }

    /// Waits until a deadline; see [`sleep_until`](crate::time::sleep_until).
    ///
    /// # Panics
    /// Panics if `deadline` is an instant that the engine's clock does not measure.
    #[inline]
    pub fn sleep_until(&self, deadline: impl PointInTime) -> Sleep<&Timers> {
        Sleep::until(self, deadline)
    }
}

/// A future that is ready when its deadline has passed, or when its [`Timers`] are shut down
/// ([`is_elapsed`](Sleep::is_elapsed) tells); from [`sleep`], [`sleep_until`], or the calls of
/// [`Timers`] with these names.
///
/// Registers a timer at the first poll that finds the deadline's tick in the future. Dropping
/// the sleep frees that timer at once. A sleep that is polled by several tasks wakes the
/// one that polled it last.
///
/// A sleep is `Unpin`: `select!` takes `&mut sleep` as it is. It may be moved between
/// polls, and leaked.
///
/// # Panics
/// A poll that would register a timer panics if the engine was [shut
/// down](Timers::shutdown), or began to drain, before.
#[must_use = "futures do nothing unless polled"]
pub struct Sleep<H: Handle = Global> {
    /// If the sleep is lazy, the whole seconds of the delay, as if they were nanoseconds.
    pub(super) deadline: Time,
    /// The timer that the engine has, or had. Otherwise, an unissued id with one of the numbers
    /// below: another field would take eight more bytes.
    timer: TimerId,
    pub(super) handle: H,
}

impl<H: Handle> Sleep<H> {
    #[inline]
    pub(super) fn after(handle: H, delay: Duration) -> Sleep<H> {
        let deadline = handle.timers().core().clock.after(delay);
        Sleep::at(handle, deadline)
    }

    #[inline]
    pub(super) fn until(handle: H, deadline: impl PointInTime) -> Sleep<H> {
        let deadline = time_of(&handle, deadline.into());
        Sleep::at(handle, deadline)
    }

    #[inline]
    pub(super) fn at(handle: H, deadline: Time) -> Sleep<H> {
        Sleep { deadline, timer: NEW, handle }
    }

    /// Makes a sleep whose delay counts from its first poll. Stores the delay as it is,
    /// because converting it would cost more than everything else.
    #[inline]
    pub(super) fn lazy(handle: H, delay: Duration) -> Sleep<H> {
        let timer = TimerId::unissued(LAZY + u64::from(delay.subsec_nanos()));
        Sleep { deadline: Time::from_nanos(delay.as_secs()), timer, handle }
    }

    /// Returns the deadline, as the handle tells time: an `Instant` for the functions of
    /// this module, a [`Time`] for [`Timers`].
    #[must_use]
    pub fn deadline(&self) -> H::Moment {
        Moment::at(self.handle.timers(), self.deadline)
    }

    /// Returns whether the sleep has ended because its deadline has passed. `false` for a
    /// sleep that was never polled, or that a [shutdown](Timers::shutdown) ended before it had
    /// fired.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        match self.timer.unissued_number() {
            Some(number) => number == ELAPSED,
            None => matches!(self.core().look_at(self.timer, self.deadline, |_| ()), Seen::Gone),
        }
    }

    /// Sets another deadline: a delay from now, an `Instant`, or a [`Time`].
    ///
    /// A task that waits for the sleep is woken at the new deadline. If the sleep has
    /// ended, it must be polled again.
    ///
    /// # Panics
    /// Panics if `when` is an instant that the engine's clock does not measure; see
    /// [`Timers`].
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use tickwheel::time::sleep;
    ///
    /// let mut sleep = sleep(Duration::from_secs(1));
    /// let deadline = Instant::now() + Duration::from_secs(30);
    /// sleep.reset(deadline);
    /// assert_eq!(sleep.deadline(), deadline);
    /// sleep.reset(Duration::from_secs(60));
    /// assert!(sleep.deadline() > deadline);
    /// ```
    pub fn reset(&mut self, when: impl Into<When>) {
        let deadline = time_of(&self.handle, when.into());
        self.set_deadline(deadline);
    }

    /// Sets another deadline: an `Instant` or a [`Time`]; see [`reset`](Sleep::reset).
    pub fn reset_at(&mut self, deadline: impl PointInTime) {
        self.reset(deadline);
    }

    pub(super) fn set_deadline(&mut self, deadline: Time) {
        self.deadline = deadline;
        // An id that is not issued is refused like that of a timer that has ended.
        let timers = self.handle.timers();
        if timers.reschedule(self.timer, deadline).is_err() {
            self.timer = NEW;
        }
    }

    pub(super) fn core(&self) -> &Core<Waker> {
        self.handle.timers().core()
    }

    /// Whether the sleep was not polled since its deadline was set.
    pub(super) fn is_new(&self) -> bool {
        self.timer == NEW
    }

    /// Inlined into every poll; keep it small.
    #[inline]
    pub(super) fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        match self.timer.unissued_number() {
            None => self.look(cx),
            Some(number) => self.poll_unregistered(number, cx),
        }
    }

    #[inline(never)]
    fn poll_unregistered(&mut self, number: u64, cx: &mut Context<'_>) -> Poll<Ended> {
        match number {
            ELAPSED => return Poll::Ready(Ended::Elapsed),
            SHUT_DOWN => return Poll::Ready(Ended::ShutDown),
            LAZY.. => {
                let delay = Duration::new(self.deadline.as_nanos(), (number - LAZY) as u32);
                self.deadline = self.core().clock.after(delay);
                // Before the waker is cloned, which may panic.
                self.timer = NEW;
            }
            _ => {}
        }
        match self.core().register(self.deadline, cx.waker().clone()) {
            Registered::Waiting(id) => {
                self.timer = id;
                Poll::Pending
            }
            Registered::Due(_) => self.end(ELAPSED, Ended::Elapsed),
            Registered::Refused(_) => self.end(SHUT_DOWN, Ended::Refused),
        }
    }

    #[inline(never)]
    fn look(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        let waker = cx.waker();
        let looked = |known: &Waker| known.will_wake(waker);
        match self.core().look_at(self.timer, self.deadline, looked) {
            Seen::Live(true) => Poll::Pending,
            Seen::Live(false) => self.change_waker(cx),
            Seen::Gone => self.end(ELAPSED, Ended::Elapsed),
            Seen::ShutDown => self.end(SHUT_DOWN, Ended::ShutDown),
            Seen::Cancelled => {
                self.timer = NEW;
                self.poll_unregistered(0, cx)
            }
        }
    }

    /// Replaces the waker. Clones the new one and drops the old one outside the lock,
    /// because both run foreign code.
    #[cold]
    fn change_waker(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        let waker = cx.waker().clone();
        match self.handle.timers().replace(self.timer, waker) {
            Ok(_) => Poll::Pending,
            // It has ended in the meantime.
            Err(_) => self.look(cx),
        }
    }

    /// Frees the timer. Drops the waker, if it is still there, after the lock is
    /// released.
    ///
    /// Not inlined, so that a drop without a timer is a single comparison.
    #[inline(never)]
    fn leave(&self) {
        drop(self.handle.timers().cancel(self.timer));
    }

    fn end(&mut self, number: u64, ended: Ended) -> Poll<Ended> {
        self.timer = TimerId::unissued(number);
        Poll::Ready(ended)
    }
}

impl Sleep<&Timers> {
    /// Returns the same sleep with a handle of its own, which a spawned task needs.
    ///
    /// # Cost
    /// A clone of the handle, whose count all threads share. Where that matters,
    /// [`Timers::leak`] does without.
    pub fn into_owned(mut self) -> Sleep<Timers> {
        let timer = std::mem::replace(&mut self.timer, NEW);
        Sleep { deadline: self.deadline, timer, handle: self.handle.clone() }
    }
}

/// Computes a deadline. Always inlined, because callers know the kind of `when`.
#[inline(always)]
fn time_of(handle: &impl Handle, when: When) -> Time {
    let clock = &handle.timers().core().clock;
    match when {
        When::After(delay) => clock.after(delay),
        When::At(time) => time,
        When::AtInstant(instant) => match clock.time_of(instant) {
            Some(time) => time,
            None => handle.time_meant(instant),
        },
    }
}

impl<H: Handle> Future for Sleep<H> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.get_mut().poll_ended(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ended::Refused) => panic_of_refusal(),
            Poll::Ready(Ended::Elapsed | Ended::ShutDown) => Poll::Ready(()),
        }
    }
}

#[cold]
pub(super) fn panic_of_refusal() -> ! {
    panic!("the timers were shut down or are draining: let tasks end before that")
}

impl<H: Handle> Drop for Sleep<H> {
    #[inline]
    fn drop(&mut self) {
        if self.timer.unissued_number().is_none() {
            self.leave();
        }
    }
}

debug!(it: [H: Handle] Sleep<H> => "Sleep" {
    // A lazy sleep has none yet.
    deadline: it.timer.unissued_number().is_none_or(|number| number < LAZY).then_some(it.deadline)
});

// What a sleep has in place of a timer.

/// Not polled since its deadline was set.
const NEW: TimerId = TimerId::unissued(0);
/// The deadline has passed.
const ELAPSED: u64 = 1;
/// The engine was shut down before the deadline.
const SHUT_DOWN: u64 = 2;
/// Not polled yet. The delay counts from the first poll, and the number is that much higher as
/// the delay has nanoseconds beyond whole seconds.
const LAZY: u64 = 3;

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    Elapsed,
    ShutDown,
    /// The engine was shut down before the first poll.
    Refused,
}
