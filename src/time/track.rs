//! A future that a virtual clock waits for, in whatever executor runs it.
//!
//! The future is polled with a waker of its own, the relay. A wake-up marks the task as
//! busy and then goes on to the executor's waker, in this order: otherwise time could
//! move between the two. The task stays busy until the poll that follows has returned,
//! and a wake-up during the poll keeps it busy. The future is dropped while its task is
//! busy, because its destructors may wake other tasks.
//!
//! ```text
//!            wake            poll
//!   ┌─ Idle ─────► Woken ◄──────► Running ──► Ended
//!   │               ▲    woken meanwhile │
//!   └───────────────┼────────────────────┘
//!                created
//! ```
//!
//! No waker is cloned, called or dropped under a lock.

use core::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Wake, Waker};

use crate::fork;
use crate::sync::{Arc, Mutex, lock};
use crate::time::busy_tasks::BusyTasks;

/// A future that a virtual clock waits for; see
/// [`TimersClock::track`](crate::time::TimersClock::track).
///
/// Counts as busy from its creation to the end of its first poll, and afterwards from
/// each wake-up to the end of the poll that follows. Once it has ended or is dropped, it
/// does not count.
#[must_use = "a tracked future does nothing, and no time passes, until it is polled"]
pub struct Tracked<F> {
    /// Present until the future has ended.
    future: Option<Pin<Box<F>>>,
    relay: StdArc<Relay>,
    /// The relay as a waker.
    waker: Waker,
}

/// The waker of a tracked future, which hands each wake-up on.
struct Relay {
    task: Mutex<Task>,
    busy: Arc<BusyTasks>,
    /// The number of forks at its creation. A forked child does not count its tasks.
    forks: u64,
}

struct Task {
    stage: Stage,
    /// The executor's waker, from the first poll to the end. Shared, because a waker must
    /// not be cloned under the lock.
    outer: Option<StdArc<Waker>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Woken or created, and not polled since. Counts as busy.
    Woken,
    /// Being polled or dropped. Counts as busy.
    Running { woken: bool },
    /// Waiting for a wake-up.
    Idle,
    /// Returned, panicked or dropped.
    Ended,
}

/// A stretch of time in which the calling thread runs a task. Ends the task when dropped,
/// unless it is paused.
struct Turn<'a> {
    relay: &'a Relay,
}

impl<F> Tracked<F> {
    pub(super) fn new(future: F, busy: Arc<BusyTasks>) -> Tracked<F> {
        busy.add();
        let relay = StdArc::new(Relay::new(busy));
        Tracked {
            future: Some(Box::pin(future)),
            waker: Waker::from(StdArc::clone(&relay)),
            relay,
        }
    }
}

impl<F: Future> Future for Tracked<F> {
    type Output = F::Output;

    /// # Panics
    /// Panics if the future has returned or panicked before.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let taken = this.future.take();
        this.relay.set_outer(cx.waker());
        let turn = this.relay.begin();
        // Dropped before the turn ends, on return and on panic.
        let mut future = taken.expect("a tracked future was polled after its end");
        let polled = future.as_mut().poll(&mut Context::from_waker(&this.waker));
        if polled.is_pending() {
            this.future = Some(future);
            turn.pause();
        }
        polled
    }
}

impl<F> Drop for Tracked<F> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            let is_counted = self.relay.forks == fork::count();
            let _turn = is_counted.then(|| self.relay.begin());
            drop(future);
        }
    }
}

impl<F> fmt::Debug for Tracked<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracked")
            .field("stage", &lock(&self.relay.task).stage)
            .finish_non_exhaustive()
    }
}

impl Relay {
    /// Returns the relay of a new task, which has been counted.
    fn new(busy: Arc<BusyTasks>) -> Relay {
        let (stage, outer) = (Stage::Woken, None);
        Relay {
            task: Mutex::new(Task { stage, outer }),
            busy,
            forks: fork::count(),
        }
    }

    /// Notes the executor's waker, if it has changed.
    fn set_outer(&self, waker: &Waker) {
        let is_it = |outer: &StdArc<Waker>| outer.will_wake(waker);
        if lock(&self.task).outer.as_ref().is_some_and(is_it) {
            return;
        }
        let new = StdArc::new(waker.clone());
        let _old = lock(&self.task).outer.replace(new);
    }

