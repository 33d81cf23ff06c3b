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
pub struct VirtualClock<T> {
    core: Arc<SharedCore<T>>,
}

impl<T> VirtualClock<T> {
    pub(crate) fn new(core: Arc<SharedCore<T>>) -> VirtualClock<T> {
        VirtualClock { core }
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
    /// Runs no code of the caller and waits for no worker. A task may call it, and so may
    /// several threads at once.
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
        self.core.advance_to(time);
    }

    /// Does the same, and hands the payloads of due plain timers to `sink`, without
    /// holding a lock. A call from within `sink` only moves the clock.
    pub(crate) fn advance_taking(&self, time: Time, sink: &mut impl FnMut(&Core<T>, T)) {
        self.core.advance_taking(time, sink);
    }

    /// Returns whether the calling thread is in a call that runs the sink.
    pub(crate) fn is_driven_here(&self) -> bool {
        self.core.enter_loop().is_none()
    }

    /// Moves the clock in this way from one due tick to the next, and calls `settle`
    /// after each move; see [`Core::run_until`].
    pub(crate) fn run_until_taking(
        &self,
        time: Time,
        sink: &mut impl FnMut(&Core<T>, T),
        settle: impl FnMut(),
    ) {
        let advance = |time| self.advance_taking(time, sink);
        self.core.run_until(time, advance, settle);
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
        let served = self.core.advance_within(self.now() + by, budget);
        match served {
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
    /// within thirty seconds of real time.
    pub fn run_until(&self, time: Time) {
        if let Err(error) = self.core.wait_until_staffed(STAFFED_WITHIN) {
            panic!("run_until: {error}");
        }
        let advance = |time| self.advance_to(time);
        self.core
            .run_until(time, advance, || self.core.wait_until_idle());
    }
}

impl<T> fmt::Debug for VirtualClock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualClock")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}
