//! The worker threads of an engine's own: their numbers, the surplus ones, which leave, and
//! the wait for their end.
//!
//! # Why a shutdown finds a worker for every task
//!
//! A worker that returns the last firing of a notified task leaves the task behind if it
//! is surplus, for a worker that serves until the end. The last of these has no other
//! worker behind it. So the first worker that learns of the shutdown first ends the
//! leaving, and then looks for tasks once more. A worker that has left has returned its
//! firing before that look; all others look for tasks themselves after their last one.

use std::collections::BTreeMap;

use crate::sync::thread::ThreadId;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Condvar, Mutex, Ordering, lock, thread, wait};

#[derive(Default)]
pub(crate) struct Workers {
    state: Mutex<Staff>,
    /// The number of workers that there are to be. Changed under `state`.
    wanted: AtomicUsize,
    /// Whether more workers serve than are wanted. Changed under `state`.
    has_surplus: AtomicBool,
    ended: Condvar,
}

#[derive(Default)]
struct Staff {
    /// The threads of the workers by their numbers.
    at_work: BTreeMap<usize, ThreadId>,
    /// The number of workers that have not been told to leave.
    serving: usize,
    /// Whether a worker has learned of the shutdown. If so, no worker leaves any more.
    is_stopping: bool,
}

/// A worker at work. The worker's own thread drops this after everything else that
/// it holds: after its last task, or when a panic ends it. No other thread
/// drops it, because the thread that starts workers holds the lock.
pub(crate) struct AtWork(pub(crate) Arc<Workers>);

impl Drop for AtWork {
    fn drop(&mut self) {
        let here = thread::current().id();
        self.0.change(|state| state.at_work.retain(|_, thread| *thread != here));
        self.0.ended.notify_all();
    }
}

impl Workers {
    fn change<R>(&self, change: impl FnOnce(&mut Staff) -> R) -> R {
        let mut state = lock(&self.state);
        let changed = change(&mut state);
        let has_surplus = state.serving > self.wanted() && !state.is_stopping;
        self.has_surplus.store(has_surplus, Ordering::Relaxed);
        changed
    }

