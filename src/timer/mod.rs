//! The request: one builder for every kind of timer, and what becomes of the firings that a
//! repeating timer misses.

mod answer;
mod refusal;

pub use answer::{Cancel, CloseReason, Closed};
pub use refusal::{Refusal, Refused};

use core::time::Duration;
use std::sync::Arc;

use crate::rounding::TickLength;
use crate::timeline::{PointInTime, Time, When, nanos};

/// A timer to be scheduled: its deadline, payload, repetition and queue.
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
    pub(crate) requested: When,
    /// The period in nanoseconds.
    pub(crate) repeat: Option<u64>,
    /// The number of firings; 0 for ever.
    pub(crate) times: u64,
    pub(crate) queue: usize,
    pub(crate) missed: MissedTicks,
    pub(crate) tolerance: Duration,
    pub(crate) reported: bool,
    pub(crate) notified: bool,
    pub(crate) name: Option<Arc<str>>,
    /// Whether no other live timer may have the name.
    pub(crate) unique: bool,
    /// Whether the timer has a period, or a setting that needs one.
    meant_to_repeat: bool,
    /// Whether the payload is a task: the timer then ends when the task returns, not
    /// when it is taken.
    pub(crate) task: bool,
    /// Whether a one-shot lends its payload, so that its holder can re-arm it.
    pub(crate) rearmable: bool,
}

/// The maximum number of firings that may be due at each tick if a timer catches up. A
/// worker can keep pace with this number unless a tick lasts only microseconds.
const MOST_FIRINGS_A_TICK: u64 = 100;

impl<T> Timer<T> {
    /// Creates a timer that fires once, `delay` after the moment at which it is
    /// scheduled.
    ///
    /// The delay is rounded up to a tick. With a delay of zero, the timer is due at once: its
    /// deadline is the beginning of the current tick, from which its lateness counts. With a delay
    /// of [`Duration::MAX`], it is never due, and only cancelling or shutdown ends it. On a
    /// virtual clock, a timer that is due at once still waits for the next advance, even one by
    /// zero: see [`VirtualClock`](crate::VirtualClock).
    #[inline]
    pub fn after(delay: Duration, payload: T) -> Timer<T> {
        Timer::once(When::After(delay), payload)
    }

    /// Creates a timer that fires once, at a [`Time`](crate::Time) of the engine's own
    /// time line or at an [`Instant`](std::time::Instant), rounded up to a tick. If that
    /// tick has begun, the timer is due at once. The clock is not read: a timer with a
    /// time in the past fires after all timers that have expired, and takes its place by
    /// deadline among those that have not.
    ///
    /// An instant is a reading of the monotonic clock. An engine on another clock
    /// refuses it ([`Refusal::InstantOnOtherClock`]). An instant before the
    /// engine's start is the start.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use tickwheel::{Engine, Refusal, Time, Timer};
    ///
    /// let expires = Instant::now() + Duration::from_secs(30);
    /// let engine = Engine::builder().start()?;
    /// engine.schedule(Timer::at(expires, "token"))?;
    /// engine.schedule(Timer::at(engine.now(), "now"))?;
    ///
    /// // A virtual clock does not measure instants.
    /// let (engine, _clock) = Engine::builder().start_virtual()?;
    /// let refused = engine.schedule(Timer::at(expires, "token")).unwrap_err();
    /// assert_eq!(refused.reason(), Refusal::InstantOnOtherClock);
    /// engine.schedule(Timer::at(Time::from_secs(30), "token"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A `Duration` is not a point in time, and does not compile:
    ///
    /// ```compile_fail,E0277
    /// # use std::time::Duration;
    /// # use tickwheel::Timer;
    /// let timer = Timer::at(Duration::from_secs(30), "token");
    /// ```
    #[inline]
    pub fn at(time: impl PointInTime, payload: T) -> Timer<T> {
        Timer::once(time.into(), payload)
    }

