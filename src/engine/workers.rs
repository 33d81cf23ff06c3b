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

use crate::sync::thread::ThreadId;
use crate::sync::{
    Arc, AtomicBool, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, lock, thread, wait,
};

#[derive(Default)]
pub(crate) struct Workers {
    state: Mutex<State>,
    /// The number of workers that there are to be. Changed under `state`.
    wanted: AtomicUsize,
    /// Whether the surplus is above zero. Changed under `state`.
    has_surplus: AtomicBool,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// The threads of the workers by their numbers. `None` if a number is free. The last
    /// number is in use.
    at_work: Vec<Option<ThreadId>>,
    /// The number of workers that are to leave.
    surplus: usize,
    /// Whether a worker has learned of the shutdown. If so, no worker leaves any more.
    is_stopping: bool,
}

/// The workers, while no other thread changes their number.
pub(crate) struct Change<'a> {
    workers: &'a Workers,
    state: MutexGuard<'a, State>,
}

/// A worker at work. The worker's own thread drops this after everything else that
/// it holds: after its last task, or when a panic ends it. No other thread
/// drops it, because the thread that starts workers holds the lock.
pub(crate) struct AtWork(pub(crate) Arc<Workers>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.remove();
    }
}

impl Workers {
    pub(crate) fn change(&self) -> Change<'_> {
        let state = lock(&self.state);
        Change {
            workers: self,
            state,
        }
    }

    /// Returns the number of workers that there are to be. Surplus ones are not counted.
    pub(crate) fn wanted(&self) -> usize {
        self.wanted.load(Ordering::Relaxed)
    }

    /// The flag that ends the wait of an idle worker, because workers are to leave.
    pub(crate) fn surplus(&self) -> &AtomicBool {
        &self.has_surplus
    }

    /// Whether workers are to leave. If so, the calling worker may be one of them.
    #[inline]
    pub(crate) fn has_surplus(&self) -> bool {
        self.has_surplus.load(Ordering::Relaxed)
    }

    /// Returns whether the calling worker leaves, because there are more workers than
    /// wanted. A worker calls this while it holds no firing.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        self.has_surplus() && self.change().let_one_leave()
    }

    /// Ends the leaving, because the engine was shut down. Returns whether this is the
    /// first call. The worker that made it then looks for tasks once more.
    pub(crate) fn begin_to_stop(&self) -> bool {
        self.change().begin_to_stop()
    }

    fn remove(&self) {
        self.change().remove(thread::current().id());
        self.ended.notify_all();
    }

    /// Blocks until no worker is at work. Returns at once on a worker's
    /// thread, which would otherwise wait for itself.
    pub(crate) fn wait_until_ended(&self) {
        let here = thread::current().id();
        let mut state = lock(&self.state);
        if state.at_work.contains(&Some(here)) {
            return;
        }
        while !state.at_work.is_empty() {
            state = wait(&self.ended, state);
        }
    }
}

impl Change<'_> {
    pub(crate) fn is_stopping(&self) -> bool {
        self.state.is_stopping
    }

    pub(crate) fn set_wanted(&self, workers: usize) {
        self.workers.wanted.store(workers, Ordering::Relaxed);
    }

    /// Gives the worker that `spawn` starts the lowest free number, before that
    /// worker can end.
    pub(crate) fn start<E>(
        &mut self,
        spawn: impl FnOnce(usize) -> Result<ThreadId, E>,
    ) -> Result<(), E> {
        let at_work = &mut self.state.at_work;
        let free = at_work.iter().position(Option::is_none);
        let number = free.unwrap_or(at_work.len());
        let thread = spawn(number)?;
        if number == at_work.len() {
            at_work.push(None);
        }
        at_work[number] = Some(thread);
        Ok(())
    }

    /// Makes `count` workers leave: idle ones when they are woken, busy ones after their
    /// tasks.
    pub(crate) fn dismiss(&mut self, count: usize) {
        self.set_surplus(self.state.surplus + count);
    }

    /// Keeps up to `count` workers that are to leave and have not left. Returns their
    /// number.
    pub(crate) fn keep(&mut self, count: usize) -> usize {
        let kept = count.min(self.state.surplus);
        self.set_surplus(self.state.surplus - kept);
        kept
    }

    fn let_one_leave(mut self) -> bool {
        self.keep(1) == 1
    }

    fn begin_to_stop(mut self) -> bool {
        self.set_surplus(0);
        !std::mem::replace(&mut self.state.is_stopping, true)
    }

    fn set_surplus(&mut self, surplus: usize) {
        self.state.surplus = surplus;
        let has_surplus = &self.workers.has_surplus;
        has_surplus.store(surplus > 0, Ordering::Relaxed);
    }

    fn remove(mut self, thread: ThreadId) {
        let at_work = &mut self.state.at_work;
        for worker in at_work.iter_mut() {
            worker.take_if(|worker| *worker == thread);
        }
        while let Some(None) = at_work.last() {
            at_work.pop();
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
        let work = move || {
            let _at_work = AtWork(these);
            work();
        };
        let start = |_| sync::spawn("engine", "worker", work);
        workers.change().start(start).unwrap();
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

    #[test]
    fn as_many_leave_as_are_dismissed_and_not_kept() {
        let workers = Workers::default();
        assert!(!workers.leave());
        workers.change().dismiss(2);
        workers.change().dismiss(3);
        assert_eq!(workers.change().keep(1), 1);
        assert_eq!(
            [(); 6].map(|()| workers.leave()),
            [true, true, true, true, false, false]
        );
        assert_eq!(workers.change().keep(1), 0);
    }

    #[test]
    fn none_leaves_after_one_has_learned_of_the_end() {
        let workers = Workers::default();
        workers.change().dismiss(2);
        assert!(workers.leave());
        assert!(workers.begin_to_stop());
        assert!(!workers.leave());
        assert!(!workers.begin_to_stop());
    }
}
