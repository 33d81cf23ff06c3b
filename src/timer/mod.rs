//! What is asked for: one builder for every kind of timer.

mod closed;
mod live;

pub use closed::{CloseReason, Closed};
pub use live::LiveTimer;

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use crate::time::{TickLength, Time, When, nanos};

/// A timer to be scheduled: when, with which payload, how often, to which
/// queue.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{MissedTicks, Timer};
///
/// let once = Timer::after(Duration::from_secs(30), "session 7");
/// let buff = Timer::every(Duration::from_secs(3), "poison")
///     .times(4)
///     .queue(1)
///     .missed(MissedTicks::Skip)
///     .reported();
/// # let _ = (once, buff);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "a timer does nothing until an engine schedules it"]
pub struct Timer<T> {
    pub(crate) payload: T,
    pub(crate) first: When,
    pub(crate) repeat: Option<Repeat>,
    /// 0 for ever.
    pub(crate) times: u64,
    pub(crate) queue: usize,
    pub(crate) missed: MissedTicks,
    pub(crate) tolerance: Duration,
    pub(crate) reported: bool,
    pub(crate) notified: bool,
    pub(crate) name: Option<Arc<str>>,
    /// Whether it has a period, or something set that needs one.
    pub(crate) meant_to_repeat: bool,
    /// A task ends when it returns, not when it is taken.
    pub(crate) task: bool,
}

/// How many firings of a timer that catches up may be due at each tick: few
/// enough for a worker to keep pace with, as long as a tick is not a matter of
/// microseconds itself.
const MOST_FIRINGS_A_TICK: u64 = 100;

/// How a timer goes on after its first firing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Repeat {
    pub(crate) period: u64,
}

impl<T> Timer<T> {
    /// Fires once, `delay` from the moment at which it is scheduled.
    ///
    /// The delay is rounded up to a tick; zero is due at once, and
    /// [`Duration::MAX`] never: only cancelling or shutdown ends such a timer.
    /// On a virtual clock even a timer that is due at once waits until the clock
    /// is moved, be it by nothing: see [`VirtualClock`](crate::VirtualClock).
    #[inline]
    pub fn after(delay: Duration, payload: T) -> Timer<T> {
        Timer::first(When::After(delay), payload)
    }

    /// Fires once, at a time of the engine's own time line, rounded up to a
    /// tick; a tick that has begun is due at once. Scheduling it reads no clock:
    /// a time that has passed stands behind everything that the ticker has
    /// found due, and among what it has not come to yet in the order of ticks.
    #[inline]
    pub fn at(time: Time, payload: T) -> Timer<T> {
        Timer::first(When::At(time), payload)
    }

    /// Fires for ever, or as often as [`times`](Timer::times) says: firing k
    /// is due k periods after the moment at which the timer is scheduled,
    /// however late the firing before was.
    ///
    /// A period of zero is refused. A period may be shorter than a tick: then
    /// several firings are due at each tick, one after the other. With
    /// [`MissedTicks::CatchUp`], which delivers all of them, more than a hundred
    /// a tick are refused ([`Refusal::PeriodTooShort`]), because a worker may
    /// never catch up with them. `Skip` and `Delay` accept any period but zero.
    pub fn every(period: Duration, payload: T) -> Timer<T> {
        let mut timer = Timer::first(When::After(period), payload);
        let period = nanos(period);
        timer.repeat = Some(Repeat { period });
        timer.meant_to_repeat = true;
        timer
    }

    #[inline]
    fn first(first: When, payload: T) -> Timer<T> {
        Timer {
            payload,
            first,
            repeat: None,
            times: 0,
            queue: 0,
            missed: MissedTicks::CatchUp,
            tolerance: Duration::ZERO,
            reported: false,
            notified: false,
            name: None,
            meant_to_repeat: false,
            task: false,
        }
    }