    /// Creates a timer that fires for ever, or as often as [`times`](Timer::times) says.
    /// Firing k is due k periods after the moment of scheduling, no matter how late
    /// earlier firings were. A timer whose [period changes](crate::guide#change-a-period)
    /// re-arms itself.
    ///
    /// A period of zero is refused. If the period is shorter than a tick, several firings
    /// are due at each tick, one after the other. [`MissedTicks::CatchUp`] delivers all
    /// of them. More than a hundred firings a tick are then refused
    /// ([`Refusal::PeriodTooShort`]), because a worker might never catch up. `Skip` and
    /// `Delay` accept any period but zero.
    pub fn every(period: Duration, payload: T) -> Timer<T> {
        let mut timer = Timer::once(When::After(period), payload);
        timer.repeat = Some(nanos(period));
        timer.meant_to_repeat = true;
        timer
    }

    #[inline]
    fn once(requested: When, payload: T) -> Timer<T> {
        Timer {
            payload,
            requested,
            repeat: None,
            times: 0,
            queue: 0,
            missed: MissedTicks::CatchUp,
            tolerance: Duration::ZERO,
            reported: false,
            notified: false,
            name: None,
            unique: false,
            meant_to_repeat: false,
            task: false,
            rearmable: false,
        }
    }

    /// Sets the time of a repeating timer's first firing. Defaults to one period after
    /// scheduling. Takes a delay, a [`Time`](crate::Time) or an
    /// [`Instant`](std::time::Instant); see [`Timer::at`]. A time in the past sets the phase,
    /// and the firings since then are missed ones: with [`MissedTicks::CatchUp`], all of them
    /// are delivered now. A one-shot with this setting is refused
    /// ([`Refusal::NotRepeating`]).
    pub fn starting(mut self, first: impl Into<When>) -> Timer<T> {
        self.requested = first.into();
        self.meant_to_repeat = true;
        self
    }

    /// Sets the number of firings of a repeating timer; 0 means for ever. A one-shot with
    /// this setting is refused ([`Refusal::NotRepeating`]).
    pub fn times(mut self, times: u64) -> Timer<T> {
        self.times = times;
        self.meant_to_repeat = true;
        self
    }

    /// Sets the worker queue that the timer fires into. Defaults to 0.
    #[inline]
    pub fn queue(mut self, queue: usize) -> Timer<T> {
        self.queue = queue;
        self
    }

    /// Sets the policy for firings of a repeating timer that come due while an earlier
    /// one is waiting or running. A one-shot with this setting is refused
    /// ([`Refusal::NotRepeating`]).
    pub fn missed(mut self, missed: MissedTicks) -> Timer<T> {
        self.missed = missed;
        self.meant_to_repeat = true;
        self
    }

    /// Allows the timer to fire up to `tolerance` late, in order to share a wake-up with
    /// other timers. The deadline is rounded up to the coarsest boundary of a level that
    /// lies within the window. The timer waits for that boundary, even if the ticker wakes up
    /// sooner: with the default wheel, a tolerance of an hour makes it minutes late, and
    /// sometimes nearly an hour.
    ///
    /// Timers whose windows have the same coarsest boundary share a wake-up. Overlapping
    /// windows do not suffice: each may have a coarser boundary that the other does not
    /// reach. The timer's deadline is the rounded one, whereas
    /// [`Expired::lateness`](crate::Expired::lateness) counts from the requested time.
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

    /// Requests a [`Closed`](crate::Closed) report on the timer's end, to be read from
    /// [`Engine::reports`](crate::Engine::reports).
    pub fn reported(mut self) -> Timer<T> {
        self.reported = true;
        self
    }

