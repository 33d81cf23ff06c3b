//! A clock that only its owner moves, for games, simulations and tests with any
//! number of threads.

use std::fmt;
use std::time::Duration;

#[cfg(any(loom, shuttle, test))]
use crate::drive::driver::Driver;
use crate::hub::{Core, SharedCore};
use crate::sync::Arc;
use crate::timeline::Time;
use crate::wheel::Advance;

/// The time that expected workers have to come, in real time. It exceeds the start of a
/// thread on any machine.
const STAFFED_WITHIN: Duration = Duration::from_secs(30);

/// The maximum number of times that one tick is served, for timers added meanwhile,
/// before the clock goes on to the next tick.
const PASSES_AT_A_TIME: usize = 1_000;

/// Moves the clock to a time, touching at most so many entries. Returns whether that
/// sufficed.
pub(crate) type AdvanceFn<T> = fn(&Core<T>, Time, usize) -> bool;

/// The clock of an engine that was started with
/// [`Builder::start_virtual`](crate::Builder::start_virtual).
///
/// It drives the engine that runs in production, without the ticker thread.
/// Moving the clock moves due timers into their queues, where any number of
/// worker threads may be waiting.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Timer};
///
/// let (engine, clock) = Engine::builder().start_virtual()?;
/// engine.schedule(Timer::after(Duration::from_secs(3_600), "an hour later"))?;
/// clock.advance(Duration::from_secs(3_599));
/// assert_eq!(engine.queue(0).len(), 0);
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(engine.queue(0).recv()?.into_payload(), "an hour later");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Games and simulations
/// A frame loop decides how fast time passes. Time stands still while the loop does not
/// move the clock, and a factor makes it faster or slower. All timers follow, without a
/// call for any of them:
///
/// ```
/// use std::time::Duration;
/// use tickwheel::wheel::Advance;
/// use tickwheel::{Engine, Timer};
///
/// let (world, clock) = Engine::builder().shards(1).start_virtual()?;
/// world.schedule(Timer::after(Duration::from_secs(1), "the buff ends"))?;
/// let queue = world.queue(0);
/// let (frame, mut frames) = (Duration::from_millis(20), 0);
/// let (mut scale, mut paused) = (1.0, false);
/// let ended = loop {
///     if !paused {
///         // What the budget leaves undone is left for the next frame.
///         let _ = clock.advance_within(frame.mul_f64(scale), 1_000);
///     }
///     if let Ok(expired) = queue.try_recv() {
///         break expired.into_payload();
///     }
///     frames += 1;
///     paused = (10..100).contains(&frames);
///     scale = if frames < 100 { 1.0 } else { 0.5 };
/// };
/// // 10 frames at full speed, 90 in the pause, 80 in slow motion.
/// assert_eq!((ended, frames), ("the buff ends", 179));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # When timers become ready
/// Timers become ready only when the clock is moved. A timer that is due at
/// once, because its delay is zero or its time has passed, is in its queue
/// after the next move, which may be a move by zero:
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Timer};
///
/// let (engine, clock) = Engine::builder().start_virtual()?;
/// engine.schedule(Timer::after(Duration::ZERO, "at once"))?;
/// assert_eq!(engine.queue(0).len(), 0);
/// clock.advance(Duration::ZERO);
/// assert_eq!(engine.queue(0).recv()?.into_payload(), "at once");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Awaited timers
/// The clock of [`time::Timers`](crate::time::Timers) is of this kind, too. It has no
/// queues: moving it wakes the tasks whose timers become due, whatever runtime they run
/// on. [`run_until_settled`](VirtualClock::run_until_settled) waits for them at each tick.
pub struct VirtualClock<T> {
    core: Arc<SharedCore<T>>,
    /// Moves the clock if due timers go to no queue.
    advance: Option<AdvanceFn<T>>,
}