    /// Sets when a repeating timer fires first, instead of after one period. A
    /// one-shot is refused with it ([`Refusal::NotRepeating`]).
    pub fn starting(mut self, first: impl Into<When>) -> Timer<T> {
        self.first = first.into();
        self.meant_to_repeat = true;
        self
    }

    /// Sets how often a repeating timer fires: exactly `times` times, or for
    /// ever if `times` is 0. A one-shot is refused with it
    /// ([`Refusal::NotRepeating`]).
    pub fn times(mut self, times: u64) -> Timer<T> {
        self.times = times;
        self.meant_to_repeat = true;
        self
    }

    /// The worker queue that the timer fires into; 0 unless told otherwise.
    #[inline]
    pub fn queue(mut self, queue: usize) -> Timer<T> {
        self.queue = queue;
        self
    }

    /// Sets the policy for a repeating timer's firings that came due while an
    /// earlier one waited or ran. A one-shot is refused with it
    /// ([`Refusal::NotRepeating`]).
    pub fn missed(mut self, missed: MissedTicks) -> Timer<T> {
        self.missed = missed;
        self.meant_to_repeat = true;
        self
    }

    /// Allows the timer to fire up to `tolerance` late, so that timers can
    /// share a wake-up: the deadline is rounded up to the coarsest boundary of a
    /// level that lies within the window.
    ///
    /// Timers whose windows have the same coarsest boundary share a wake-up.
    /// Two windows that overlap need not: each may have a coarser boundary where
    /// the other does not reach. What is said about deadlines holds for the
    /// rounded one; [`Expired::lateness`](crate::Expired::lateness) counts from
    /// the one that was asked for.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Time, Timer};
    ///
    /// // Ticks of 1 ms, 64 to a slot of the second level.
    /// let (engine, _clock) = Engine::builder().start_virtual()?;
    /// let at = |from: u64, to: u64| {
    ///     let timer = Timer::at(Time::from_millis(from), ());
    ///     let timer = timer.tolerance(Duration::from_millis(to - from));
    ///     let id = engine.schedule(timer).unwrap();
    ///     engine.deadline(id)
    /// };
    /// // Both windows reach to 128: one wake-up.
    /// assert_eq!(at(100, 130), Some(Time::from_millis(128)));
    /// assert_eq!(at(120, 190), Some(Time::from_millis(128)));
    /// // This one overlaps with both, and has no multiple of 64 in it.
    /// assert_eq!(at(100, 127), Some(Time::from_millis(100)));
    /// # Ok::<(), tickwheel::StartError>(())
    /// ```
    pub fn tolerance(mut self, tolerance: Duration) -> Timer<T> {
        self.tolerance = tolerance;
        self
    }

    /// Asks for a [`Closed`](crate::Closed) report when the timer has ended,
    /// to be read from [`Engine::closed`](crate::Engine::closed).
    pub fn reported(mut self) -> Timer<T> {
        self.reported = true;
        self
    }

    /// Gives the timer a name, which many may share, to be cancelled by; see
    /// [`Engine::cancel_by_name`](crate::Engine::cancel_by_name).
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Timer<T> {
        self.name = Some(name.into());
        self
    }

    /// The payload, taken back out.
    pub fn into_payload(self) -> T {
        self.payload
    }

    /// The timer of a task, which ends when it returns.
    pub(crate) fn into_task<U>(self, f: impl FnOnce(T) -> U) -> Timer<U> {
        let mut timer = self.map(f);
        timer.task = true;
        timer
    }

    fn map<U>(self, f: impl FnOnce(T) -> U) -> Timer<U> {
        Timer {
            payload: f(self.payload),
            first: self.first,
            repeat: self.repeat,
            times: self.times,
            queue: self.queue,
            missed: self.missed,
            tolerance: self.tolerance,
            reported: self.reported,
            notified: self.notified,
            name: self.name,
            meant_to_repeat: self.meant_to_repeat,
            task: self.task,
        }
    }