    fn begin(&self) -> Turn<'_> {
        let mut task = lock(&self.task);
        self.busy.begin(task.stage == Stage::Woken);
        task.stage = Stage::Running { woken: false };
        Turn { relay: self }
    }
}

impl Turn<'_> {
    /// Ends the turn of a task that goes on later.
    fn pause(self) {
        let mut task = lock(&self.relay.task);
        let woken = task.stage == Stage::Running { woken: true };
        task.stage = if woken { Stage::Woken } else { Stage::Idle };
        self.relay.busy.end(woken);
        drop(task);
        mem::forget(self);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let outer = {
            let mut task = lock(&self.relay.task);
            task.stage = Stage::Ended;
            task.outer.take()
        };
        // May run destructors of the executor's.
        drop(outer);
        self.relay.busy.end(false);
    }
}

impl Wake for Relay {
    fn wake(self: StdArc<Relay>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &StdArc<Relay>) {
        let outer = {
            let mut task = lock(&self.task);
            task.wake(&self.busy);
            task.outer.clone()
        };
        if let Some(outer) = outer {
            outer.wake_by_ref();
        }
    }
}

impl Task {
    fn wake(&mut self, busy: &BusyTasks) {
        match self.stage {
            Stage::Idle => {
                busy.wake();
                self.stage = Stage::Woken;
            }
            Stage::Running { .. } => self.stage = Stage::Running { woken: true },
            Stage::Woken | Stage::Ended => {}
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, poll_fn, ready};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::time::busy_tasks::NotIdle;

    /// A waker that counts, in place of an executor's.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: StdArc<Count>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    struct Scene {
        busy: Arc<BusyTasks>,
        count: StdArc<Count>,
    }

    impl Scene {
        fn new() -> Scene {
            let (busy, count) = (Arc::new(BusyTasks::new()), StdArc::default());
            Scene { busy, count }
        }

        fn track<F: Future>(&self, future: F) -> Tracked<F> {
            Tracked::new(future, Arc::clone(&self.busy))
        }

        fn poll<F: Future + Unpin>(&self, future: &mut F) -> Poll<F::Output> {
            let waker = Waker::from(StdArc::clone(&self.count));
            Pin::new(future).poll(&mut Context::from_waker(&waker))
        }

        fn is_idle(&self) -> bool {
            self.busy.wait_until_idle(Duration::ZERO).is_ok()
        }

        /// The number of times that the executor's waker was woken.
        fn woken(&self) -> usize {
            self.count.0.load(Ordering::Relaxed)
        }

        /// Whether nobody but the scene has the executor's waker.
        fn is_unreferenced(&self) -> bool {
            StdArc::strong_count(&self.count) == 1
        }
    }

    /// Returns a future that never ends, and the place where it puts its waker.
    fn sleeper() -> (impl Future<Output = ()>, StdArc<Mutex<Option<Waker>>>) {
        let place = StdArc::new(Mutex::new(None));
        let wakers = StdArc::clone(&place);
        let future = poll_fn(move |cx| {
            *wakers.lock().unwrap() = Some(cx.waker().clone());
            Poll::Pending
        });
        (future, place)
    }

    #[test]
    fn a_future_is_busy_from_its_creation_to_its_first_wait() {
        let scene = Scene::new();
        let mut tracked = scene.track(pending::<()>());
        assert!(!scene.is_idle());
        assert_eq!(format!("{tracked:?}"), "Tracked { stage: Woken, .. }");
        assert!(scene.poll(&mut tracked).is_pending());
        assert!(scene.is_idle());
        assert_eq!(format!("{tracked:?}"), "Tracked { stage: Idle, .. }");
    }

    #[test]
    fn a_wake_up_keeps_a_future_busy_until_it_was_polled() {
        let scene = Scene::new();
        let (future, waker) = sleeper();
        let mut tracked = scene.track(future);
        for polls in 1..=3 {
            assert!(scene.poll(&mut tracked).is_pending());
            assert!(scene.is_idle());
            let waker = waker.lock().unwrap().clone().unwrap();
            waker.wake_by_ref();
            waker.wake();
            assert!(!scene.is_idle());
            assert_eq!(scene.woken(), 2 * polls, "each wake-up is handed on");
        }
    }