impl<T> VirtualClock<T> {
    pub(crate) fn new(core: Arc<SharedCore<T>>) -> VirtualClock<T> {
        VirtualClock {
            core,
            advance: None,
        }
    }

    /// Moves the clock with [`Core::advance_taking`]. Calls it through a pointer once for
    /// each move, rather than once for each timer that is taken.
    pub(crate) fn taking(self, advance: AdvanceFn<T>) -> VirtualClock<T> {
        VirtualClock {
            advance: Some(advance),
            ..self
        }
    }

    /// Returns the clock's time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.core.clock.now()
    }

    /// Moves the clock forward, and returns when every timer due by the new
    /// time is in its queue. Timers that other threads schedule for the past
    /// during the call may be left out. Therefore the call ends, however fast workers
    /// schedule timers with no delay; the next call serves these.
    ///
    /// Waits for no worker, and runs no code of the caller but the wakers of awaited timers.
    /// A task may call it, and so may several threads at once.
    ///
    /// A repeating timer's firings become due one after the other, each when
    /// the previous one has ended; see [`MissedTicks`](crate::MissedTicks).
    ///
    /// # Cost
    /// Grows with the number of due timers, not with the length of the jump.
    pub fn advance(&self, by: Duration) {
        self.advance_to(self.now() + by);
    }

    /// Moves the clock forward to an absolute time; see
    /// [`advance`](VirtualClock::advance). Leaves the clock unchanged if
    /// that time has passed.
    pub fn advance_to(&self, time: Time) {
        self.move_to(time, usize::MAX);
    }

    /// Touches at most `budget` entries. Returns whether that sufficed.
    fn move_to(&self, time: Time, budget: usize) -> bool {
        match self.advance {
            None => self.core.advance_within(time, budget),
            Some(advance) => advance(&self.core, time, budget),
        }
    }

    /// Moves the clock forward as [`advance`](VirtualClock::advance) does, but touches
    /// at most `budget` entries. The clock stands at the new time in any case.
    ///
    /// Returns [`Advance::More`] if the budget did not suffice. The next call
    /// goes on with the timers that are left, in their order, even if it moves
    /// the clock by zero. Returns [`Advance::ShutDown`] if the engine was shut
    /// down and its queues are empty.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::wheel::Advance;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// let frame = Duration::from_millis(16);
    /// for n in 0..5 {
    ///     engine.schedule(Timer::after(frame, n))?;
    /// }
    /// assert_eq!(clock.advance_within(frame, 3), Advance::More);
    /// assert_eq!(engine.queue(0).len(), 3);
    /// assert_eq!(clock.advance_within(Duration::ZERO, 3), Advance::Done);
    /// assert_eq!(engine.queue(0).len(), 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advance_within(&self, by: Duration, budget: usize) -> Advance {
        match self.move_to(self.now() + by, budget) {
            false => Advance::More,
            true if self.core.is_finished() => Advance::ShutDown,
            true => Advance::Done,
        }
    }

    /// Moves the clock in a model, as time itself would, and wakes the ticker or the
    /// caller's loop if either sleeps until then. Leaves due timers to the ticker or to
    /// the loop.
    ///
    /// Exists only with `--cfg loom` or `--cfg shuttle`, for engines of
    /// [`Builder::start_model`](crate::Builder::start_model) and
    /// [`Builder::start_driven_model`](crate::Builder::start_driven_model). Call
    /// [`advance_to`](VirtualClock::advance_to) for an engine of
    /// [`Builder::start_virtual`](crate::Builder::start_virtual), because that has nobody
    /// else to serve its timers.
    #[cfg(any(loom, shuttle))]
    pub fn pass_to(&self, time: Time) {
        self.core.clock.set(time);
        self.core.alarm.time_passed();
    }

    /// Returns a driver for the caller's loop, in a model of a driven engine.
    ///
    /// Exists only with `--cfg loom` or `--cfg shuttle`, for engines of
    /// [`Builder::start_driven_model`](crate::Builder::start_driven_model).
    #[cfg(any(loom, shuttle, test))]
    #[must_use]
    pub fn driver(&self) -> Driver<T> {
        Driver::new(Arc::clone(&self.core))
    }

    /// Makes [`run_until`](VirtualClock::run_until) wait until `count` workers of a
    /// queue have come, before it moves the clock. Defaults to zero.
    ///
    /// A worker comes when its [`Queue`](crate::Queue) handle waits in `recv` or
    /// `recv_timeout` for the first time. Workers that came before this call, and those
    /// that have left, count too. Workers of a [`TaskEngine`](crate::TaskEngine) count
    /// from its start; they need not be expected.
    ///
    /// # Panics
    /// Panics if there is no queue with that number.
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Time, Timer};
    ///
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// for seconds in 1..=3 {
    ///     engine.schedule(Timer::after(Duration::from_secs(seconds), ()))?;
    /// }
    /// let worker = thread::spawn({
    ///     let (engine, queue) = (engine.clone(), engine.queue(0));
    ///     move || queue.map(|_| engine.now()).collect::<Vec<_>>()
    /// });
    /// clock.expect_workers(0, 1); // the thread may not have begun
    /// clock.run_until(Time::from_secs(3));
    /// engine.shutdown();
    /// assert_eq!(worker.join().unwrap(), [1, 2, 3].map(Time::from_secs));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expect_workers(&self, queue: usize, count: usize) {
        let queues = self.core.queues();
        assert!(queue < queues, "no queue {queue}: this engine has {queues}");
        self.core.census.expect(queue, count);
    }

    /// Moves the clock from one due tick to the next, up to `time`. Blocks at each
    /// tick until the workers are idle: every queue that has workers is empty,
    /// and each worker is back in `recv`.
    ///
    /// A worker is a [`Queue`](crate::Queue) handle that has waited in `recv` or
    /// `recv_timeout` before, or a thread of a [`TaskEngine`](crate::TaskEngine). If
    /// threads of the caller's own have just been started,
    /// [`expect_workers`](VirtualClock::expect_workers) makes this call wait for them. A
    /// handle that is awaited ([`recv_async`](crate::Queue::recv_async)) is no worker.
    /// Timers that tasks schedule on the way are served on the way; those without a delay
    /// are served at the same tick.
    ///
    /// Always returns. If each task adds another without a delay, a thousand of
    /// them run at one tick, and the next runs at the next due tick or at `time`.
    ///
    /// # Panics
    /// Panics if the calling thread is a busy worker of the same engine, for instance
    /// within a task, because the call would wait for itself. Such a thread may call
    /// [`advance`](VirtualClock::advance). Panics if an expected worker has not come
    /// within thirty seconds of real time. Panics on the clock of awaited timers, which
    /// have no workers; call [`run_until_settled`](VirtualClock::run_until_settled) there.
    pub fn run_until(&self, time: Time) {
        assert!(
            self.advance.is_none(),
            "run_until: awaited timers have no workers, so that time would not wait for any \
             task: call `run_until_settled` or `advance`"
        );
        self.run_until_settled(time, || ());
    }

    /// Moves the clock as [`run_until`](VirtualClock::run_until) does, for tests with tasks
    /// to await. At each tick, once the workers are idle, calls `settle`, which runs the
    /// tasks or blocks until their runtime is idle.
    ///
    /// Whatever a task does at a tick, it therefore does at that time, and each task
    /// behaves the same in every run. The order of tasks within a tick is up to their
    /// executor. An executor of one thread can be the closure:
    ///
    /// ```
    /// use std::pin::pin;
    /// use std::task::{Context, Poll, Waker};
    /// use std::time::Duration;
    /// use tickwheel::Time;
    /// use tickwheel::time::Timers;
    ///
    /// let (timers, clock) = Timers::builder().start_virtual()?;
    /// let mut task = pin!(async {
    ///     timers.sleep(Duration::from_secs(1_800)).await;
    ///     timers.sleep(Duration::from_secs(600)).await;
    ///     timers.now()
    /// });
    /// let (mut cx, mut ended) = (Context::from_waker(Waker::noop()), None);
    /// clock.run_until_settled(Time::from_secs(3_600), || {
    ///     if ended.is_none() {
    ///         if let Poll::Ready(time) = task.as_mut().poll(&mut cx) {
    ///             ended = Some(time);
    ///         }
    ///     }
    /// });
    /// assert_eq!(ended, Some(Time::from_secs(2_400)));
    /// # Ok::<(), tickwheel::StartError>(())
    /// ```
    ///
    /// tokio's metrics, which are stable, tell when a runtime of any number of threads is
    /// idle. This needs no change to the tasks, and covers those that libraries spawn:
    ///
    /// ```ignore
    /// use std::time::{Duration, Instant};
    /// use tokio::runtime::RuntimeMetrics;
    ///
    ///     /// Blocks until no worker of a tokio runtime has a task to run.
    ///     ///
    ///     /// A worker's count is odd while it is parked. If no count changes between two readings,
    ///     /// all workers were parked at once, and no task was queued outside of them.
    /// fn settle(metrics: &RuntimeMetrics) {
    ///     let counts = || -> Vec<u64> {
    ///         let workers = 0..metrics.num_workers();
    ///         workers.map(|n| metrics.worker_park_unpark_count(n)).collect()
    ///     };
    ///     let begun = Instant::now();
    ///     loop {
    ///         let before = counts();
    ///         let parked = before.iter().all(|count| count % 2 == 1);
    ///         if parked && metrics.global_queue_depth() == 0 && counts() == before {
    ///             return;
    ///         }
    ///         assert!(begun.elapsed() < Duration::from_secs(30), "a task does not wait");
    ///         std::thread::yield_now();
    ///     }
    /// }
    ///
    /// let metrics = runtime.handle().metrics();
    /// clock.run_until_settled(Time::from_secs(3_600), || settle(&metrics));
    /// ```
    ///
    /// # What does not count
    /// * I/O, `spawn_blocking` and threads of one's own are unknown to the runtime's
    ///   metrics. A task that waits for them is idle, and time passes.
    /// * The future of `block_on` is not a task of the runtime. A test may move the clock
    ///   from there if the runtime has other threads.
    /// * `tokio::time::pause` moves the timers of a runtime with one thread. It does not
    ///   move this clock, nor does this clock move those timers.
    ///
    /// A call from within a waker that this clock runs only moves the clock. The outer
    /// call then wakes the tasks that have become due.
    ///
    /// # Panics
    /// Panics if `settle` does, and where [`run_until`](VirtualClock::run_until) panics
    /// because of workers.
    pub fn run_until_settled(&self, time: Time, mut settle: impl FnMut()) {
        if self.core.enter_loop().is_none() {
            return self.advance_to(time);
        }
        if let Err(error) = self.core.wait_until_staffed(STAFFED_WITHIN) {
            panic!("run_until: {error}");
        }
        let core = &self.core;
        let mut serve = |time| self.serve_at(time, &mut settle);
        serve(self.now());
        let last = core.tick.tick_at(time);
        loop {
            let next = core.next_due_after(core.tick_now());
            if next > last {
                break;
            }
            serve(core.tick.start_of(next));
        }
        serve(time);
    }

    /// Moves the clock to `time`, and serves the timers due then, including those that
    /// are added meanwhile. Nobody can add more once the workers and tasks are idle.
    fn serve_at(&self, time: Time, settle: &mut impl FnMut()) {
        for _ in 0..PASSES_AT_A_TIME {
            self.advance_to(time);
            self.core.wait_until_idle();
            settle();
            if self.core.next_due() > self.core.tick_now() {
                break;
            }
        }
    }
}

impl<T> fmt::Debug for VirtualClock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualClock")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}
