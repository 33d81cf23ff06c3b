//! An engine for awaited timers, with settings of its own.

use core::ops::Deref;
use std::task::Waker;
use std::time::Duration;

use crate::drive::{Builder, Family, Sealed, WeakEngine};
use crate::engine::{Engine, Sink};
use crate::timer::Closed;

/// An engine for awaited timers, with settings of its own.
///
/// Clones of a handle share one engine. The functions of this module use the process-wide
/// [`Global`](crate::time::Global) instead. An engine of one's own can be shut down, is
/// driven by the caller's loop if it wishes, and has a virtual clock in tests.
///
/// The futures borrow the engine, which costs nothing. A spawned task needs `'static`:
/// move a clone of the handle into its async block, [`leak`](Timers::leak) the engine once, or let
/// a future have a handle of its own with [`Sleep::into_owned`](crate::time::Sleep::into_owned).
///
/// An engine on another clock than the monotonic one measures no `Instant`s: pass it
/// [`Time`](crate::Time)s. Its calls panic otherwise.
///
/// ```
/// use std::future::Future;
/// use std::pin::pin;
/// use std::task::{Context, Waker};
/// use std::time::Duration;
/// use tickwheel::time::Timers;
///
/// let (timers, clock) = Timers::builder().start_virtual()?;
/// let mut sleep = pin!(timers.sleep(Duration::from_secs(3_600)));
/// let mut cx = Context::from_waker(Waker::noop());
/// assert!(sleep.as_mut().poll(&mut cx).is_pending());
/// clock.advance(Duration::from_secs(3_600));
/// assert!(sleep.as_mut().poll(&mut cx).is_ready());
/// # Ok::<(), tickwheel::StartError>(())
/// ```
///
/// For counts and walks, it dereferences to [`Engine<Waker>`](Engine). A wait that is cancelled
/// by that engine's calls is not woken, and waits again when it is polled: drop its future instead.
#[derive(Clone, Debug)]
pub struct Timers {
    engine: Engine<Waker>,
}

impl Deref for Timers {
    type Target = Engine<Waker>;

    #[inline]
    fn deref(&self) -> &Engine<Waker> {
        &self.engine
    }
}

impl Family for Timers {}

impl Sealed for Timers {
    type Payload = Waker;

    const SINK: Option<Sink<Waker>> = Some(Waker::wake);

    fn of(engine: Engine<Waker>) -> Timers {
        Timers { engine }
    }
}

impl Timers {
    /// Returns a builder with the default settings.
    pub fn builder() -> Builder<Timers> {
        Builder::new()
    }

