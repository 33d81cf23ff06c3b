//! Answers: the reasons for refusals, and the results of cancelling.

use core::fmt;

use crate::id::TimerId;

/// The reason why a timer was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The engine holds as many live timers as
    /// [`Builder::max_timers`](crate::Builder::max_timers) allows.
    Full,
    /// The engine was shut down or is draining.
    ShutDown,
    /// The engine has no queue with that number.
    NoSuchQueue,
    /// The period is zero, so the timer would fire without end.
    ZeroPeriod,
    /// [`Timer::starting`](crate::Timer::starting), [`Timer::times`](crate::Timer::times)
    /// or [`Timer::missed`](crate::Timer::missed) was called on a timer without a period.
    NotRepeating,
    /// [`TaskEngine::run_once`](crate::TaskEngine::run_once) was given a timer with a
    /// period, and a closure that can run only once.
    Repeating,
    /// A repeating timer with [`MissedTicks::CatchUp`](crate::MissedTicks::CatchUp) is
    /// due more than a hundred times a tick. A worker might never catch up with it.
    PeriodTooShort,
    /// The timer's time is an `Instant`, but the engine follows the boot-time clock or a
    /// virtual clock, which do not measure instants.
    InstantOnOtherClock,
}

/// Says what to do about an instant that the engine's clock does not measure.
pub(super) const OTHER_CLOCK: &str = "this engine's clock does not measure `Instant`s: give a \
     delay or a `Time`, such as `engine.now()` plus a delay, or start the engine on the \
     monotonic clock";

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Full => {
                "the engine holds as many timers as `max_timers` allows: cancel some or raise it"
            }
            Refusal::ShutDown => "the engine was shut down and accepts no more timers",
            Refusal::NoSuchQueue => {
                "no such queue: number it below what the builder's `queues` was given"
            }
            Refusal::ZeroPeriod => "a period must be longer than zero",
            Refusal::NotRepeating => {
                "`starting`, `times` and `missed` need a period: make the timer with `Timer::every`"
            }
            Refusal::Repeating => {
                "a timer with a period runs its closure more than once: use `TaskEngine::run`, or \
                 make the timer with `Timer::after` or `Timer::at`"
            }
            Refusal::PeriodTooShort => {
                "a timer that catches up may be due a hundred times a tick at most: lengthen its \
                 period, shorten the tick, or choose `MissedTicks::Skip`"
            }
            Refusal::InstantOnOtherClock => OTHER_CLOCK,
        })
    }
}

impl std::error::Error for Refusal {}

/// The result of [`Engine::cancel`](crate::Engine::cancel).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a running timer was not stopped, and a cancelled one's payload is in here"]
pub enum Cancel<T> {
    /// The timer was live and will not fire. This is its payload.
    Cancelled(T),
    /// The timer was live and will not fire. Its task runs once more and learns the
    /// outcome; the payload stays with the task. Returned only for
    /// [`notified`](crate::Timer::notified) timers.
    Notified,
    /// A worker has a firing of the timer at this moment. The timer will not fire
    /// again: it does not repeat, and [`Firing::rearm`](crate::Firing::rearm) and
    /// [`Expired::rearm`](crate::Expired::rearm) are refused from now on.
    Running,
    /// The timer has ended, or never existed.
    Gone,
}

impl<T> Cancel<T> {
    /// Returns the payload if this answer contains it.
    #[must_use]
    #[inline]
    pub fn payload(self) -> Option<T> {
        match self {
            Cancel::Cancelled(payload) => Some(payload),
            Cancel::Notified | Cancel::Running | Cancel::Gone => None,
        }
    }

    /// Returns whether the call ended a timer that was not running, no matter who has the
    /// payload.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Cancel, Firing, TaskEngine, Timer};
    ///
    /// let (timers, _clock) = TaskEngine::builder().start_virtual()?;
    /// let task = |firing: Firing| println!("{:?}", firing.outcome());
    /// let id = timers.run(Timer::after(Duration::from_secs(9), task).notified())?;
    /// let answer = timers.engine().cancel(id);
    /// assert!(matches!(answer, Cancel::Notified) && answer.is_cancelled());
    /// assert!(!timers.engine().cancel(id).is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Cancel::Cancelled(_) | Cancel::Notified)
    }

    /// Drops the payload from the answer.
    pub(crate) fn without_payload(self) -> Cancel<()> {
        match self {
            Cancel::Cancelled(_) | Cancel::Notified => Cancel::Cancelled(()),
            Cancel::Running => Cancel::Running,
            Cancel::Gone => Cancel::Gone,
        }
    }
}

/// The result of [`Engine::cancel_by_name`](crate::Engine::cancel_by_name) and
/// [`Engine::cancel_all`](crate::Engine::cancel_all).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CancelledMany<T> {
    /// The timers that end as cancelled because of this call, in the order in which they
    /// were cancelled. Includes repeating timers with a running firing.
    pub ids: Vec<TimerId>,
    /// The number of other timers whose last firing is running. They can no longer be
    /// [re-armed](crate::Firing::rearm). One whose holder tries to ends as cancelled; the
    /// others end by themselves.
    pub running: usize,
    /// The payloads of the timers that were not running, in the same order.
    pub payloads: Vec<T>,
}

impl<T> CancelledMany<T> {
    pub(crate) fn none() -> CancelledMany<T> {
        CancelledMany {
            ids: Vec::new(),
            running: 0,
            payloads: Vec::new(),
        }
    }

    /// Makes room for so many more timers.
    pub(crate) fn reserve(&mut self, timers: usize) {
        self.ids.reserve(timers);
        self.payloads.reserve(timers);
    }
}
