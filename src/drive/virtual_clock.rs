//! A clock that only its owner moves, for games, simulations and tests with any
//! number of threads and engines.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc as StdArc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::clock::Clock;
use crate::engine::Core;
use crate::sync::{Arc, Lock};
use crate::tick::Tick;
use crate::timeline::Time;
use crate::wheel::Advance;

/// The time that expected workers have to come, in real time. It exceeds the start of a
/// thread on any machine.
const STAFFED_WITHIN: Duration = Duration::from_secs(30);

/// The maximum number of times that one moment is served, for timers added meanwhile,
/// before the clock goes on.
const PASSES_AT_A_TIME: usize = 1_000;

/// A clock that only its owner moves, for any number of engines.
///
/// It drives the engines that run in production, without their ticker threads. An engine
/// starts on a clock of its own with
/// [`Builder::start_virtual`](crate::Builder::start_virtual), or on a given one with
/// [`Builder::start_on`](crate::Builder::start_on). Moving the clock moves due timers into
/// their queues, where any number of worker threads may be waiting, and wakes the tasks
/// whose sleeps are over. Clones are one clock.
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
/// # Several engines
/// A service often has tasks, sleeps and timers with payloads, each in an engine of its
/// kind. One clock moves them in step, and
/// [`run_until_settled`](VirtualClock::run_until_settled) waits for all of them at each
/// tick. (A [`drain`](crate::Engine::drain) serves its own engine only, the others when the clock
/// moves next.) Where due times coincide, engines are served in the order in which they started.
/// Each tick visits all of them, and so does each start, which also frees what engines that have
/// ended held: rooms by the thousand go faster with one engine.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::time::Timers;
/// use tickwheel::{Engine, TaskEngine, Time, Timer, VirtualClock};
///
/// let clock = VirtualClock::new();
/// let sessions = Engine::builder().start_on(&clock)?;
/// let tasks = TaskEngine::builder().start_on(&clock)?;
/// let timers = Timers::builder().start_on(&clock)?;
/// let second = Duration::from_secs(1);
/// sessions.schedule(Timer::after(second, "session 7"))?;
/// tasks.run_after(2 * second, || println!("two seconds"))?;
/// clock.run_until_settled(Time::from_secs(3), || {
///     // Here the program's async tasks would be polled.
/// });
/// assert_eq!([sessions.now(), tasks.now(), timers.now()], [clock.now(); 3]);
/// assert_eq!(sessions.queue(0).recv()?.into_payload(), "session 7");
/// assert_eq!(tasks.ledger().completed, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct VirtualClock {
    shared: StdArc<Shared>,
}

struct Shared {
    time: Clock,
    /// Replaced as a whole by each new engine: whoever moves the clock goes through the
    /// engines without a lock, because wakers run meanwhile.
    engines: Lock<Engines>,
    /// The engine with which the next move begins: that after the one that spent the budget.
    first: AtomicUsize,
}

type Engines = StdArc<[StdArc<dyn Follower + Send + Sync>]>;

/// An engine, as a clock sees it.
trait Follower {
    /// Serves what has become due, touching at most `budget` entries. Returns whether
    /// that sufficed.
    fn serve(&self, budget: &mut usize) -> bool;
    /// The earliest time at which the engine has something to do, later than now unless
    /// overdue timers count.
    fn next_due(&self, even_overdue: bool) -> Option<Time>;
    fn wait_until_staffed(&self) -> Result<(), String>;
    fn wait_until_idle(&self);
    fn is_idle(&self) -> bool;
    fn is_in_loop(&self) -> bool;
    fn wakes_tasks(&self) -> bool;
    fn is_finished(&self) -> bool;
    fn has_ended(&self) -> bool;
    #[cfg(any(loom, shuttle))]
    fn time_passed(&self);
}

struct Member<T>(Arc<Core<T>>);

impl<T> Follower for Member<T> {
    fn serve(&self, budget: &mut usize) -> bool {
        self.0.run_due_at_moved_clock(budget)
    }

    fn next_due(&self, even_overdue: bool) -> Option<Time> {
        let next =
            if even_overdue { self.0.next_due() } else { self.0.next_due_after(self.0.tick_now()) };
        (next < Tick::MAX).then(|| self.0.tick.start_of(next))
    }