    /// Makes a one-shot lend its payload to the worker, so that
    /// [`Expired::rearm`](crate::Expired::rearm) can set its next deadline.
    ///
    /// The timer then ends as completed when the [`Expired`](crate::Expired) is
    /// dropped or its payload is taken out, not when it is taken from its queue.
    /// Until then, a cancel is answered [`Cancel::Running`] and refuses a later
    /// `rearm`; a panic fails the timer. Has no effect on repeating timers and
    /// tasks, which can always be re-armed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// // A debounce: each event postpones the flush, even while a worker looks at it.
    /// let quiet = Duration::from_millis(50);
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// let id = engine.schedule(Timer::after(quiet, Vec::<u32>::new()).rearmable())?;
    /// clock.advance(quiet);
    /// let mut due = engine.queue(0).recv()?;
    /// due.payload_mut().push(1); // one more event
    /// due.rearm(quiet).unwrap();
    /// clock.advance(quiet);
    /// let due = engine.queue(0).recv()?;
    /// assert_eq!((due.id(), due.number()), (id, 2));
    /// assert_eq!(due.into_payload(), [1]);
    /// assert_eq!(engine.ledger().completed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rearmable(mut self) -> Timer<T> {
        self.rearmable = true;
        self
    }

    /// Sets a name by which [`Engine::cancel_by_name`](crate::Engine::cancel_by_name) can
    /// cancel the timer, and [`Engine::find_by_name`](crate::Engine::find_by_name) can
    /// find it. Many timers may share a name. Firings, reports and walks carry the name.
    /// All timers of a name are in one shard, whichever thread schedules them, so their order
    /// among timers without that name is [not promised](crate::Builder::shards).
    #[inline(always)]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Timer<T> {
        (self.name, self.unique) = (Some(name.into()), false);
        self
    }

    /// Sets a [name](Timer::named), and has this timer refused while another one has the name
    /// ([`Refusal::NameTaken`]). Of threads that schedule such timers at once, only one
    /// succeeds. A timer has its name until it ends, or is cancelled before its last firing. A
    /// later timer that is only [`named`](Timer::named) may still share the name.
    ///
    /// A repeating task that is cancelled while it runs gives up its name before it returns. If
    /// the next one must not run beside it, use
    /// [`cancel_and_wait`](crate::TaskEngine::cancel_and_wait).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Refusal, TaskEngine, Timer};
    ///
    /// let timers = TaskEngine::builder().start()?;
    /// let flush = || Timer::after(Duration::from_secs(1), |_| println!("flush")).unique("flush");
    /// timers.run(flush())?;
    /// assert_eq!(timers.run(flush()).unwrap_err().reason(), Refusal::NameTaken);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unique(mut self, name: impl Into<Arc<str>>) -> Timer<T> {
        (self.name, self.unique) = (Some(name.into()), true);
        self
    }

    /// Returns the payload.
    pub fn into_payload(self) -> T {
        self.payload
    }

    /// Returns the timer of a task, which ends when the task returns.
    #[inline(always)]
    pub(crate) fn into_task<U>(self, f: impl FnOnce(T) -> U) -> Timer<U> {
        let mut timer = self.map(f);
        timer.task = true;
        timer
    }

    #[inline(always)]
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Timer<U> {
        Timer {
            payload: f(self.payload),
            requested: self.requested,
            repeat: self.repeat,
            times: self.times,
            queue: self.queue,
            missed: self.missed,
            tolerance: self.tolerance,
            reported: self.reported,
            notified: self.notified,
            name: self.name,
            unique: self.unique,
            meant_to_repeat: self.meant_to_repeat,
            task: self.task,
            rearmable: self.rearmable,
        }
    }

    /// Whether this timer is only a payload or a task, a deadline and one of the first
    /// `queues`. The test is decided at compile time, because it is inlined with the
    /// calls that built the timer. It reads the one mark that the setters of repeating
    /// timers leave, instead of their values.
    #[inline(always)]
    pub(crate) fn is_plain(&self, queues: usize) -> bool {
        match *self {
            Timer {
                repeat: None,
                times: _,
                missed: _,
                meant_to_repeat: false,
                tolerance: Duration::ZERO,
                reported: false,
                notified: false,
                rearmable: false,
                name: None,
                unique: _,
                payload: _,
                requested: _,
                queue,
                task: _,
                // There is a first queue in any engine.
            } => queue == 0 || queue < queues,
            _ => false,
        }
    }

    /// Returns the plain timer that this one is.
    #[inline(always)]
    pub(crate) fn into_plain(self) -> PlainTimer<T> {
        PlainTimer {
            payload: self.payload,
            requested: self.requested,
            queue: self.queue,
            task: self.task,
        }
    }

    /// Checks the queue, and the period with the settings that need one.
    #[inline]
    pub(crate) fn validate(&self, queues: usize, tick: TickLength) -> Result<(), Refusal> {
        if self.queue >= queues {
            return Err(Refusal::NoSuchQueue);
        }
        // Below this, a worker might never catch up with the period.
        let shortest = tick.as_nanos().div_ceil(MOST_FIRINGS_A_TICK);
        match (self.repeat, self.missed) {
            (None, _) if self.meant_to_repeat => Err(Refusal::NotRepeating),
            (Some(0), _) => Err(Refusal::ZeroPeriod),
            (Some(period), MissedTicks::CatchUp) if period < shortest => {
                Err(Refusal::PeriodTooShort)
            }
            _ => Ok(()),
        }
    }
}