    /// Returns a handle that does not keep the engine alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakEngine<Timers> {
        WeakEngine::to(&self.engine)
    }

    /// Keeps the engine to the end of the process, and returns a handle that costs
    /// nothing to copy, for spawned tasks. The engine can still be shut down.
    #[must_use]
    pub fn leak(self) -> &'static Timers {
        Box::leak(Box::new(self))
    }

    /// Ends all waits, and refuses new ones. Returns the number of waits that it ends. To end a
    /// service gracefully, await its tasks first.
    ///
    /// A waiting [`Sleep`](crate::time::Sleep) is then ready before its time, and its
    /// [`is_elapsed`](crate::time::Sleep::is_elapsed) says `false`. A
    /// [`Timeout`](crate::time::Timeout) returns [`Elapsed`](crate::time::Elapsed), which
    /// [says so](crate::time::Elapsed::is_shut_down), unless its future is ready because it is
    /// such a sleep. A sleep that is awaited later panics, unless its deadline has passed, because
    /// a loop of waits that are ready at once would never yield. A task that waits for a tick of
    /// an [`Interval`](crate::time::Interval) panics, then or later, because there's no tick to
    /// return: end such tasks first, or read the ticks as a `Stream`.
    ///
    /// Wakes the tasks in this call. No lock is held meanwhile.
    pub fn shutdown(&self) -> usize {
        self.wake(self.engine.shutdown())
    }

    /// Refuses new waits, lets those end that are due within `limit`, and ends the others, all as
    /// [`shutdown`](Timers::shutdown) does: a task that begins another wait meanwhile panics. See
    /// [`Engine::drain`].
    pub fn drain(&self, limit: Duration) -> usize {
        self.wake(self.engine.drain(limit))
    }

    fn wake(&self, closed: Vec<Closed<Waker>>) -> usize {
        let wakers = closed.into_iter().filter_map(|closed| closed.payload);
        let wake = |waker| self.core().consume(waker);
        wakers.map(wake).count()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::cell::RefCell;
    use std::pin::{Pin, pin};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake};

    use super::*;
    use crate::drive::{StartError, VirtualClock};
    use crate::time::Sleep;
    use crate::timeline::Time;
    use crate::wheel::Advance;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// The delay of a limit that was not polled yet is not a deadline.
    #[test]
    fn a_sleep_shows_its_deadline_once_there_is_one() {
        let (timers, _clock) = Timers::builder().start_virtual().unwrap();
        let mut limit = timers.timeout(Duration::from_secs(30), std::future::pending::<()>());
        assert!(format!("{limit:?}").contains("deadline: None"), "{limit:?}");
        assert!(poll(Pin::new(&mut limit)).is_pending());
        assert!(format!("{limit:?}").contains("deadline: Some(Time(30s))"), "{limit:?}");
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

    /// A waker that moves the clock by a second, a number of times.
    struct Moves {
        clock: Arc<VirtualClock>,
        left: AtomicUsize,
        depth: AtomicUsize,
        deepest: AtomicUsize,
        moved: fn(&VirtualClock),
    }

    impl Moves {
        fn new(clock: VirtualClock, left: usize, moved: fn(&VirtualClock)) -> Arc<Moves> {
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
    fn assert_nested_calls_move_the_clock_alone(moved: fn(&VirtualClock)) {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        let _other = Engine::<()>::builder().start_on(&clock).unwrap();
        let moves = Moves::new(clock, 5, moved);
        let waker = Waker::from(Arc::clone(&moves));
        let mut sleeps: Vec<_> =
            (1..=5).map(|seconds| timers.sleep(Duration::from_secs(seconds))).collect();
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
            clock.run_until_settled(next, || panic!("settles what the outer one does"));
        });
    }

    #[test]
    fn a_clock_runs_on_after_a_shutdown() {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        let mut sleep = pin!(timers.sleep(Duration::from_secs(1)));
        assert!(poll(sleep.as_mut()).is_pending());
        assert_eq!(timers.shutdown(), 1);
        clock.run_until(Time::from_secs(2));
        assert_eq!(clock.now(), Time::from_secs(2));
        assert!(!sleep.is_elapsed());
        assert!(poll(sleep.as_mut()).is_ready() && !sleep.is_elapsed());
    }

    #[test]
    fn a_wait_whose_deadline_has_passed_is_ready_after_a_shutdown() {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        clock.advance(Duration::from_micros(900));
        timers.shutdown();
        // Within a tick that has not ended.
        assert!(poll(pin!(timers.sleep_until(Time::from_micros(300)))).is_ready());
        assert_eq!(timers.snapshot().refused.shut_down, 0);
    }

    #[test]
    fn a_wait_that_ends_before_its_deadline_has_not_elapsed() {
        let drain = |timers: &Timers| timers.drain(Duration::ZERO);
        for end in [Timers::shutdown, drain] {
            let (timers, _clock) = Timers::builder().start_virtual().unwrap();
            let mut sleep = pin!(timers.sleep(Duration::from_secs(1)));
            assert!(poll(sleep.as_mut()).is_pending());
            assert_eq!(end(&timers), 1);
            assert!(poll(sleep.as_mut()).is_ready() && !sleep.is_elapsed());
        }
    }

    #[test]
    fn a_wait_that_is_polled_after_a_cancel_waits_again() {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        let mut sleep = pin!(timers.sleep(Duration::from_secs(1)));
        for _ in 0..2 {
            assert!(poll(sleep.as_mut()).is_pending());
            assert_eq!(timers.cancel_all().len(), 1);
        }
        assert!(poll(sleep.as_mut()).is_pending());
        clock.advance(Duration::from_secs(1));
        assert!(poll(sleep.as_mut()).is_ready() && sleep.is_elapsed());
    }

    #[test]
    fn a_wait_that_is_due_within_the_limit_of_a_drain_elapses() {
        let (timers, _clock) = Timers::builder().start_virtual().unwrap();
        let mut sleep = pin!(timers.sleep(Duration::from_secs(1)));
        assert!(poll(sleep.as_mut()).is_pending());
        assert_eq!(timers.drain(Duration::from_secs(1)), 0);
        assert!(sleep.is_elapsed());
    }

    #[test]
    #[should_panic = "is no reading of the clock of these timers"]
    fn an_instant_is_no_time_of_a_virtual_clock() {
        let (timers, _clock) = Timers::builder().start_virtual().unwrap();
        drop(timers.sleep_until(std::time::Instant::now()));
    }

    #[test]
    fn a_bound_would_refuse_waits() {
        let bounded = Timers::builder().max_timers(9).start_virtual();
        assert!(matches!(bounded, Err(StartError::Setting("max_timers", _))));
    }

    #[test]
    #[should_panic = "would not wait for any task"]
    fn a_clock_that_knows_no_tasks_does_not_run_without_help() {
        let (_timers, clock) = Timers::builder().start_virtual().unwrap();
        let _other = Engine::<()>::builder().start_on(&clock).unwrap();
        clock.run_until(Time::from_secs(1));
    }

    #[test]
    fn a_frame_wakes_as_many_tasks_as_its_budget_allows() {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        let frame = Duration::from_millis(16);
        let mut sleeps: Vec<_> = (0..5).map(|_| timers.sleep(frame)).collect();
        for sleep in &mut sleeps {
            assert!(poll(Pin::new(sleep)).is_pending());
        }
        assert_eq!(clock.advance_within(frame, 3), Advance::More);
        assert_eq!(timers.ledger().live, 2);
        assert_eq!(clock.advance_within(Duration::ZERO, 3), Advance::Done);
        assert!(sleeps.iter().all(Sleep::is_elapsed));
    }
}
