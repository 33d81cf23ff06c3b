//! A clock for awaited timers that only its owner moves.

use core::fmt;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::drive::VirtualClock;
use crate::sync::Arc;
use crate::time::busy_tasks::{BusyTasks, NotIdle};
use crate::time::track::Tracked;
use crate::time::wake::wake;
use crate::timeline::Time;

/// The time that tasks have to become idle, in real time. It exceeds a poll on any
/// machine. Fixed, because a test that needs longer has a task that does not wait, and a
/// test that is to fail sooner gives `settle` a limit of its own.
const IDLE_WITHIN: Duration = Duration::from_secs(30);

/// The clock of [`Timers`](crate::time::Timers) that were started with
/// [`TimersBuilder::start_virtual`](crate::time::TimersBuilder::start_virtual).
///
/// Time stands still until the clock is moved. Moving it wakes the tasks whose timers
/// become due, whatever runtime they run on and however many threads that has.
///
/// # Testing with virtual time
/// [`advance`](TimersClock::advance) moves the time at once. Tasks of other threads then
/// find out late, as on a machine that was suspended.
/// [`run_until`](TimersClock::run_until) goes from one due tick to the next instead, and
/// waits at each until all tasks are idle. Therefore whatever a task does at a tick, it
/// does at that time, and each task behaves the same in every run. The order of tasks
/// within a tick is up to their executor.
///
/// There are two ways to know that all tasks are idle.
///
/// **Tracking** works with any executor. [`track`](TimersClock::track) wraps the future
/// of a task, and `run_until` waits for the tracked ones:
///
/// ```
/// use std::sync::mpsc;
/// use std::thread;
/// use std::time::Duration;
/// use tickwheel::Time;
/// use tickwheel::time::Timers;
///
/// let (timers, clock) = Timers::builder().start_virtual()?;
/// let (log, logged) = mpsc::channel();
/// for name in [1, 2] {
///     let (timers, log) = (timers.clone(), log.clone());
///     let task = clock.track(async move {
///         for _ in 0..2 {
///             timers.sleep(Duration::from_secs(1_000 * name)).await;
///             log.send((timers.now(), name)).unwrap();
///         }
///     });
///     thread::spawn(move || pollster::block_on(task)); // or a runtime's `spawn(task)`
/// }
/// clock.run_until(Time::from_secs(3_600)); // does not take an hour
/// let mut log: Vec<_> = logged.try_iter().collect();
/// log.sort(); // two tasks log at 2,000, in either order
/// let secs = Time::from_secs;
/// assert_eq!(log, [(secs(1_000), 1), (secs(2_000), 1), (secs(2_000), 2)]);
/// # Ok::<(), tickwheel::StartError>(())
/// ```
///
/// **Watching the runtime** needs no change to the tasks, and covers those that libraries
/// spawn. [`run_until_settled`](TimersClock::run_until_settled) takes a closure that
/// blocks until the runtime is idle. For tokio it reads the runtime's stable metrics:
///
/// ```ignore
/// use std::time::{Duration, Instant};
/// use tokio::runtime::RuntimeMetrics;
///
/// /// Blocks until no worker of a tokio runtime has a task to run.
/// ///
/// /// A worker's count is odd while it is parked. If no count changes between two readings,
/// /// all workers were parked at once, and no task was queued outside of them.
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
/// * I/O, `spawn_blocking` and threads of one's own are unknown to both ways. A task that
///   waits for them is idle, and time passes.
/// * The future of `block_on` is not a task of the runtime. A test may move the clock
///   from there if the runtime has other threads.
/// * Tracking sees wake-ups. tokio delays the wake-ups of `yield_now`, of a task that has
///   used up its budget, and of the one that awaits a `JoinHandle`, until the task has
///   been polled; time may move meanwhile. Watch the runtime if tasks do these things, or
///   send the result of a task through a channel.
/// * `tokio::time::pause` moves the timers of a runtime with one thread. It does not move
///   this clock, nor does this clock move those timers.
pub struct TimersClock {
    clock: VirtualClock<Waker>,
    busy: Arc<BusyTasks>,
}

impl TimersClock {
    pub(super) fn new(clock: VirtualClock<Waker>) -> TimersClock {
        let busy = Arc::new(BusyTasks::new());
        TimersClock { clock, busy }
    }

    /// Returns the clock's time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Moves the clock forward, and wakes the tasks whose timers become due. Does not
    /// wait for them.
    ///
    /// A call from within a waker that this clock runs only moves the clock. The outer
    /// call then wakes the tasks that have become due.
    pub fn advance(&self, by: Duration) {
        self.advance_to(self.now() + by);
    }