    /// Itself in short, if there is no more to it than a payload, a deadline
    /// and a queue. Inlined, with the calls that built the timer, it is decided
    /// when the caller is compiled. The setters that only a repeating timer has
    /// leave one mark, which is looked at instead of what they set.
    #[inline(always)]
    pub(crate) fn into_plain(self) -> Result<Plain<T>, Timer<T>> {
        match self {
            Timer {
                repeat: None,
                times: _,
                missed: _,
                meant_to_repeat: false,
                tolerance: Duration::ZERO,
                reported: false,
                notified: false,
                task: false,
                name: None,
                payload,
                first,
                queue,
            } => Ok(Plain {
                payload,
                first,
                queue,
            }),
            timer => Err(timer),
        }
    }

    /// What is wrong with it, if anything is.
    #[inline]
    pub(crate) fn fault(&self, queues: usize, tick: TickLength) -> Option<Refusal> {
        if self.queue >= queues {
            return Some(Refusal::NoSuchQueue);
        }
        match self.repeat {
            None if self.meant_to_repeat => Some(Refusal::NotRepeating),
            Some(Repeat { period: 0 }) => Some(Refusal::ZeroPeriod),
            Some(repeat) if self.missed == MissedTicks::CatchUp && repeat.is_too_short(tick) => {
                Some(Refusal::PeriodTooShort)
            }
            _ => None,
        }
    }
}

impl Repeat {
    /// Whether a worker may never catch up with it.
    fn is_too_short(self, tick: TickLength) -> bool {
        self.period < tick.as_nanos() / MOST_FIRINGS_A_TICK
    }
}

/// A one-shot that fits an entry of a wheel: nearly every timer.
pub(crate) struct Plain<T> {
    pub(crate) payload: T,
    pub(crate) first: When,
    pub(crate) queue: usize,
}

impl<T> Plain<T> {
    pub(crate) fn into_timer(self) -> Timer<T> {
        Timer::first(self.first, self.payload).queue(self.queue)
    }
}

/// What becomes of a repeating timer's firings that came due while an earlier
/// one waited in its queue or ran.
///
/// Whatever the policy, a repeating timer is one entry and its firings never
/// overlap: missed firings are counted, not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MissedTicks {
    /// All are delivered, one after the other, each with its own due tick.
    #[default]
    CatchUp,
    /// They are left out: the next firing is the next multiple of the period.
    /// [`Expired::number`](crate::Expired::number) counts the due ticks, left
    /// out or not; [`Timer::times`] counts deliveries.
    Skip,
    /// The next firing is a full period after the late one was done: the
    /// timer's phase moves.
    Delay,
}

/// A timer that was not accepted, with the reason; nothing has changed.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Refusal, Timer};
///
/// let engine = Engine::<&str>::builder().queues(1).start()?;
/// let timer = Timer::after(Duration::from_secs(1), "mine").queue(7);
/// let refused = engine.schedule(timer).unwrap_err();
/// assert_eq!(refused.reason(), Refusal::NoSuchQueue);
/// assert_eq!(refused.into_timer().into_payload(), "mine");
/// # Ok::<(), tickwheel::StartError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Refused<T> {
    /// In a box, because the answer to `schedule` is then two words, which
    /// come back in registers: it is faster by a third.
    inner: Box<(Refusal, Timer<T>)>,
}

impl<T> Refused<T> {
    #[cold]
    pub(crate) fn new(reason: Refusal, timer: Timer<T>) -> Refused<T> {
        Refused {
            inner: Box::new((reason, timer)),
        }
    }

    /// Why the timer was refused.
    #[must_use]
    pub fn reason(&self) -> Refusal {
        self.inner.0
    }

    /// The timer as it was, to be changed and tried again.
    pub fn into_timer(self) -> Timer<T> {
        self.inner.1
    }

    /// The refusal of what the payload of a task was made of.
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Refused<U> {
        let (reason, timer) = *self.inner;
        let mut timer = timer.map(f);
        timer.task = false;
        Refused::new(reason, timer)
    }
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("reason", &self.reason())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reason(), f)
    }
}

