//! Closures that run later, on the engine's own workers.

mod task;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod worker;

pub use task::{Firing, Task};

use std::ops::Deref;
use std::time::Duration;

use crate::drive::{Builder, Family, ProcessFn, Sealed, StartError, WeakEngine, check_workers};
use crate::engine::{Engine, Unstarted};
use crate::id::TimerId;
use crate::timeline::PointInTime;
use crate::timer::{Cancel, Refusal, Refused, Timer};

/// Runs closures later, on worker threads of its own.
///
/// A panic in a closure is caught and counted; the worker continues. Dropping
/// the last handle shuts the engine down and drops the closures that have not
/// run, without waiting for any thread. At the end of the process, running
/// closures are cut off; see [`Engine`](Engine#the-end-of-the-process). A
/// closure that holds a handle keeps the engine alive until the closure has
/// ended or `shutdown` is called; one that holds a [`WeakEngine`](crate::WeakEngine) does not.
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
///
/// For all that tasks have in common with other timers, such as walks, names, reports and
/// counts, it dereferences to [`Engine<Task>`](Engine). All tasks are in queue 0, whose
/// workers each hold one task. A task that another thread takes from there does not run, and one
/// that is given to [`Engine::schedule`] itself can't re-arm itself.
#[derive(Clone, Debug)]
pub struct TaskEngine {
    engine: Engine<Task>,
}

impl Deref for TaskEngine {
    type Target = Engine<Task>;

    #[inline]
    fn deref(&self) -> &Engine<Task> {
        &self.engine
    }
}

impl Family for TaskEngine {}

impl Sealed for TaskEngine {
    type Payload = Task;

    const PROCESS: ProcessFn<Task> = worker::process_due;

    fn of(engine: Engine<Task>) -> TaskEngine {
        TaskEngine { engine }
    }

    fn start_workers(&self, count: usize) -> Result<(), StartError> {
        let workers = &self.engine.core().workers;
        let start = |number| worker::start(&self.engine, number);
        let started = workers.set_wanted(count, || self.is_shut_down(), start);
        started.ok_or(StartError::ShutDown)?.map_err(StartError::Thread)
    }
}

impl TaskEngine {
    /// Returns a builder with the default settings.
    pub fn builder() -> Builder<TaskEngine> {
        Builder::new().measure_work(true)
    }

