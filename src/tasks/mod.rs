//! "Run this later": closures on the engine's own workers.

mod worker;

use std::fmt;
use std::time::Duration;

use crate::engine::{
    Builder, Cancel, CloseReason, Closed, Engine, Ledger, Refusal, StartError, Timer, Unstarted,
};
use crate::id::TimerId;
use crate::observe;
use crate::tick::Tick;
use crate::ticker::{ClockSource, Driver, VirtualClock};
use crate::time::Time;

pub(crate) use worker::{is_running_here, run_counted};

/// A closure that waits to be run.
pub struct Task(Box<dyn FnMut(&Firing) + Send>);

impl Task {
    fn once(task: impl FnOnce() + Send + 'static) -> Task {
        let mut task = Some(task);
        Task(Box::new(move |_| {
            if let Some(task) = task.take() {
                task();
            }
        }))
    }

    fn run(&mut self, firing: &Firing) {
        (self.0)(firing);
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}

/// What a repeating task is told about the firing that it is run for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Firing {
    id: TimerId,
    number: u64,
    tick: Tick,
    deadline: Time,
    outcome: CloseReason,
}

impl Firing {
    /// The timer, for instance to cancel it from inside.
    #[must_use]
    pub fn id(&self) -> TimerId {
        self.id
    }

    /// Which due tick of the timer this is, counted from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The tick at which this firing was due.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// When this firing was due.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Why the task is run: [`CloseReason::Completed`] because its time has
    /// come; or, for a timer that asked to be [`notified`](Timer::notified),
    /// because it was cancelled or shut down.
    #[must_use]
    pub fn outcome(&self) -> CloseReason {
        self.outcome
    }
}

impl<F: FnMut(&Firing) + Send + 'static> Timer<F> {
    /// Asks that the closure is run on a worker when the timer is cancelled or
    /// shut down, too, with [`Firing::outcome`] saying so: a one-shot's
    /// closure then runs exactly once, whatever happens to it. It is never run
    /// inline in `cancel`. Meant for [`TaskEngine::run`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{CloseReason, Firing, TaskEngine, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let task = move |firing: &Firing| tell.send(firing.outcome()).unwrap();
    /// let id = timers.run(Timer::after(Duration::from_secs(9), task).notified())?;
    /// timers.cancel(id).payload().unwrap();
    /// assert_eq!(told.recv()?, CloseReason::Cancelled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn notified(mut self) -> Timer<F> {
        self.notified = true;
        self
    }
}

/// Runs closures later, on worker threads of its own.
///
/// A panic in a closure is caught and counted; the worker goes on. Dropping
/// the last handle shuts the engine down, drops the closures that have not run
/// and waits for nobody. A closure that holds a handle of its own keeps the
/// engine alive until the closure has ended, or `shutdown` is called.
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use tickwheel::TaskEngine;
///
/// let timers = TaskEngine::builder().workers(2).start()?;
/// let (done, wait) = mpsc::channel();
/// timers.run_after(Duration::from_millis(5), move || done.send("ran").unwrap())?;
/// assert_eq!(wait.recv()?, "ran");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TaskEngine {
    engine: Engine<Task>,
}

impl TaskEngine {
    /// Begins to set up a task engine.
    pub fn builder() -> TaskBuilder {
        TaskBuilder {
            engine: Engine::builder(),
            workers: 1,
        }
    }

    /// Runs `task` once, `delay` from now.
    ///
    /// # Errors
    /// If the engine is full or was shut down; the closure is dropped then.
    pub fn run_after(
        &self,
        delay: Duration,
        task: impl FnOnce() + Send + 'static,
    ) -> Result<TimerId, Refusal> {
        self.schedule(Timer::after(delay, Task::once(task)))
    }

    /// Runs `task` once, at a time of the engine's own time line.
    ///
    /// # Errors
    /// If the engine is full or was shut down; the closure is dropped then.
    pub fn run_at(
        &self,
        time: Time,
        task: impl FnOnce() + Send + 'static,
    ) -> Result<TimerId, Refusal> {
        self.schedule(Timer::at(time, Task::once(task)))
    }

