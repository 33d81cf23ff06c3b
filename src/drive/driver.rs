//! Driving an engine from the caller's own loop: an event loop that waits for a
//! descriptor or computes a timeout, or a frame loop.

use core::time::Duration;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use crate::engine::SharedCore;
use crate::sync::Arc;
use crate::timeline::Time;
use crate::wheel::Advance;

/// Drives an engine that was started with
/// [`Builder::start_driven`](crate::Builder::start_driven). `T` is its payload: for a
/// [`TaskEngine`](crate::TaskEngine) a [`Task`](crate::Task), and for
/// [`Timers`](crate::time::Timers) a [`Waker`](core::task::Waker).
///
/// On Linux and Android, a driver is a descriptor (`AsFd`) for epoll or mio, level- or
/// edge-triggered. It becomes readable when a timer is due; a thread that
/// schedules an earlier timer re-arms it. On every system,
/// [`Driver::timeout`] returns how long a loop may sleep.
///
/// Threads may share a driver and call it at the same time. Each due timer becomes
/// ready once. A call never blocks for a call of another thread.
///
/// Timers fire in its calls alone. If the driver is dropped, none fires any more, and the
/// engine keeps them until it's shut down. A [`drain`](crate::Engine::drain) in the loop itself
/// would see none fire: call it in another thread, and go on in the loop until `process_due`
/// returns [`Advance::ShutDown`].
///
/// After the engine is shut down or its last handle is dropped, the
/// descriptor becomes readable, and stays so unless it is read. The queues then return
/// [`RecvError::ShutDown`](crate::RecvError::ShutDown), and
/// [`Driver::process_due`] returns [`Advance::ShutDown`].
///
/// ```
/// use std::time::Duration;
/// use tickwheel::wheel::Advance;
/// use tickwheel::{Engine, Timer};
///
/// let (engine, driver) = Engine::builder().start_driven()?;
/// engine.schedule(Timer::after(Duration::from_millis(3), "frame 3"))?;
/// let queue = engine.queue(0);
/// let fired = loop {
///     // A frame of a game; or a wait for descriptors, for this long.
///     let frame = Duration::from_millis(16);
///     std::thread::sleep(driver.timeout().unwrap_or(frame).min(frame));
///     while driver.process_due(1_000) == Advance::More {}
///     if let Ok(expired) = queue.try_recv() {
///         break expired.into_payload();
///     }
/// };
/// assert_eq!(fired, "frame 3");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Driver<T> {
    pub(crate) core: Arc<SharedCore<T>>,
    process: ProcessFn<T>,
}

/// Serves due timers, within a budget.
pub(crate) type ProcessFn<T> = fn(&Driver<T>, usize) -> Advance;

impl<T> Driver<T> {
    pub(crate) fn new(core: Arc<SharedCore<T>>, process: ProcessFn<T>) -> Driver<T> {
        core.alarm.arm_for_caller(|| core.next_due());
        Driver { core, process }
    }

    /// Serves due timers as their kind demands, within `budget`, and arms the descriptor
    /// for the next deadline. Never blocks, unless a task or a waker does.
    ///
    /// | engine | what happens to a due timer | what the budget limits |
    /// |---|---|---|
    /// | [`Engine`](crate::Engine) | it moves into its queue | entries touched |
    /// | [`TaskEngine`](crate::TaskEngine) | its task runs in this thread; a panic is caught and counted | tasks run, and sixteen times as many entries |
    /// | [`Timers`](crate::time::Timers) | its waker is called | entries touched |
    ///
    /// Serves the timers that are due at the time of the call; timers that other
    /// threads add meanwhile may be left for the next call. If the budget runs
    /// out, the next call begins with the shards that this one did not reach. Tasks of one
    /// [shard](crate::Builder::shards) run in the order of their deadlines; those of other
    /// threads, and those with names, may run before earlier ones. A task that another one
    /// adds without a delay runs in the same pass, within the budget.
    ///
    /// Returns [`Advance::More`] if work may be left, as a budget of zero leaves whatever is
    /// due; the descriptor then stays readable, and raises a new event for an edge-triggered
    /// loop. Returns [`Advance::ShutDown`] if the engine was shut down, its queues are empty,
    /// and every [`notified`](crate::Timer::notified) task has run, but for those that a call in
    /// another thread is running; the loop may then end.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::TaskEngine;
    /// use tickwheel::wheel::Advance;
    ///
    /// let (timers, driver) = TaskEngine::builder().start_driven()?;
    /// let here = std::thread::current().id();
    /// timers.run_after(Duration::ZERO, move || {
    ///     assert_eq!(std::thread::current().id(), here);
    /// })?;
    /// assert_eq!(driver.process_due(100), Advance::Done);
    /// assert_eq!(timers.ledger().completed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Nested calls
    /// A task, or the waker of an awaited timer, that calls this for its own engine would run
    /// others inside itself.
    /// Such a call does nothing, because the outer call will run them. It returns
    /// [`Advance::Done`], or [`Advance::ShutDown`] if no work is left. A task may drive
    /// another engine.
    ///
    /// # Several threads
    /// Threads may call at the same time. Each due task runs once, in one of them. A call
    /// does not wait for what another call is delivering or running, and may return
    /// [`Advance::Done`] meanwhile. Tasks that a call has made ready do not wake a thread
    /// that sleeps on the descriptor: for tasks that take long, use workers.
    pub fn process_due(&self, budget: usize) -> Advance {
        (self.process)(self, budget)
    }