    fn wait_until_staffed(&self) -> Result<(), String> {
        self.0.census.wait_until_staffed(STAFFED_WITHIN, || self.0.is_shut_down())
    }

    fn wait_until_idle(&self) {
        self.0.census.wait_until_idle(|queue| self.0.ready_len(queue) == 0);
    }

    fn is_idle(&self) -> bool {
        self.0.census.is_idle(|queue| self.0.ready_len(queue) == 0)
    }

    fn is_in_loop(&self) -> bool {
        self.0.is_in_loop()
    }

    fn wakes_tasks(&self) -> bool {
        self.0.sink.is_some() && !self.0.is_shut_down()
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    fn has_ended(&self) -> bool {
        self.0.is_finished() && !self.0.census.has_busy()
    }

    #[cfg(any(loom, shuttle))]
    fn time_passed(&self) {
        self.0.alarm.time_passed();
    }
}

// A panic of a waker that a move calls leaves the clock and the list of engines as they are.
impl UnwindSafe for VirtualClock {}
impl RefUnwindSafe for VirtualClock {}

impl Default for VirtualClock {
    fn default() -> VirtualClock {
        VirtualClock::new()
    }
}

impl VirtualClock {
    /// Returns a clock that stands at [`Time::START`], for
    /// [`Builder::start_on`](crate::Builder::start_on).
    #[must_use]
    pub fn new() -> VirtualClock {
        VirtualClock::starting_at(Time::START)
    }

    /// Returns a clock that stands at `start`.
    #[must_use]
    pub fn starting_at(start: Time) -> VirtualClock {
        VirtualClock {
            shared: StdArc::new(Shared {
                time: Clock::virtual_at(start),
                engines: Lock::new(StdArc::new([])),
                first: AtomicUsize::new(0),
            }),
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.time
    }

    /// Makes the clock move an engine that follows it. Forgets those that have ended.
    pub(crate) fn attach<T: Send + 'static>(&self, core: &Arc<Core<T>>) {
        let member: StdArc<dyn Follower + Send + Sync> = StdArc::new(Member(Arc::clone(core)));
        let mut engines = self.shared.engines.lock();
        let others = engines.iter().filter(|other| !other.has_ended());
        *engines = others.cloned().chain([member]).collect();
    }

    fn engines(&self) -> Engines {
        StdArc::clone(&self.shared.engines.lock())
    }

    /// Returns the clock's time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.shared.time.now()
    }

    /// Moves the clock forward, and returns when every timer due by the new
    /// time is in its queue. Timers that other threads or wakers schedule for the
    /// past during the call may be left out. Therefore the call ends, however fast workers
    /// schedule timers with no delay; the next call serves these.
    ///
    /// Waits for no worker, and runs no code of the caller but the wakers of tasks that await
    /// timers or queues. A task may call it, and so may several threads at once: a call then
    /// may return while another one still delivers what both have found due.
    ///
    /// A repeating timer's firings become due one after the other, each when
    /// the previous one has ended; see [`MissedTicks`](crate::MissedTicks).
    ///
    /// The order of deadlines holds within a shard. A jump over several ticks serves one
    /// shard after the other: the timers of another thread, and those with names, may come
    /// before earlier ones. [`run_until`](VirtualClock::run_until) goes from tick to tick.
    ///
    /// # Cost
    /// Grows with the number of timers that are due or share their slots, not with the length of
    /// the jump.
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
    fn move_to(&self, time: Time, mut budget: usize) -> bool {
        self.shared.time.set(time);
        let (engines, first) = (self.engines(), self.shared.first.load(Ordering::Relaxed));
        let (mut turns, mut next) = ((first..first + engines.len()), first);
        let is_done = turns.all(|turn| {
            next += usize::from(budget > 0);
            engines[turn % engines.len()].serve(&mut budget)
        });
        self.shared.first.store(if is_done { 0 } else { next % engines.len() }, Ordering::Relaxed);
        is_done
    }

