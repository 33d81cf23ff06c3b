//! The reasons why a timer is refused, or not changed, and what comes back with them.

use core::fmt;
// Not the one of `crate::sync`, because nobody waits for it.
use std::sync::{Mutex, PoisonError};

use crate::timer::CloseReason;

/// The reason why a timer was refused, or not changed. The refused call changed nothing.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Refusal, Timer};
///
/// let second = Duration::from_secs(1);
/// let (engine, clock) = Engine::builder().start_virtual()?;
/// let lease = engine.schedule(Timer::after(second, "lease").rearmable())?;
/// clock.advance(second);
/// let due = engine.queue(0).recv()?;
/// assert_eq!(engine.reschedule(lease, second), Err(Refusal::Running));
/// drop(due);
/// assert_eq!(engine.reschedule(lease, second), Err(Refusal::Gone));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The engine holds as many timers and unread reports as
    /// [`Builder::max_timers`](crate::Builder::max_timers) allows.
    Full,
    /// The engine was shut down: it accepts no timers, and no timer of which a worker has a
    /// firing fires again. While it drains, it accepts none either, but fires those that it has.
    ShutDown,
    /// The timer's name is to be [unique](crate::Timer::unique), and another timer has it.
    NameTaken,
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
    /// The timer, or the firing that was to re-arm it, has ended or never existed.
    Gone,
    /// A worker has a firing of the timer at this moment. The holder can
    /// [re-arm](crate::Expired::rearm) the timer, unless this was to be its last.
    Running,
    /// The timer was cancelled while a worker has a firing of it, and does not
    /// fire again.
    Cancelled,
    /// The timer has fired as often as [`times`](crate::Timer::times) says.
    UsedUp,
    /// The timer is a one-shot that does not lend its payload, and ended when it was
    /// taken, or a task whose closure can run only once.
    NotRearmable,
    /// The timer was [created](crate::Engine::create), but not
    /// [started](crate::Unstarted::start).
    Unstarted,
}

impl Refusal {
    /// Returns the reason why the holder of a firing can do nothing more for a timer that
    /// ends in this way.
    pub(crate) fn by(ending: CloseReason) -> Refusal {
        match ending {
            CloseReason::Cancelled => Refusal::Cancelled,
            CloseReason::ShutDown => Refusal::ShutDown,
            CloseReason::Completed | CloseReason::Failed => Refusal::Gone,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Full => {
                "`max_timers` is reached, counting unread reports: cancel some, read them, or raise it"
            }
            Refusal::ShutDown => {
                "the engine was shut down or is draining, and accepts no more timers"
            }
            Refusal::NameTaken => "another timer has this unique name: cancel it, or reschedule it",
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
            Refusal::InstantOnOtherClock => {
                "this engine's clock does not measure `Instant`s: give a delay or a `Time`, such \
                 as `engine.now()` plus a delay, or start the engine on the monotonic clock"
            }
            Refusal::Gone => {
                "this timer has ended, or is not one of this engine's: schedule a new one"
            }
            Refusal::Running => {
                "a firing of this timer is running: its holder can re-arm it with `rearm`"
            }
            Refusal::Cancelled => {
                "this timer was cancelled during its firing and does not fire again: schedule a \
                 new one"
            }
            Refusal::UsedUp => "this timer has fired as often as `times` says: schedule a new one",
            Refusal::NotRearmable => {
                "this one-shot cannot fire again: make the timer with `Timer::rearmable`, or run \
                 the task with `TaskEngine::run`"
            }
            Refusal::Unstarted => "this timer has not started: call `Unstarted::start` first",
        })
    }
}

impl std::error::Error for Refusal {}

/// A timer, payload or firing that was not accepted, and comes back with the reason. The
/// refused call changed nothing.
///
/// If the payload is `Send + 'static`, `?` turns this into a `Box<dyn Error + Send + Sync>` or
/// an `anyhow::Error`: what comes back is taken out by value, so it need not be [`Sync`]. For
/// any other payload, such as an `Rc`, `.map_err(Refusal::from)?` keeps the reason alone. So it
/// does for a closure, whose `Refused` has no name to downcast to.
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
        Refused { inner: Box::new((reason, Mutex::new(returned))) }
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

debug!(it: [R] Refused<R> => "Refused" { reason: it.reason() });

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