    /// Moves the clock forward to an absolute time, unless that time has passed; see
    /// [`advance`](TimersClock::advance).
    pub fn advance_to(&self, time: Time) {
        self.clock.advance_taking(time, &mut wake);
    }

    /// Returns a future that behaves as the given one, and for which
    /// [`run_until`](TimersClock::run_until) waits.
    ///
    /// The future is busy from this call to the end of its first poll, and afterwards
    /// from each wake-up to the end of the next poll. It is idle otherwise, and once it
    /// has returned, panicked or been dropped. Track a whole task: a future that its task
    /// does not poll after a wake-up stays busy.
    ///
    /// # Cost
    /// Two allocations. Each poll and each wake-up take a lock that all tracked futures
    /// of the clock share.
    pub fn track<F: IntoFuture>(&self, future: F) -> Tracked<F::IntoFuture> {
        Tracked::new(future.into_future(), Arc::clone(&self.busy))
    }

    /// Moves the clock from one due tick to the next, up to `time`. Blocks at each tick
    /// until all [tracked](TimersClock::track) futures are idle.
    ///
    /// A call from within a waker that this clock runs only moves the clock, as
    /// [`advance`](TimersClock::advance) does there.
    ///
    /// Timers that tasks set on the way are served on the way. If each wait of a task is
    /// for no time at all, a thousand of them end at one tick, and the next ends at the
    /// next due tick or at `time`.
    ///
    /// # Panics
    /// Panics if no future was ever tracked, if the calling thread is polling a tracked
    /// future, which would wait for itself, and if tracked futures do not become idle
    /// within thirty seconds of real time. This happens if a task blocks or spins, if it
    /// was never spawned, or if its executor does not run.
    pub fn run_until(&self, time: Time) {
        or_panic(self.busy.check_in_use());
        self.run_until_settled(time, || ());
    }

    /// Moves the clock from one due tick to the next, up to `time`. At each tick calls
    /// `settle`, which blocks until the tasks of a runtime are idle or runs them itself,
    /// and blocks until all [tracked](TimersClock::track) futures are idle as well.
    ///
    /// An executor of one thread can be the closure:
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
    /// # Panics
    /// Panics if `settle` does, and if tracked futures do not become idle; see
    /// [`run_until`](TimersClock::run_until).
    pub fn run_until_settled(&self, time: Time, mut settle: impl FnMut()) {
        if self.clock.is_driven_here() {
            return self.advance_to(time);
        }
        let settle = || or_panic(self.settle(&mut settle, IDLE_WITHIN));
        self.clock.run_until_taking(time, &mut wake, settle);
    }

    /// Blocks until both kinds of tasks are idle at the same time: calls `settle` until
    /// no tracked future has run meanwhile, for as long as `limit`.
    fn settle(&self, settle: &mut impl FnMut(), limit: Duration) -> Result<(), NotIdle> {
        let begun = Instant::now();
        loop {
            let runs = self.busy.runs();
            settle();
            if self.busy.wait_until_idle(limit)? == runs {
                return Ok(());
            }
            if begun.elapsed() > limit {
                return Err(self.busy.busy(limit));
            }
        }
    }
}

fn or_panic(waited: Result<(), NotIdle>) {
    if let Err(error) = waited {
        panic!("run_until: {error}");
    }
}

