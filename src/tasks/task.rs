//! The closure that an engine stores, its return to the caller, and the firing that it
//! receives. These types name each other.

use std::time::Duration;

use crate::engine::SharedCore;
use crate::id::TimerId;
use crate::shard;
use crate::sync::Arc;
use crate::tasks::closure::{Closure, Make, RunEach, RunOnce};
use crate::tick::Tick;
use crate::timeline::{Time, When};
use crate::timer::{CloseReason, Refusal, Timer};

/// A closure that is waiting to be run.
///
/// A cancel, a shutdown or a replacement may return it, and it can be scheduled again. A
/// closure that runs at most once ends its timer with its run, even if that timer repeats.
pub struct Task(Closure<Firing>);

/// A closure that runs at most once, without its firing.
struct Silent<F>(F);

impl<F: FnOnce() + Send + 'static> RunOnce<Firing> for Silent<F> {
    fn run(self, _: Make<'_, Firing>) {
        (self.0)();
    }
}

/// A closure that runs at most once.
struct Once<F>(F);

impl<F: FnOnce(Firing) + Send + 'static> RunOnce<Firing> for Once<F> {
    fn run(self, firing: Make<'_, Firing>) {
        let mut firing = firing();
        firing.rearmable = false;
        (self.0)(firing);
    }
}

/// A closure that runs at every firing.
struct Each<F>(F);

impl<F: FnMut(Firing) + Send + 'static> RunEach<Firing> for Each<F> {
    fn run(&mut self, firing: Make<'_, Firing>) {
        (self.0)(firing());
    }
}

impl Task {
    #[inline]
    pub(super) fn silent<F: FnOnce() + Send + 'static>(task: F) -> Task {
        Task(Closure::once(Silent(task)))
    }

    #[inline]
    pub(super) fn once<F: FnOnce(Firing) + Send + 'static>(task: F) -> Task {
        Task(Closure::once(Once(task)))
    }

    #[inline]
    pub(super) fn each<F: FnMut(Firing) + Send + 'static>(task: F) -> Task {
        Task(Closure::each(Each(task)))
    }

    /// Runs the closure, with the firing that `firing` makes. Does nothing if the closure
    /// runs at most once and has run.
    pub(super) fn run(&mut self, firing: Make<'_, Firing>) {
        self.0.run(firing);
    }

    /// Whether the closure has run and cannot run again. There is nothing left to drop.
    pub(super) fn is_consumed(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the closure given to [`Task::silent`], which has not run.
    pub(super) fn into_silent<F: Send + 'static>(self) -> F {
        self.0.into_inner::<Silent<F>>().expect(AS_MADE).0
    }

    /// Returns the closure given to [`Task::once`], which has not run.
    pub(super) fn into_once<F: Send + 'static>(self) -> F {
        self.0.into_inner::<Once<F>>().expect(AS_MADE).0
    }

    /// Returns the closure given to [`Task::each`].
    pub(super) fn into_each<F: Send + 'static>(self) -> F {
        self.0.into_inner::<Each<F>>().expect(AS_MADE).0
    }
}

const AS_MADE: &str = "it is what it was made of";

debug!(it: [] Task => "Task" { consumed: it.is_consumed() });

/// The firing for which a task runs, passed to its closure.
///
/// A firing is a value that the closure may keep, clone or send to another
/// thread. After the task has returned, a firing changes nothing. It keeps the
/// memory of its engine, but does not keep the engine running.
#[derive(Clone)]
pub struct Firing {
    pub(super) firing: shard::Delivery,
    pub(super) core: Arc<SharedCore<Task>>,
    /// Whether the closure can run again.
    pub(super) rearmable: bool,
}

impl Firing {
    pub(super) fn of(firing: &shard::Delivery, core: &Arc<SharedCore<Task>>) -> Firing {
        Firing { firing: firing.clone(), core: Arc::clone(core), rearmable: true }
    }
}

impl Firing {
    /// Returns the timer's id, for instance to cancel it from within the task.
    #[must_use]
    pub fn id(&self) -> TimerId {
        self.firing.id
    }

    /// Returns the timer's name, if it has one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Firing, TaskEngine, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let second = Duration::from_secs(1);
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let beat = Timer::every(second, move |firing: Firing| {
    ///     tell.send(firing.name().map(str::to_owned)).unwrap();
    /// });
    /// timers.run(beat.named("beat"))?;
    /// clock.run_until(timers.now() + second);
    /// assert_eq!(told.recv()?.as_deref(), Some("beat"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.firing.name.as_deref().map(|name| &**name)
    }

    /// Returns the number of this due tick in the timer's series, counted from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.firing.number
    }