    /// Returns the number of workers that there are to be. Surplus ones are not counted.
    pub(crate) fn wanted(&self) -> usize {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Sets the number of workers that there are to be. Surplus ones leave: idle ones when they
    /// are woken, busy ones after their tasks. If some are missing, `start` starts one with the
    /// number that it gets, before that worker can end. Does nothing and returns `None` if
    /// `is_over`, as it is before a worker learns of the shutdown.
    pub(crate) fn set_wanted<E>(
        &self,
        wanted: usize,
        is_over: impl FnOnce() -> bool,
        mut start: impl FnMut(usize) -> Result<ThreadId, E>,
    ) -> Option<Result<(), E>> {
        self.change(|state| {
            if is_over() {
                return None;
            }
            let (mut started, mut numbers) = (Ok(()), 0..);
            while state.serving < wanted && started.is_ok() {
                let number = numbers.find(|number| !state.at_work.contains_key(number))?;
                started = start(number).map(|thread| {
                    state.at_work.insert(number, thread);
                    state.serving += 1;
                });
            }
            let missing = started.is_err();
            let wanted = if missing { state.serving } else { wanted };
            self.wanted.store(wanted, Ordering::Relaxed);
            Some(started)
        })
    }

    /// The flag that ends the wait of an idle worker, because workers are to leave. The calling
    /// worker may be one of them.
    #[inline]
    pub(crate) fn surplus(&self) -> &AtomicBool {
        &self.has_surplus
    }

    /// Returns whether the calling worker leaves, because there are more workers than
    /// wanted. A worker calls this while it holds no firing.
    pub(crate) fn leave(&self) -> bool {
        self.change(|state| {
            let leaves = state.serving > self.wanted() && !state.is_stopping;
            state.serving -= usize::from(leaves);
            leaves
        })
    }

    /// Ends the leaving, because the engine was shut down. Returns whether this is the
    /// first call. The worker that made it then looks for tasks once more.
    pub(crate) fn begin_to_stop(&self) -> bool {
        self.change(|state| !std::mem::replace(&mut state.is_stopping, true))
    }

    /// Blocks until no worker is at work. Returns at once on a worker's
    /// thread, which would otherwise wait for itself.
    pub(crate) fn wait_until_ended(&self) {
        let here = thread::current().id();
        let mut state = lock(&self.state);
        if state.at_work.values().any(|thread| *thread == here) {
            return;
        }
        while !state.at_work.is_empty() {
            state = wait(&self.ended, state);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync;
    use std::sync::mpsc;
    use std::time::Duration;

    /// A time that exceeds every wait of these tests on any machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Starts one worker that does `work`.
    fn one_worker(work: impl FnOnce() + Send + 'static) -> Arc<Workers> {
        let workers = Arc::new(Workers::default());
        let these = Arc::clone(&workers);
        let mut work = Some(move || {
            let _at_work = AtWork(these);
            work();
        });
        let start = |_| sync::spawn("engine", "worker", work.take().unwrap());
        workers.set_wanted(1, || false, start).unwrap().unwrap();
        workers
    }

    /// Returns whether `waiters` calls that wait for the workers return.
    fn all_return(workers: &Arc<Workers>, waiters: usize, then: impl FnOnce()) -> bool {
        let (tell, told) = mpsc::channel();
        for _ in 0..waiters {
            let (workers, tell) = (Arc::clone(workers), tell.clone());
            std::thread::spawn(move || {
                tell.send(()).unwrap();
                workers.wait_until_ended();
                tell.send(()).unwrap();
            });
        }
        // Each thread is about to wait, and most are waiting after this sleep.
        (0..waiters).for_each(|_| told.recv().unwrap());
        std::thread::sleep(Duration::from_millis(20));
        then();
        (0..waiters).all(|_| told.recv_timeout(PATIENCE).is_ok())
    }

    #[test]
    fn a_worker_that_panics_is_gone() {
        let workers = one_worker(|| panic!("on purpose"));
        assert!(all_return(&workers, 1, || ()));
    }

    #[test]
    fn all_who_wait_are_told() {
        for _ in 0..5 {
            let (end, ended) = mpsc::channel::<()>();
            let workers = one_worker(move || assert!(ended.recv().is_err()));
            assert!(all_return(&workers, 8, || drop(end)));
        }
    }

    fn set_wanted(workers: &Workers, wanted: usize) -> usize {
        let mut started = 0;
        let start = |number| {
            started += 1;
            match number {
                0..4 => Ok(thread::current().id()),
                _ => Err(()),
            }
        };
        let set = workers.set_wanted(wanted, || false, start);
        assert_eq!(set, Some(if wanted > 4 { Err(()) } else { Ok(()) }));
        started
    }

    #[test]
    fn as_many_leave_as_are_not_wanted() {
        let workers = Workers::default();
        assert!(!workers.leave());
        assert_eq!(set_wanted(&workers, 4), 4);
        assert_eq!([3, 1, 2].map(|wanted| set_wanted(&workers, wanted)), [0; 3]);
        assert_eq!([(); 3].map(|()| workers.leave()), [true, true, false]);
        assert!(!workers.surplus().load(Ordering::Relaxed));
        // The threads of those that leave have not ended.
        let start = |number| (number == 4).then(|| thread::current().id()).ok_or(number);
        assert_eq!(workers.set_wanted(3, || false, start), Some(Ok(())));
        // A thread that has ended leaves its number to the next one.
        workers.change(|state| state.at_work.remove(&1));
        let start = |number| (number == 1).then(|| thread::current().id()).ok_or(number);
        assert_eq!(workers.set_wanted(4, || false, start), Some(Ok(())));
    }

    #[test]
    fn those_that_were_started_remain() {
        let workers = Workers::default();
        assert_eq!(set_wanted(&workers, 9), 5);
        assert_eq!((workers.wanted(), workers.leave()), (4, false));
    }

    #[test]
    fn none_leaves_after_one_has_learned_of_the_end() {
        let workers = Workers::default();
        set_wanted(&workers, 3);
        set_wanted(&workers, 1);
        assert!(workers.leave());
        assert!(workers.begin_to_stop());
        assert!(!workers.leave() && !workers.surplus().load(Ordering::Relaxed));
        assert!(!workers.begin_to_stop());
    }
}