    /// Runs `task` again and again: the k-th time k periods from now. Runs of
    /// one task never overlap; those that a slow one delays are made up for
    /// (see [`MissedTicks::CatchUp`](crate::MissedTicks::CatchUp)).
    ///
    /// # Errors
    /// If the period is zero, or the engine is full or was shut down; the
    /// closure is dropped then.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::TaskEngine;
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let second = Duration::from_secs(1);
    /// timers.run_every(second, move |firing| tell.send(firing.number()).unwrap())?;
    /// clock.run_until(timers.now() + 3 * second);
    /// assert_eq!(told.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_every(
        &self,
        period: Duration,
        task: impl FnMut(&Firing) + Send + 'static,
    ) -> Result<TimerId, Refusal> {
        self.schedule(Timer::every(period, Task(Box::new(task))))
    }

    /// Schedules a closure with everything that a [`Timer`] can say: times,
    /// missed ticks, a name, a closed report. All tasks are in queue 0.
    ///
    /// # Errors
    /// As [`run_every`](TaskEngine::run_every).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Firing, TaskEngine, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let second = Duration::from_secs(1);
    /// let beat = |firing: &Firing| println!("beat {}", firing.number());
    /// timers.run(Timer::every(second, beat).times(2))?;
    /// clock.run_until(timers.now() + 9 * second);
    /// assert_eq!(timers.ledger().completed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run<F>(&self, timer: Timer<F>) -> Result<TimerId, Refusal>
    where
        F: FnMut(&Firing) + Send + 'static,
    {
        self.schedule(timer.map(|task| Task(Box::new(task))))
    }

    /// Creates a task that is started later, or never; see [`Engine::create`].
    ///
    /// # Errors
    /// As [`run_every`](TaskEngine::run_every).
    pub fn create<F>(&self, timer: Timer<F>) -> Result<Unstarted<Task>, Refusal>
    where
        F: FnMut(&Firing) + Send + 'static,
    {
        let mut timer = timer.map(|task| Task(Box::new(task)));
        timer.task = true;
        let created = self.engine.create(timer);
        created.map_err(|refused| refused.reason())
    }

    fn schedule(&self, mut timer: Timer<Task>) -> Result<TimerId, Refusal> {
        timer.task = true;
        let scheduled = self.engine.schedule(timer);
        scheduled.map_err(|refused| refused.reason())
    }

    /// Cancels a task. [`Cancel::Running`] means that it runs at this moment,
    /// and that it will not run again. The closure is dropped in this call,
    /// unless it asked to be [`notified`](Timer::notified).
    pub fn cancel(&self, id: TimerId) -> Cancel<()> {
        self.engine.core.cancel(id).map(drop)
    }

    /// Cancels the tasks that go by a name, or the first `max` of them, and
    /// returns how many end as cancelled because of it; see
    /// [`Engine::cancel_by_name`].
    pub fn cancel_by_name(&self, name: &str, max: usize) -> usize {
        self.engine.cancel_by_name(name, max).count
    }

    /// Cancels a task and waits until it does not run any more; from within
    /// the task itself it does not wait.
    pub fn cancel_and_wait(&self, id: TimerId) -> Cancel<()> {
        let cancelled = self.cancel(id);
        self.engine.wait_unless_here(id, &cancelled);
        cancelled
    }

    /// What the engine's clock says.
    #[must_use]
    pub fn now(&self) -> Time {
        self.engine.now()
    }

    /// The account of all tasks.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.engine.ledger()
    }

    /// The engine underneath, for everything else that can be done with a
    /// timer: deadlines, rescheduling, reports, counts.
    #[must_use]
    pub fn engine(&self) -> &Engine<Task> {
        &self.engine
    }

    /// Stops at once and returns every task that had not ended; see
    /// [`Engine::shutdown`].
    pub fn shutdown(&self) -> Vec<Closed<Task>> {
        self.engine.shutdown()
    }

    /// First runs what is due once within `limit`; see [`Engine::drain`].
    pub fn drain(&self, limit: Duration) -> Vec<Closed<Task>> {
        self.engine.drain(limit)
    }
}

/// Sets up a [`TaskEngine`]; from [`TaskEngine::builder`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `start` is called"]
pub struct TaskBuilder {
    engine: Builder<Task>,
    workers: usize,
}

impl TaskBuilder {
    /// How many worker threads there are: one unless told otherwise.
    pub fn workers(mut self, workers: usize) -> TaskBuilder {
        self.workers = workers;
        self
    }

    /// The duration of a tick; see [`Builder::tick`].
    pub fn tick(mut self, tick: Duration) -> TaskBuilder {
        self.engine = self.engine.tick(tick);
        self
    }

    /// At most so many tasks are live; see [`Builder::max_timers`].
    pub fn max_timers(mut self, max: usize) -> TaskBuilder {
        self.engine = self.engine.max_timers(max);
        self
    }

    /// Which of the system's clocks is followed; see [`Builder::clock`].
    pub fn clock(mut self, clock: ClockSource) -> TaskBuilder {
        self.engine = self.engine.clock(clock);
        self
    }

    /// Starts the engine, its ticker and its workers.
    ///
    /// # Errors
    /// As [`Builder::start`]; and if there is to be no worker.
    pub fn start(self) -> Result<TaskEngine, StartError> {
        self.check()?;
        let engine = self.engine.start()?;
        worker::spawn(&engine, self.workers)?;
        Ok(TaskEngine { engine })
    }

    /// Starts the engine and its workers on a clock that stands still until it
    /// is told to move.
    ///
    /// # Errors
    /// As [`Builder::start_virtual`]; and if there is to be no worker.
    pub fn start_virtual(self) -> Result<(TaskEngine, VirtualClock<Task>), StartError> {
        self.check()?;
        let (engine, clock) = self.engine.start_virtual()?;
        worker::spawn(&engine, self.workers)?;
        Ok((TaskEngine { engine }, clock))
    }

    /// Starts the engine without a thread of its own: the caller's event loop
    /// drives it, and [`Driver::run_due`] runs the tasks there. The number of
    /// workers is of no account.
    ///
    /// # Errors
    /// As [`Builder::start_driven`].
    pub fn start_driven(self) -> Result<(TaskEngine, Driver<Task>), StartError> {
        let (engine, driver) = self.engine.start_driven()?;
        Ok((TaskEngine { engine }, driver))
    }

    fn check(&self) -> Result<(), StartError> {
        match self.workers {
            0 => Err(StartError::NoWorkers).inspect_err(observe::start_refused),
            _ => Ok(()),
        }
    }
}