    #[test]
    fn a_wake_up_during_the_poll_keeps_a_future_busy() {
        let scene = Scene::new();
        let polls = Cell::new(0);
        let mut tracked = scene.track(poll_fn(|cx| {
            polls.set(polls.get() + 1);
            if polls.get() < 3 {
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        }));
        for is_idle in [false, false, true] {
            assert!(scene.poll(&mut tracked).is_pending());
            assert_eq!(scene.is_idle(), is_idle);
        }
        assert_eq!(scene.woken(), 2);
    }

    #[test]
    fn a_future_that_has_ended_does_not_count_and_cannot_be_woken() {
        let scene = Scene::new();
        let mut kept = None;
        let mut tracked = scene.track(poll_fn(|cx| {
            kept = Some(cx.waker().clone());
            Poll::Ready(7)
        }));
        assert_eq!(scene.poll(&mut tracked), Poll::Ready(7));
        assert!(scene.is_idle() && scene.is_unreferenced());
        drop(tracked);
        kept.unwrap().wake();
        assert!(scene.is_idle());
        assert_eq!(scene.woken(), 0);
    }

    #[test]
    fn clones_of_the_waker_may_be_dropped() {
        let scene = Scene::new();
        let (future, waker) = sleeper();
        let mut tracked = scene.track(future);
        assert!(scene.poll(&mut tracked).is_pending());
        let kept = waker.lock().unwrap().take().unwrap();
        drop(kept.clone());
        assert!(scene.is_idle());
        drop(kept);
        assert!(scene.is_idle());
        drop(tracked);
        assert!(scene.is_idle() && scene.is_unreferenced());
    }

    #[test]
    fn a_future_that_is_dropped_does_not_count() {
        for polls in 0..2 {
            for woken in [false, true] {
                let scene = Scene::new();
                let (future, waker) = sleeper();
                let mut tracked = scene.track(future);
                for _ in 0..polls {
                    assert!(scene.poll(&mut tracked).is_pending());
                }
                let waker = waker.lock().unwrap().take();
                let wake = || waker.iter().for_each(Waker::wake_by_ref);
                if woken {
                    wake();
                }
                drop(tracked);
                assert!(scene.is_idle() && scene.is_unreferenced());
                wake();
                assert!(scene.is_idle(), "woken after the drop");
            }
        }
    }

    #[test]
    fn a_future_that_is_leaked_while_it_waits_does_not_count() {
        let scene = Scene::new();
        let mut tracked = scene.track(pending::<()>());
        assert!(scene.poll(&mut tracked).is_pending());
        // The leak sanitizer would report a real leak.
        let leaked = tracked;
        assert!(scene.is_idle());
        drop(leaked);
    }

    #[test]
    fn a_future_whose_poll_panics_does_not_count() {
        let scene = Scene::new();
        let mut tracked = scene.track(poll_fn(|cx| -> Poll<()> {
            cx.waker().wake_by_ref();
            panic!("on purpose");
        }));
        let polled = catch_unwind(AssertUnwindSafe(|| scene.poll(&mut tracked)));
        assert!(polled.is_err());
        assert!(scene.is_idle() && scene.is_unreferenced());
        let polled = catch_unwind(AssertUnwindSafe(|| scene.poll(&mut tracked)));
        assert!(polled.is_err(), "polled after its end");
        assert!(scene.is_idle() && scene.is_unreferenced());
    }

    /// Calls a closure when dropped.
    struct OnDrop<F: FnMut()>(F);

    impl<F: FnMut()> Drop for OnDrop<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }

    #[test]
    fn a_future_is_busy_while_it_is_dropped() {
        let scene = Scene::new();
        let seen = Cell::new(None);
        let look = || seen.set(Some(scene.busy.wait_until_idle(Duration::ZERO)));
        let guard = OnDrop(look);
        let mut tracked = scene.track(poll_fn(move |_| {
            let _held = &guard;
            Poll::Ready(())
        }));
        assert!(scene.poll(&mut tracked).is_ready());
        assert_eq!(seen.take(), Some(Err(NotIdle::IsTask)), "on its end");
        let guard = OnDrop(look);
        let mut tracked = scene.track(async move {
            pending::<()>().await;
            drop(guard);
        });
        assert!(scene.poll(&mut tracked).is_pending());
        assert!(scene.is_idle());
        drop(tracked);
        assert_eq!(seen.take(), Some(Err(NotIdle::IsTask)), "on its drop");
        assert!(scene.is_idle());
    }

