//! The reason why a timer was not changed.

use core::fmt;

use crate::timer::CloseReason;
use crate::timer::answer::OTHER_CLOCK;

/// The reason why a timer was not changed. The timer is as it was.
///
/// Returned by [`Engine::reschedule`](crate::Engine::reschedule),
/// [`replace`](crate::Engine::replace), and by the holder's
/// [`Firing::rearm`](crate::Firing::rearm) and [`Expired::rearm`](crate::Expired::rearm).
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, NotChanged, Timer};
///
/// let second = Duration::from_secs(1);
/// let (engine, clock) = Engine::builder().start_virtual()?;
/// let lease = engine.schedule(Timer::after(second, "lease").rearmable())?;
/// clock.advance(second);
/// let due = engine.queue(0).recv()?;
/// assert_eq!(engine.reschedule(lease, second), Err(NotChanged::Running));
/// drop(due);
/// assert_eq!(engine.reschedule(lease, second), Err(NotChanged::Gone));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotChanged {
    /// The timer, or the firing that was to re-arm it, has ended or never existed.
    Gone,
    /// A worker has a firing of the timer at this moment. The holder can
    /// [re-arm](crate::Expired::rearm) the timer.
    Running,
    /// The timer was cancelled while a worker has a firing of it, and does not
    /// fire again.
    Cancelled,
    /// The engine was shut down while a worker has a firing of the timer, which does not
    /// fire again.
    ShutDown,
    /// The timer has fired as often as [`times`](crate::Timer::times) says.
    UsedUp,
    /// The timer is a one-shot that does not lend its payload, and ended when it was
    /// taken, or a task whose closure can run only once.
    NotRearmable,
    /// The timer was [created](crate::Engine::create), but not
    /// [started](crate::Unstarted::start).
    Unstarted,
    /// The new time is an `Instant`, but the engine follows the boot-time clock or a
    /// virtual clock, which do not measure instants.
    InstantOnOtherClock,
}

impl NotChanged {
    /// Returns the reason why the holder of a firing can do nothing more for a timer that
    /// ends in this way.
    pub(crate) fn by(ending: CloseReason) -> NotChanged {
        match ending {
            CloseReason::Cancelled => NotChanged::Cancelled,
            CloseReason::ShutDown => NotChanged::ShutDown,
            CloseReason::Completed | CloseReason::Failed => NotChanged::Gone,
        }
    }
}

impl fmt::Display for NotChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotChanged::Gone => {
                "this timer has ended, or is not one of this engine's: schedule a new one"
            }
            NotChanged::Running => {
                "a firing of this timer is running: its holder can re-arm it with `rearm`"
            }
            NotChanged::Cancelled => {
                "this timer was cancelled during its firing and does not fire again: schedule a \
                 new one"
            }
            NotChanged::ShutDown => "the engine was shut down, and its timers do not fire again",
            NotChanged::UsedUp => {
                "this timer has fired as often as `times` says: schedule a new one"
            }
            NotChanged::NotRearmable => {
                "this one-shot cannot fire again: make the timer with `Timer::rearmable`, or run \
                 the task with `TaskEngine::run`"
            }
            NotChanged::Unstarted => "this timer has not started: call `Unstarted::start` first",
            NotChanged::InstantOnOtherClock => OTHER_CLOCK,
        })
    }
}

impl std::error::Error for NotChanged {}