impl<T> std::error::Error for Refused<T> {}

/// For who wants to know why, and not to have the timer back.
impl<T> From<Refused<T>> for Refusal {
    fn from(refused: Refused<T>) -> Refusal {
        refused.reason()
    }
}

/// Why a timer was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// As many timers are live as [`Builder::max_timers`](crate::Builder::max_timers)
    /// allows.
    Full,
    /// The engine was shut down, or is being drained.
    Closed,
    /// The engine has no queue of that number.
    NoSuchQueue,
    /// A repeating timer with a period of zero would fire without end.
    ZeroPeriod,
    /// [`Timer::starting`], [`Timer::times`] or [`Timer::missed`] on a timer
    /// that has no period.
    NotRepeating,
    /// A repeating timer with [`MissedTicks::CatchUp`] that is due more than a
    /// hundred times a tick: a worker may never catch up with it.
    PeriodTooShort,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Full => {
                "the engine holds as many timers as `max_timers` allows: cancel some or raise it"
            }
            Refusal::Closed => "the engine was shut down and accepts no more timers",
            Refusal::NoSuchQueue => {
                "no such queue: number it below what the builder's `queues` was given"
            }
            Refusal::ZeroPeriod => "a period must be longer than zero",
            Refusal::NotRepeating => {
                "`starting`, `times` and `missed` need a period: make the timer with `Timer::every`"
            }
            Refusal::PeriodTooShort => {
                "a timer that catches up may be due a hundred times a tick at most: lengthen its \
                 period, shorten the tick, or choose `MissedTicks::Skip`"
            }
        })
    }
}

impl std::error::Error for Refusal {}

/// What [`Engine::cancel`](crate::Engine::cancel) found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a running timer was not stopped, and a cancelled one's payload is in here"]
pub enum Cancel<T> {
    /// The timer was live and will not fire; this is its payload.
    Cancelled(T),
    /// The timer was live and will not fire. Its payload went to its task, which
    /// is run once more and told: only of timers that asked to be
    /// [`notified`](Timer::notified).
    Notified,
    /// A firing of it is in a worker's hands at this moment. A repeating timer
    /// will not fire again.
    Running,
    /// There is no such timer, any more or at all.
    Gone,
}

impl<T> Cancel<T> {
    /// Returns the payload, if the caller of `cancel` gets it.
    #[must_use]
    #[inline]
    pub fn payload(self) -> Option<T> {
        match self {
            Cancel::Cancelled(payload) => Some(payload),
            Cancel::Notified | Cancel::Running | Cancel::Gone => None,
        }
    }

    /// Returns whether the call ended a timer that was not running, wherever
    /// the payload went.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Cancel, Firing, TaskEngine, Timer};
    ///
    /// let (timers, _clock) = TaskEngine::builder().start_virtual()?;
    /// let task = |firing: &Firing| println!("{:?}", firing.outcome());
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

    /// The answer for who has no use for the payload, wherever it went.
    pub(crate) fn without_payload(self) -> Cancel<()> {
        match self {
            Cancel::Cancelled(_) | Cancel::Notified => Cancel::Cancelled(()),
            Cancel::Running => Cancel::Running,
            Cancel::Gone => Cancel::Gone,
        }
    }
}

/// What [`Engine::cancel_by_name`](crate::Engine::cancel_by_name) did.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CancelledByName<T> {
    /// How many timers end as cancelled because of this call. Those of which a
    /// firing is running, and which would have fired again, are among them.
    pub count: usize,
    /// The payloads of those that were not running.
    pub payloads: Vec<T>,
}

/// Why a timer was not rescheduled, or its payload not replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotLive {
    /// A firing of it is in a worker's hands at this moment.
    Running,
    /// There is no such timer, any more or at all.
    Gone,
}

impl fmt::Display for NotLive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotLive::Running => "a firing of this timer is running",
            NotLive::Gone => "this timer has ended, or is not one of this engine's",
        })
    }
}

impl std::error::Error for NotLive {}