    #[test]
    fn a_future_whose_drop_panics_does_not_count() {
        let scene = Scene::new();
        let guard = OnDrop(|| panic!("on purpose"));
        let tracked = scene.track(async move {
            let _guard = guard;
        });
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(tracked)));
        assert!(dropped.is_err());
        assert!(scene.is_idle());
    }

    #[test]
    fn a_wake_up_goes_to_the_waker_of_the_last_poll() {
        let scene = Scene::new();
        let (future, waker) = sleeper();
        let mut tracked = scene.track(future);
        assert!(scene.poll(&mut tracked).is_pending());
        let other = Scene::new();
        assert!(other.poll(&mut tracked).is_pending());
        assert!(scene.is_unreferenced());
        waker.lock().unwrap().take().unwrap().wake();
        assert_eq!((scene.woken(), other.woken()), (0, 1));
    }

    #[test]
    fn a_wake_up_during_a_poll_goes_to_the_waker_of_that_poll() {
        let (scene, other) = (Scene::new(), Scene::new());
        let mut tracked = scene.track(poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        assert!(scene.poll(&mut tracked).is_pending());
        assert!(other.poll(&mut tracked).is_pending());
        assert_eq!((scene.woken(), other.woken()), (1, 1));
    }

    #[test]
    fn a_wait_ends_when_another_thread_has_polled_what_a_third_has_woken() {
        let scene = Scene::new();
        let (future, waker) = sleeper();
        let mut tracked = scene.track(future);
        assert!(scene.poll(&mut tracked).is_pending());
        let waker = waker.lock().unwrap().take().unwrap();
        thread::spawn(move || waker.wake()).join().unwrap();
        assert!(!scene.is_idle());
        let busy = Arc::clone(&scene.busy);
        let clock = thread::spawn(move || busy.wait_until_idle(Duration::MAX));
        assert!(scene.poll(&mut tracked).is_pending());
        assert!(clock.join().unwrap().is_ok());
    }

    #[test]
    fn a_clock_says_what_it_would_wait_for() {
        let scene = Scene::new();
        let wait = || scene.busy.wait_until_idle(Duration::ZERO);
        assert_eq!(scene.busy.check_in_use(), Err(NotIdle::Untracked));
        let _unpolled = scene.track(pending::<()>());
        let mut own = scene.track(poll_fn(|_| Poll::Ready(wait())));
        assert_eq!(scene.poll(&mut own), Poll::Ready(Err(NotIdle::IsTask)));
        let busy = NotIdle::Busy {
            woken: 1,
            running: 0,
            limit: Duration::ZERO,
        };
        assert_eq!(wait(), Err(busy));
        assert_eq!(scene.busy.check_in_use(), Ok(()));
    }

    #[test]
    fn a_clock_notices_that_a_task_has_run_meanwhile() {
        let scene = Scene::new();
        let mut tracked = scene.track(pending::<()>());
        assert!(scene.poll(&mut tracked).is_pending());
        let idle = scene.busy.wait_until_idle(Duration::ZERO);
        assert_eq!(idle, Ok(scene.busy.runs()));
        assert!(scene.poll(&mut tracked).is_pending());
        assert_ne!(idle, Ok(scene.busy.runs()));
    }

    #[test]
    fn a_task_that_blocks_ends_the_wait_after_its_limit() {
        let scene = Scene::new();
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = std::sync::mpsc::channel();
        let mut tracked = scene.track(poll_fn(move |_| {
            begun.send(()).unwrap();
            let _ = receive.recv();
            Poll::Ready(())
        }));
        let busy = thread::scope(|scope| {
            let task = scope.spawn(|| scene.poll(&mut tracked));
            has_begun.recv().unwrap();
            let busy = scene.busy.wait_until_idle(Duration::from_millis(1));
            drop(send);
            assert!(task.join().unwrap().is_ready());
            busy
        });
        let running = NotIdle::Busy {
            woken: 0,
            running: 1,
            limit: Duration::from_millis(1),
        };
        assert_eq!(busy, Err(running));
        assert!(scene.is_idle());
    }

    #[test]
    fn a_ready_future_ends_in_its_first_poll() {
        let scene = Scene::new();
        let mut tracked = scene.track(ready(1));
        assert_eq!(scene.poll(&mut tracked), Poll::Ready(1));
        assert!(scene.is_idle());
    }
}