    /// Returns a handle that does not keep the engine alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakEngine<TaskEngine> {
        WeakEngine::to(&self.engine)
    }

    /// Runs `task` once, `delay` from now.
    ///
    /// # Errors
    /// Returns the closure if the engine is full, or was shut down or is draining. The caller may
    /// run it at once, or try again.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Refusal, TaskEngine};
    ///
    /// let timers = TaskEngine::builder().start()?;
    /// timers.shutdown();
    /// let flush = || println!("flushed");
    /// let refused = timers.run_after(Duration::from_secs(1), flush).unwrap_err();
    /// assert_eq!(refused.reason(), Refusal::ShutDown);
    /// let flush = refused.into_payload();
    /// flush(); // here and now, then
    /// # Ok::<(), tickwheel::StartError>(())
    /// ```
    pub fn run_after<F>(&self, delay: Duration, task: F) -> Result<TimerId, Refused<Timer<F>>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.run_silent(Timer::after(delay, task))
    }

    /// Runs `task` once, at a [`Time`](crate::Time) or an [`Instant`](std::time::Instant); see
    /// [`Timer::at`].
    ///
    /// # Errors
    /// Fails as [`run_after`](TaskEngine::run_after) does. Also returns the closure if
    /// `time` is an instant and the engine does not follow the monotonic clock
    /// ([`Refusal::InstantOnOtherClock`](crate::Refusal::InstantOnOtherClock)).
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use tickwheel::TaskEngine;
    ///
    /// let timers = TaskEngine::builder().start()?;
    /// let expires = Instant::now() + Duration::from_millis(5);
    /// let (tell, told) = std::sync::mpsc::channel();
    /// timers.run_at(expires, move || tell.send(Instant::now()).unwrap())?;
    /// assert!(told.recv()? >= expires);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_at<F>(&self, time: impl PointInTime, task: F) -> Result<TimerId, Refused<Timer<F>>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.run_silent(Timer::at(time, task))
    }

    /// Schedules a task that a shutdown, a cancel by [`Engine::cancel`] or a replacement has
    /// given back. For a closure, call [`run`](TaskEngine::run).
    ///
    /// # Errors
    /// Fails as [`run_after`](TaskEngine::run_after) does. A task that runs once can't repeat:
    /// it ends after its first run.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{TaskEngine, Timer};
    ///
    /// let [old, new] = [TaskEngine::builder().start()?, TaskEngine::builder().start()?];
    /// let minute = Duration::from_secs(60);
    /// old.run_every(minute, |_| println!("a minute"))?;
    /// let task = old.shutdown().remove(0).payload.unwrap();
    /// new.schedule(Timer::every(minute, task))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule(&self, timer: Timer<Task>) -> Result<TimerId, Refused<Timer<Task>>> {
        self.engine.schedule(timer.into_task(|task| task))
    }

    /// Schedules a closure that runs at most once and does not see its [`Firing`].
    /// Inlined where the timer is made, because the compiler then knows that it is plain.
    #[inline(always)]
    fn run_silent<F>(&self, timer: Timer<F>) -> Result<TimerId, Refused<Timer<F>>>
    where
        F: FnOnce() + Send + 'static,
    {
        let scheduled = self.engine.schedule(timer.into_task(Task::silent));
        scheduled.map_err(|refused| refused.map(Task::into_closure))
    }

    /// Runs a closure once, with all settings of a one-shot [`Timer`]: a name, a
    /// report, a tolerance. The closure may be [`FnOnce`] and is dropped with what it
    /// holds if the timer ends without running it, unless the timer is
    /// [`notified`](Timer::notified). A [`Firing::rearm`] of it is refused
    /// ([`Refusal::NotRearmable`](crate::Refusal::NotRearmable)).
    ///
    /// The closure's argument is written as for [`run`](TaskEngine::run): `|_|`, or
    /// `|firing: Firing|` if the closure calls its methods.
    ///
    /// # Errors
    /// Fails as [`run_after`](TaskEngine::run_after) does. Also returns the closure if
    /// the timer has a period ([`Refusal::Repeating`](crate::Refusal::Repeating)).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Firing, TaskEngine, Time, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let (reply, replied) = std::sync::mpsc::sync_channel(1);
    /// let give_up = move |firing: Firing| {
    ///     let reply = reply; // moved out of the closure, which runs once
    ///     reply.send(firing.name().map(str::to_owned)).unwrap();
    /// };
    /// timers.run_once(Timer::after(Duration::from_secs(3), give_up).named("request 7"))?;
    /// clock.run_until(Time::from_secs(3));
    /// assert_eq!(replied.recv()?.as_deref(), Some("request 7"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn run_once<F>(&self, timer: Timer<F>) -> Result<TimerId, Refused<Timer<F>>>
    where
        F: FnOnce(Firing) + Send + 'static,
    {
        if timer.repeat.is_some() {
            return Err(Refused::new(Refusal::Repeating, timer));
        }
        let scheduled = self.engine.schedule(timer.into_task(Task::once));
        scheduled.map_err(|refused| refused.map(Task::into_closure))
    }

    /// Runs `task` repeatedly, the k-th time k periods from now. Runs of
    /// one task never overlap; runs that a slow run delays are caught up
    /// (see [`MissedTicks::CatchUp`](crate::MissedTicks::CatchUp)).
    ///
    /// # Errors
    /// Returns the closure if the period is zero or too short, or for any other
    /// [`Refusal`](crate::Refusal) of a timer.
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
    pub fn run_every<F>(&self, period: Duration, task: F) -> Result<TimerId, Refused<Timer<F>>>
    where
        F: FnMut(Firing) + Send + 'static,
    {
        self.run(Timer::every(period, task))
    }

    /// Schedules a closure with all settings of a [`Timer`]: times, missed ticks,
    /// a name, a report. All tasks are in queue 0. For a closure that can run only once,
    /// see [`run_once`](TaskEngine::run_once).
    ///
    /// A closure that calls methods of its argument names the argument's type:
    /// `|firing: Firing|`. Rust needs the type at the first method call, before
    /// it has seen that the timer goes to a task engine. `|_|` needs no type, and
    /// [`run_every`](TaskEngine::run_every) needs none in either case.
    ///
    /// # Errors
    /// Fails as [`run_every`](TaskEngine::run_every) does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Firing, TaskEngine, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let second = Duration::from_secs(1);
    /// timers.run(Timer::every(second, |_| println!("tick")).times(2))?;
    /// let beat = |firing: Firing| println!("beat {}", firing.number());
    /// timers.run(Timer::every(second, beat).times(2).named("beats"))?;
    /// clock.run_until(timers.now() + 9 * second);
    /// assert_eq!(timers.ledger().completed, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run<F>(&self, timer: Timer<F>) -> Result<TimerId, Refused<Timer<F>>>
    where
        F: FnMut(Firing) + Send + 'static,
    {
        let scheduled = self.engine.schedule(timer.into_task(Task::each));
        scheduled.map_err(|refused| refused.map(Task::into_closure))
    }

    /// Creates a task that is started later, or never; see [`Engine::create`]. The closure is
    /// one that may run again; if it gives away what it captured, it takes that out of an
    /// `Option`.
    ///
    /// # Errors
    /// Fails as [`run_every`](TaskEngine::run_every) does.
    pub fn create<F>(&self, timer: Timer<F>) -> Result<Unstarted<Task>, Refused<Timer<F>>>
    where
        F: FnMut(Firing) + Send + 'static,
    {
        let created = self.engine.create(timer.into_task(Task::each));
        created.map_err(|refused| refused.map(Task::into_closure))
    }

    /// Cancels a task. [`Cancel::Running`] means that the task is running
    /// and will not run again. Drops the closure in this call, unless the
    /// task is [`notified`](Timer::notified), and returns [`Cancel::Cancelled`] in both
    /// cases, never [`Cancel::Notified`]; to tell them apart, call [`Engine::cancel`].
    pub fn cancel(&self, id: TimerId) -> Cancel<()> {
        self.engine.core().cancel_then(id, Cancel::without_payload)
    }

    /// Cancels many tasks, and returns the answer of [`cancel`](TaskEngine::cancel) for each,
    /// with its id, in the order of `ids`. Takes fewer locks than single calls; see
    /// [`Engine::cancel_many`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Cancel, TaskEngine};
    ///
    /// let timers = TaskEngine::builder().start()?;
    /// let retry = |n| timers.run_after(Duration::from_secs(9), move || println!("retry {n}"));
    /// let ids = [retry(1)?, retry(2)?];
    /// timers.cancel(ids[0]);
    /// let answers = timers.cancel_many(&ids);
    /// assert_eq!(answers, [(ids[0], Cancel::Gone), (ids[1], Cancel::Cancelled(()))]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_many(&self, ids: &[TimerId]) -> Vec<(TimerId, Cancel<()>)> {
        without_payloads(self.engine.cancel_many(ids))
    }

    /// Cancels the tasks that have this name, oldest first: all of them if `max` is
    /// `None`, otherwise at most `max`. Returns the answer of [`cancel`](TaskEngine::cancel)
    /// for each, with its id. A task in its last run is [`Cancel::Running`], and does not
    /// count towards `max`. See [`Engine::cancel_by_name`].
    pub fn cancel_by_name(
        &self,
        name: &str,
        max: impl Into<Option<usize>>,
    ) -> Vec<(TimerId, Cancel<()>)> {
        without_payloads(self.engine.cancel_by_name(name, max))
    }

    /// Cancels all tasks, without shutting the engine down. Returns the answer of
    /// [`cancel`](TaskEngine::cancel) for each that had not ended, with its id; see
    /// [`Engine::cancel_all`].
    pub fn cancel_all(&self) -> Vec<(TimerId, Cancel<()>)> {
        without_payloads(self.engine.cancel_all())
    }

    /// Cancels a task and blocks until it is no longer running and, if it is
    /// [`notified`](Timer::notified), has been told of the end. Returns the answer of
    /// [`cancel`](TaskEngine::cancel); see [`Engine::cancel_and_wait`]. Does not block when
    /// called from within the task itself. Two tasks that wait for each other block for ever.
    pub fn cancel_and_wait(&self, id: TimerId) -> Cancel<()> {
        self.engine.cancel_and_wait(id).without_payload()
    }

    /// Blocks until every worker has ended. Tasks then no longer run, and all
    /// values that tasks held have been dropped, even if reports are unread.
    ///
    /// Workers end after [`shutdown`](Engine::shutdown) or
    /// [`drain`](Engine::drain), when the running tasks have returned
    /// and the [`notified`](Timer::notified) tasks have run. Without one of
    /// these calls, `join` blocks for ever. It returns at once when called
    /// from a task, or if a [`Driver`](crate::Driver) runs the tasks.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tickwheel::TaskEngine;
    ///
    /// let timers = TaskEngine::builder().workers(2).start()?;
    /// let connection = Arc::new("connection");
    /// let mine = Arc::clone(&connection);
    /// timers.run_every(Duration::from_millis(1), move |_| println!("{mine}"))?;
    /// timers.shutdown();
    /// timers.join();
    /// assert_eq!(Arc::into_inner(connection), Some("connection"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join(&self) {
        self.engine.core().workers.wait_until_ended();
    }

    /// Returns the number of workers that the engine is to have: the number given to
    /// [`Builder::workers`](crate::Builder::workers) or, last, to
    /// [`set_workers`](TaskEngine::set_workers). Returns zero if a
    /// [`Driver`](crate::Driver) runs the tasks.
    ///
    /// Surplus workers that have yet to leave are not counted.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.engine.core().workers.wanted()
    }

    /// Sets the number of worker threads, from 1 to 4,096, while the engine runs.
    ///
    /// If the number grows, the new workers serve waiting tasks at once, even if all
    /// others run long tasks. If it falls, surplus workers leave: idle ones at once, busy
    /// ones when their tasks return. This call does not wait for them. More tasks than
    /// `workers` may therefore run for a while. Growing again keeps surplus workers that
    /// have not left, before it starts others.
    ///
    /// A task may call this, and may thereby dismiss its own worker. If several threads
    /// call at the same time, the calls take effect one after the other. A shutdown ends
    /// the leaving: workers that have not left serve until all
    /// [`notified`](crate::Timer::notified) tasks have run.
    ///
    /// # Errors
    /// Returns [`StartError::Setting`] for zero and above 4,096, [`StartError::ShutDown`]
    /// after a shutdown, and [`StartError::Driven`] if a [`Driver`](crate::Driver) runs the
    /// tasks. The number of workers is then unchanged.
    ///
    /// Returns [`StartError::Thread`] if the system starts no more threads. Workers that
    /// this call has started remain, and [`workers`](TaskEngine::workers) counts them.
    ///
    /// # Cost
    /// Starts a thread for each worker that is added. Wakes all idle workers if
    /// the number falls.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::TaskEngine;
    ///
    /// let timers = TaskEngine::builder().start()?;
    /// let (finish, finished) = std::sync::mpsc::channel();
    /// timers.run_after(Duration::ZERO, move || finished.recv().unwrap())?;
    /// timers.run_after(Duration::ZERO, move || finish.send(()).unwrap())?;
    /// timers.set_workers(2)?; // one for each task: the first waits for the second
    /// timers.drain(Duration::from_secs(60)); // returns when both have begun
    /// timers.join();
    /// assert_eq!(timers.ledger().completed, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_workers(&self, workers: usize) -> Result<(), StartError> {
        if self.workers() == 0 {
            return Err(StartError::Driven);
        }
        check_workers(workers)?;
        self.start_workers(workers)?;
        self.engine.core().doorbell(0).wake_receivers();
        Ok(())
    }
}

/// Drops the closures from the answers.
fn without_payloads(answers: Vec<(TimerId, Cancel<Task>)>) -> Vec<(TimerId, Cancel<()>)> {
    answers.into_iter().map(|(id, answer)| (id, answer.without_payload())).collect()
}

impl Builder<TaskEngine> {
    /// Sets the number of worker threads, up to 4,096. Defaults to one.
    /// [`TaskEngine::set_workers`] changes it while the engine runs. An engine that a
    /// [`Driver`](crate::Driver) drives has none.
    pub fn workers(mut self, workers: usize) -> Builder<TaskEngine> {
        self.workers = workers;
        self
    }
}