    /// Returns the number of firings still to come, or `None` if the timer fires
    /// for ever; see [`Expired::remaining`](crate::Expired::remaining).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Firing, TaskEngine, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let count = move |firing: Firing| tell.send(firing.remaining()).unwrap();
    /// let second = Duration::from_secs(1);
    /// timers.run(Timer::every(second, count).times(3))?;
    /// clock.run_until(timers.now() + 9 * second);
    /// assert_eq!(told.try_iter().collect::<Vec<_>>(), [Some(2), Some(1), Some(0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.core.remaining(self.firing.id)
    }

    /// Returns the tick at which this firing was due.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.firing.tick
    }

    /// Returns the time at which this firing was due.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.firing.deadline
    }

    /// Returns the time that has passed since the deadline; see
    /// [`Expired::lateness`](crate::Expired::lateness). Returns zero if the task runs
    /// early because its timer was cancelled or shut down.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::TaskEngine;
    ///
    /// let timers = TaskEngine::builder().start()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let beat = timers.run_every(Duration::from_millis(5), move |firing| {
    ///     // Too late for this one to be of use? Then wait for the next.
    ///     if firing.lateness() < Duration::from_secs(60) {
    ///         let _ = tell.send(firing.number());
    ///     }
    /// })?;
    /// assert_eq!(told.recv()?, 1);
    /// # timers.cancel(beat);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn lateness(&self) -> Duration {
        self.core.clock.now() - self.firing.requested
    }

    /// Runs the task again at `when` after it has returned: a [`Duration`] from
    /// now, a [`Time`], or an `Instant`. The timer keeps its id, name and settings,
    /// and the next firing has the next [`number`](Firing::number).
    ///
    /// A task that calls this before its work goes on after a panic of the work, and is
    /// in the list of a [shutdown](crate::Engine::shutdown) meanwhile. A task that calls
    /// this at the end decides by the result of the work.
    ///
    /// A second call overrides the first. A repeating timer continues from
    /// `when`, as after [`Engine::reschedule`](crate::Engine::reschedule). If
    /// the task panics after this call, the panic is counted and the timer
    /// goes on. A cancel after this call answers
    /// [`Cancel::Running`](crate::Cancel::Running), and the task does not run again,
    /// except to be told of that if it is [`notified`](Timer::notified).
    ///
    /// # Errors
    /// Returns [`Refusal::Cancelled`] or [`Refusal::ShutDown`] if that happened
    /// meanwhile, [`Refusal::UsedUp`] if the timer has fired as often as
    /// [`times`](Timer::times) says, [`Refusal::NotRearmable`] in a closure of
    /// [`TaskEngine::run_once`](crate::TaskEngine::run_once), and [`Refusal::Gone`] if
    /// the task of this firing has returned. A timer that was cancelled or shut down then
    /// ends for that reason, and not as completed, unless it is used up. The refusal tells a
    /// [`notified`](Timer::notified) task of this end, and the task does not run again.
    ///
    /// Returns [`Refusal::InstantOnOtherClock`] as
    /// [`Engine::reschedule`](crate::Engine::reschedule) does.
    ///
    /// # Cost
    /// Takes the lock of the timer's shard, and reads the clock for a delay.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Firing, TaskEngine, Time, Timer};
    ///
    /// // A retry whose delay doubles. `attempt` succeeds the fourth time.
    /// let mut delay = Duration::from_millis(100);
    /// let attempt = |n: u64| n == 4;
    /// let retry = move |firing: Firing| {
    ///     if !attempt(firing.number()) && firing.rearm(delay).is_ok() {
    ///         delay *= 2;
    ///     }
    /// };
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// timers.run(Timer::after(Duration::ZERO, retry).named("upload"))?;
    /// clock.run_until(Time::from_millis(699));
    /// assert_eq!(timers.ledger().live, 1);
    /// clock.run_until(Time::from_millis(700)); // 0, 100, 300, 700
    /// assert_eq!(timers.ledger().completed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rearm(&self, when: impl Into<When>) -> Result<(), Refusal> {
        let (id, number) = (self.firing.id, self.firing.number);
        match self.firing.outcome {
            CloseReason::Completed if !self.rearmable => Err(Refusal::NotRearmable),
            CloseReason::Completed => self.core.rearm_lent(id, number, when.into()),
            ended => Err(Refusal::by(ended)),
        }
    }

    /// Returns whether the timer was cancelled or shut down since this firing
    /// began, so that the task will not run again. A long task can stop
    /// early then, without a flag beside the timer.
    ///
    /// Returns `false` once the task of this firing has returned, unless it ran to be told of
    /// that end.
    ///
    /// # Cost
    /// Takes the lock of the timer's shard.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Cancel, Firing, TaskEngine, Time, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let inner = timers.clone();
    /// let copy = move |firing: Firing| {
    ///     for block in 0..9 {
    ///         if firing.is_cancelled() {
    ///             return tell.send(block).unwrap();
    ///         }
    ///         if block == 2 {
    ///             assert_eq!(inner.cancel(firing.id()), Cancel::Running);
    ///         }
    ///     }
    /// };
    /// timers.run(Timer::after(Duration::ZERO, copy))?;
    /// clock.run_until(Time::START);
    /// assert_eq!(told.recv()?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let (id, number) = (self.firing.id, self.firing.number);
        self.firing.outcome != CloseReason::Completed || self.core.is_cancelled(id, number)
    }

    /// Returns the reason for the run: [`CloseReason::Completed`] at the
    /// deadline. A [`notified`](Timer::notified) task also runs when its
    /// timer is cancelled or shut down.
    #[must_use]
    pub fn outcome(&self) -> CloseReason {
        self.firing.outcome
    }
}

debug!(it: [] Firing => "Firing" {
    id: it.id(), number: it.number(), tick: it.tick(), outcome: it.outcome()
});

impl<F: FnOnce(Firing) + Send + 'static> Timer<F> {
    /// Makes a worker run the closure also when the timer is cancelled or
    /// shut down; [`Firing::outcome`] then says which. A one-shot's closure thus
    /// runs exactly once. It never runs inline in `cancel`. If a run of the closure has
    /// learned of the end because [`Firing::rearm`] was refused, no further run tells it
    /// again. Meant for
    /// [`TaskEngine::run`](crate::TaskEngine::run) and
    /// [`run_once`](crate::TaskEngine::run_once).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{CloseReason, Firing, TaskEngine, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let task = move |firing: Firing| tell.send(firing.outcome()).unwrap();
    /// let id = timers.run(Timer::after(Duration::from_secs(9), task).notified())?;
    /// timers.cancel(id).into_payload().unwrap();
    /// assert_eq!(told.recv()?, CloseReason::Cancelled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn notified(mut self) -> Timer<F> {
        self.notified = true;
        self
    }
}