impl fmt::Debug for TimersClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimersClock")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::{pending, poll_fn};
    use std::pin::{Pin, pin};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake};

    use super::*;
    use crate::time::{Sleep, Timers};

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_task_is_awake_at_each_tick_at_which_it_is_due() {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        let log = RefCell::new(Vec::new());
        let mut task = pin!(async {
            for seconds in [1, 0, 59, 3_540, 1] {
                timers.sleep(Duration::from_secs(seconds)).await;
                log.borrow_mut().push(timers.now());
            }
        });
        clock.run_until_settled(Time::from_secs(3_600), || {
            assert!(poll(task.as_mut()).is_pending());
        });
        let times = [1, 1, 60, 3_600].map(Time::from_secs);
        assert_eq!(*log.borrow(), times);
        assert_eq!(clock.now(), Time::from_secs(3_600));
    }

    #[test]
    fn tasks_are_settled_before_time_moves_and_at_the_end() {
        let (_timers, clock) = Timers::builder().start_virtual().unwrap();
        let settled = RefCell::new(Vec::new());
        let note = || settled.borrow_mut().push(clock.now());
        clock.run_until_settled(Time::from_secs(1), note);
        assert_eq!(*settled.borrow(), [0, 1].map(Time::from_secs));
    }

    #[test]
    fn a_runtime_is_settled_again_if_tracked_futures_have_run_meanwhile() {
        let (_timers, clock) = Timers::builder().start_virtual().unwrap();
        let mut tracked = clock.track(pending::<()>());
        let calls = Cell::new(0);
        let mut settle = || {
            calls.set(calls.get() + 1);
            if calls.get() <= 2 {
                assert!(poll(Pin::new(&mut tracked)).is_pending());
            }
        };
        assert_eq!(clock.settle(&mut settle, Duration::MAX), Ok(()));
        assert_eq!(calls.get(), 3);
    }

    #[test]
    fn a_future_that_always_runs_ends_the_wait_after_its_limit() {
        let (_timers, clock) = Timers::builder().start_virtual().unwrap();
        let mut tracked = clock.track(pending::<()>());
        let mut settle = || assert!(poll(Pin::new(&mut tracked)).is_pending());
        let settled = clock.settle(&mut settle, Duration::from_millis(1));
        assert!(matches!(settled, Err(NotIdle::Busy { .. })));
    }

    /// A waker that moves the clock by a second, a number of times.
    struct Moves {
        clock: Arc<TimersClock>,
        left: AtomicUsize,
        depth: AtomicUsize,
        deepest: AtomicUsize,
        moved: fn(&TimersClock),
    }

    impl Moves {
        fn new(clock: TimersClock, left: usize, moved: fn(&TimersClock)) -> Arc<Moves> {
            Arc::new(Moves {
                clock: Arc::new(clock),
                left: AtomicUsize::new(left),
                depth: AtomicUsize::new(0),
                deepest: AtomicUsize::new(0),
                moved,
            })
        }
    }

    impl Wake for Moves {
        fn wake(self: Arc<Moves>) {
            let depth = self.depth.fetch_add(1, Ordering::Relaxed) + 1;
            self.deepest.fetch_max(depth, Ordering::Relaxed);
            if self.left.fetch_sub(1, Ordering::Relaxed) > 0 {
                (self.moved)(&self.clock);
            }
            self.depth.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Lets the wakers of five sleeps move the clock, each to the next one's deadline.
    fn assert_nested_calls_move_the_clock_alone(moved: fn(&TimersClock)) {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        let moves = Moves::new(clock, 5, moved);
        let waker = Waker::from(Arc::clone(&moves));
        let mut sleeps: Vec<_> = (1..=5)
            .map(|seconds| timers.sleep(Duration::from_secs(seconds)))
            .collect();
        for sleep in &mut sleeps {
            let polled = Pin::new(sleep).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
        moves.clock.advance(Duration::from_secs(1));
        assert_eq!(timers.now(), Time::from_secs(6));
        assert!(sleeps.iter().all(Sleep::is_elapsed));
        assert_eq!(moves.deepest.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_nested_call_moves_the_clock_and_leaves_the_timers_to_the_outer_one() {
        assert_nested_calls_move_the_clock_alone(|clock| clock.advance(Duration::from_secs(1)));
        assert_nested_calls_move_the_clock_alone(|clock| {
            let next = clock.now() + Duration::from_secs(1);
            clock.run_until_settled(next, || ());
        });
    }

    #[test]
    fn a_clock_runs_on_after_a_shutdown() {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        let mut sleep = pin!(timers.sleep(Duration::from_secs(1)));
        assert!(poll(sleep.as_mut()).is_pending());
        assert_eq!(timers.shutdown(), 1);
        clock.run_until_settled(Time::from_secs(2), || ());
        assert_eq!(clock.now(), Time::from_secs(2));
        assert!(!sleep.is_elapsed());
        assert!(poll(sleep.as_mut()).is_ready() && !sleep.is_elapsed());
    }

    #[test]
    #[should_panic = "no future is tracked"]
    fn a_clock_that_tracks_nothing_does_not_run() {
        let (_timers, clock) = Timers::builder().start_virtual().unwrap();
        clock.run_until(Time::from_secs(1));
    }

    #[test]
    #[should_panic = "would wait for itself"]
    fn a_task_cannot_wait_for_itself() {
        let (_timers, clock) = Timers::builder().start_virtual().unwrap();
        let moves = poll_fn(|_| {
            clock.run_until(Time::from_secs(1));
            Poll::Ready(())
        });
        let _ = poll(pin!(clock.track(moves)));
    }

    #[test]
    fn time_does_not_move_while_a_tracked_future_is_busy() {
        let (_timers, clock) = Timers::builder().start_virtual().unwrap();
        let _unpolled = clock.track(pending::<()>());
        let settled = clock.settle(&mut || (), Duration::ZERO);
        assert!(matches!(settled, Err(NotIdle::Busy { woken: 1, .. })));
    }
}