    /// Serves due timers of an engine whose tasks do not run here.
    pub(crate) fn serve_once(&self, budget: usize) -> Advance {
        if self.serve(&mut { budget }) {
            return self.done();
        }
        Advance::More
    }

    /// Moves due timers into their queues or to the sink, and arms the descriptor.
    /// Returns whether the budget was sufficient.
    pub(crate) fn serve(&self, budget: &mut usize) -> bool {
        let done = self.core.run_due(budget);
        self.core.confirm_next_due();
        self.core.alarm.arm_for_caller(|| self.core.next_due());
        done
    }

    /// Returns the answer for a call that has no work left for now.
    pub(crate) fn done(&self) -> Advance {
        if self.core.is_finished() { Advance::ShutDown } else { Advance::Done }
    }

    /// Returns whether work is left; if so, makes the descriptor readable and the
    /// next wake-up immediate.
    pub(crate) fn what_is_left(&self) -> Advance {
        let is_due = || self.core.next_due() <= self.core.tick_now();
        if self.core.ready_len(0) == 0 && !is_due() {
            return self.done();
        }
        self.core.request_run();
        self.core.alarm.call_again();
        Advance::More
    }

    /// Returns the time at which the engine next has work: never later than the
    /// earliest deadline, and earlier if timers cascade on the way, or were put off. Returns
    /// `None` if no timer will be due, for instance after the last one was
    /// cancelled, or after the engine was shut down and its last task has run.
    ///
    /// # Cost
    /// Reads one atomic of each shard. Locks the shard that is due first, and those whose
    /// earliest timer was cancelled or postponed since the last call.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let (engine, driver) = Engine::builder().start_driven()?;
    /// let lease = engine.schedule(Timer::after(Duration::from_secs(60), "lease"))?;
    /// assert!(driver.next_wakeup().is_some());
    /// engine.cancel(lease);
    /// assert_eq!(driver.next_wakeup(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Time> {
        let next = self.core.tick.start_of(self.core.confirm_next_due());
        (next < Time::MAX).then_some(next)
    }

    /// Returns the time left until [`Driver::next_wakeup`], for which a
    /// loop may sleep. Returns zero if that time has passed.
    ///
    /// `None` means that no timer will be due unless another thread
    /// schedules one. A loop that waits for the descriptor then sleeps until
    /// it is readable. A loop without a descriptor should end, or poll now and then, and a
    /// thread that schedules an earlier timer during its sleep has to wake it.
    /// Do not treat `None` as zero, because the loop would then spin.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        Some(self.next_wakeup()? - self.core.clock.now())
    }

    /// Blocks, in a model, until the descriptor would be readable: a timer is due, or
    /// another thread requires a call of the loop. Takes the place of epoll or mio, which
    /// a model's scheduler cannot see.
    ///
    /// Exists only with `--cfg loom` or `--cfg shuttle`.
    #[cfg(any(loom, shuttle))]
    pub fn wait(&self) {
        self.core.alarm.sleep_for_caller();
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl<T> AsFd for Driver<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let fd = self.core.alarm.fd();
        fd.expect("a driven engine has a descriptor")
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl<T> AsRawFd for Driver<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

debug!(it: [T] Driver<T> => "Driver" { next_wakeup: it.next_wakeup() });
