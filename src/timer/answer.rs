//! The answers to calls: how a cancel went, and how a timer ended.

// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc;

use crate::id::TimerId;
use crate::tick::Tick;
use crate::timeline::Time;

/// The result of [`Engine::cancel`](crate::Engine::cancel).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cancel<T> {
    /// The timer was live and will not fire. This is its payload.
    Cancelled(T),
    /// The timer was live and will not fire. Its task runs once more, or once it is
    /// started, and learns the outcome; the payload stays with the task. Only an
    /// [`Engine`](crate::Engine) returns this, and only for
    /// [`notified`](crate::Timer::notified) timers: a
    /// [`TaskEngine`](crate::TaskEngine::cancel) never returns closures, and answers
    /// `Cancelled(())` for them as for all others.
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
    pub fn into_payload(self) -> Option<T> {
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
    /// use tickwheel::{Cancel, Engine, Firing, TaskEngine, Timer};
    ///
    /// let (timers, _clock) = TaskEngine::builder().start_virtual()?;
    /// let task = |firing: Firing| println!("{:?}", firing.outcome());
    /// let id = timers.run(Timer::after(Duration::from_secs(9), task).notified())?;
    /// let answer = Engine::cancel(&timers, id);
    /// assert!(matches!(answer, Cancel::Notified) && answer.is_cancelled());
    /// assert!(!Engine::cancel(&timers, id).is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Cancel::Cancelled(_) | Cancel::Notified)
    }

    /// Drops the payload from the answer.
    #[inline]
    pub(crate) fn without_payload(self) -> Cancel<()> {
        match self {
            Cancel::Cancelled(_) | Cancel::Notified => Cancel::Cancelled(()),
            Cancel::Running => Cancel::Running,
            Cancel::Gone => Cancel::Gone,
        }
    }
}

/// The reason why a timer ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CloseReason {
    /// A one-shot was taken, or the last firing of a counted timer or a task
    /// returned.
    Completed,
    /// The timer was cancelled.
    Cancelled,
    /// The timer was live when the engine was shut down.
    ShutDown,
    /// The timer's only or last firing panicked.
    Failed,
}

/// The report on a timer that has ended.
///
/// Read from [`Engine::reports`](crate::Engine::reports) for
/// [`reported`](crate::Timer::reported) timers, and returned by
/// [`Engine::shutdown`](crate::Engine::shutdown) for the timers that it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Closed<T> {
    /// The timer.
    pub id: TimerId,
    /// The timer's name, if it has one.
    pub name: Option<Arc<str>>,
    /// The timer's queue.
    pub queue: usize,
    /// The tick at which the timer ended: the due tick of its last firing if it completed
    /// or failed, otherwise the tick at which it was cancelled or shut down. One
    /// that was cancelled before its start ends when it is started.
    pub tick: Tick,
    /// The time at which the timer was due next, or last if a worker had a firing of it that
    /// it had not re-armed: the beginning of a tick. To move the timers of a shutdown to another
    /// engine, schedule their payloads there after what is left, `closed.deadline -
    /// engine.now()`: each engine has a time of its own, unless one virtual clock moves both. A
    /// report has no period: whoever moves a repeating timer has to know it.
    pub deadline: Time,
    /// The number of deliveries.
    pub firings: u64,
    /// The reason why the timer ended.
    pub reason: CloseReason,
    /// The payload, unless it went to the caller of `cancel`, to a worker, or
    /// into the list that shutdown returned. `None` in the report on a task: the worker drops
    /// a closure that has run, so that
    /// [`TaskEngine::join`](crate::TaskEngine::join) can wait for the drop.
    pub payload: Option<T>,
}