    /// Moves the clock forward as [`advance`](VirtualClock::advance) does, but touches
    /// at most `budget` entries. The clock stands at the new time in any case.
    ///
    /// Returns [`Advance::More`] if the budget did not suffice. The next call
    /// goes on with the timers that are left, in their order, even if it moves
    /// the clock by zero, and begins with the next engine. Returns
    /// [`Advance::ShutDown`] if all engines were shut down and their queues are empty, or there is
    /// none.
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
        if !self.move_to(self.now() + by, budget) {
            Advance::More
        } else if self.engines().iter().all(|engine| engine.is_finished()) {
            Advance::ShutDown
        } else {
            Advance::Done
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
        self.shared.time.set(time);
        self.engines().iter().for_each(|engine| engine.time_passed());
    }

    /// Moves the clock from one tick at which an engine has work to the next, up to `time`. Some
    /// of that work only files timers anew. Blocks at each
    /// tick until the workers are idle: every queue that has workers is empty,
    /// and each worker is back in `recv`.
    ///
    /// A worker is a [`Queue`](crate::Queue) handle on which `recv` or another
    /// call that blocks was made before, or a thread of a [`TaskEngine`](crate::TaskEngine). If
    /// threads of the caller's own have just been started,
    /// [`expect_workers`](crate::Queue::expect_workers) makes this call wait for them. A
    /// handle that is awaited ([`recv_async`](crate::Queue::recv_async)) is no worker, nor is a
    /// reader of reports.
    /// Timers that tasks schedule on the way are served on the way; those without a delay
    /// are served at the same tick.
    ///
    /// If each task adds another without a delay, a thousand of them run at one tick, and the
    /// next runs at the next due tick or at `time`. But this call never returns if a task blocks
    /// until time passes, say in `recv` for a timer of another engine on this clock: time waits
    /// for the task.
    ///
    /// # Panics
    /// Panics if the calling thread is a busy worker of the same engine, for instance
    /// within a task, because the call would wait for itself. A thread that has called `recv` is a
    /// busy worker while it keeps the handle, unless that waits in another thread within a second.
    /// Such a thread may call [`advance`](VirtualClock::advance). Panics if an expected worker has
    /// not come within thirty seconds of real time. Panics if the clock moves awaited timers, which
    /// have no workers; call [`run_until_settled`](VirtualClock::run_until_settled) then.
    pub fn run_until(&self, time: Time) {
        assert!(
            !self.engines().iter().any(|engine| engine.wakes_tasks()),
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
    /// // Blocks until no worker of a tokio runtime has a task to run.
    /// //
    /// // A worker's count is odd while it is parked. If no count changes between two readings,
    /// // all workers were parked at once, and no task was queued outside of them.
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
    /// A call from within the waker of an awaited timer only moves the clock. The outer
    /// call then wakes the tasks that have become due.
    ///
    /// # Panics
    /// Panics if `settle` does, and where [`run_until`](VirtualClock::run_until) panics
    /// because of workers.
    pub fn run_until_settled(&self, time: Time, mut settle: impl FnMut()) {
        let engines = self.engines();
        if engines.iter().any(|engine| engine.is_in_loop()) {
            return self.advance_to(time);
        }
        for engine in &*engines {
            if let Err(error) = engine.wait_until_staffed() {
                panic!("run_until: {error}");
            }
        }
        let mut serve = |time| self.serve_at(time, &mut settle);
        serve(self.now());
        // The end of time comes once.
        let later = |now, next: &Time| *next > now && *next <= time;
        while let Some(next) = self.next_due(false).filter(|next| later(self.now(), next)) {
            serve(next);
        }
        serve(time);
    }

    fn next_due(&self, even_overdue: bool) -> Option<Time> {
        let engines = self.engines();
        let nexts = engines.iter();
        nexts.filter_map(|it| it.next_due(even_overdue)).min()
    }

    /// Moves the clock to `time`, and serves the timers due then, including those that
    /// are added meanwhile. Nobody can add more once the workers and tasks are idle.
    fn serve_at(&self, time: Time, settle: &mut impl FnMut()) {
        for _ in 0..PASSES_AT_A_TIME {
            self.advance_to(time);
            for engine in &*self.engines() {
                engine.wait_until_idle();
            }
            settle();
            // It, or a worker, may have given work to an engine that was idle before.
            let is_idle = self.engines().iter().all(|engine| engine.is_idle());
            if is_idle && self.next_due(true).is_none_or(|next| next > self.now()) {
                break;
            }
        }
    }
}

debug!(it: [] VirtualClock => "VirtualClock" { now: it.now() });