/// A one-shot that fits into a wheel's entry, as nearly every timer does.
pub(crate) struct PlainTimer<T> {
    pub(crate) payload: T,
    pub(crate) requested: When,
    pub(crate) queue: usize,
    pub(crate) task: bool,
}

impl<T> PlainTimer<T> {
    pub(crate) fn into_timer(self) -> Timer<T> {
        Timer::once(self.requested, self.payload).queue(self.queue)
    }
}

impl<T> Refused<Timer<T>> {
    /// Returns the payload of the refused timer. For a task, this is the closure.
    pub fn into_payload(self) -> T {
        self.into_inner().into_payload()
    }

    /// Turns the refusal of a task into a refusal of the closure that it was made from.
    #[cold]
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Refused<Timer<U>> {
        let reason = self.reason();
        let mut timer = self.into_inner().map(f);
        timer.task = false;
        Refused::new(reason, timer)
    }
}

/// The policy for firings of a repeating timer that come due while an earlier one is
/// waiting in its queue or running.
///
/// Under each policy, a repeating timer occupies one entry, because missed firings are
/// counted, not stored. Its firings never overlap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum MissedTicks {
    /// Delivers all missed firings, one after the other, each with its own due tick.
    #[default]
    CatchUp,
    /// Delivers a firing that waits in its queue, late, and skips those that come due behind it or
    /// while a worker has one: the next is due at the next multiple of the period. (Of an
    /// [`Interval`](crate::time::Interval), delivers the first missed tick, late.)
    /// [`Expired::number`](crate::Expired::number) counts the due ticks, skipped or not, whereas
    /// [`Timer::times`](crate::Timer::times) counts deliveries.
    Skip,
    /// Fires next a full period after the late firing is done, which moves the timer's
    /// phase.
    Delay,
}

impl MissedTicks {
    /// The name that [`MissedTicks::CatchUp`] has in tokio.
    ///
    /// ```
    /// use tickwheel::MissedTicks;
    /// use tickwheel::time::MissedTickBehavior;
    ///
    /// assert_eq!(MissedTickBehavior::Burst, MissedTicks::CatchUp);
    /// ```
    #[allow(non_upper_case_globals)]
    pub const Burst: MissedTicks = MissedTicks::CatchUp;

    /// Returns the time of the firing that follows the one due at `due`, and the number
    /// of periods between them. `late` is whether the policy applies.
    pub(crate) fn next(self, due: Time, period: u64, now: Time, late: bool) -> (Time, u64) {
        let (due, now) = (due.as_nanos(), now.as_nanos());
        let (next, steps) = match self {
            MissedTicks::Skip if late => {
                let steps = (now.saturating_sub(due) / period).saturating_add(1);
                (due.saturating_add(steps.saturating_mul(period)), steps)
            }
            MissedTicks::Delay if late => (now.saturating_add(period), 1),
            _ => (due.saturating_add(period), 1),
        };
        (Time::from_nanos(next), steps)
    }
}
