//! The workers of each queue, for which a virtual clock waits before it moves.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::engine::waiters::Waiters;
use crate::sync::thread::{self, ThreadId};

pub(crate) struct Census(Waiters<Crew>);

struct Crew {
    queues: Vec<QueueWorkers>,
    busy: usize,
    /// The threads of the busy workers, where they are known.
    busy_threads: Vec<ThreadId>,
}

/// The workers of one queue.
#[derive(Clone, Copy, Default)]
struct QueueWorkers {
    present: usize,
    /// The number of workers that have ever come.
    enrolled: usize,
    /// The value that `enrolled` has to reach before the clock moves.
    expected: usize,
}

/// The time that a handle has to reach another thread. Until it waits there, it counts as busy
/// in the thread that used it last.
const MOVED_WITHIN: Duration = Duration::from_secs(1);

const WAITS_FOR_ITSELF: &str = "the calling thread runs a task, or keeps a `Queue` that has waited, \
     and would wait for itself: call `advance`, or take with `try_recv`";

impl Census {
    pub(super) fn new(queues: usize) -> Census {
        Census(Waiters::new(Crew {
            queues: vec![QueueWorkers::default(); queues],
            busy: 0,
            busy_threads: Vec::new(),
        }))
    }

    /// Makes `wait_until_staffed` wait until `count` workers of `queue` have come.
    pub(crate) fn expect(&self, queue: usize, count: usize) {
        self.0.change(|workers| workers.queues[queue].expected = count);
    }

    /// Adds a worker of `queue`, which is busy until it calls `set_idle`. Wakes no
    /// waiter, because `set_idle` will.
    fn enrol(&self, queue: usize, thread: Option<ThreadId>) {
        self.0.with(|workers, _| {
            workers.queues[queue].present += 1;
            workers.queues[queue].enrolled += 1;
            workers.begin(thread);
        });
    }

    /// Removes a worker of `queue` that is idle.
    fn leave(&self, queue: usize) {
        self.0.change(|workers| workers.queues[queue].present -= 1);
    }

    /// Notes that a worker has begun to work, in `thread` if that is known.
    fn set_busy(&self, thread: Option<ThreadId>) {
        self.0.with(|workers, _| workers.begin(thread));
    }

    /// Notes that a worker is waiting, which was busy in `thread`.
    fn set_idle(&self, thread: Option<ThreadId>) {
        self.0.change(|workers| workers.end(thread));
    }

    /// Notes that a queue has changed, but not through its workers.
    #[inline]
    pub(crate) fn notify(&self) {
        self.0.notify();
    }

    /// Blocks until all workers that are expected have come, or until `is_over`. If they don't
    /// come within `limit`, or the calling thread is itself a busy worker, returns why a clock
    /// can't wait.
    pub(crate) fn wait_until_staffed(
        &self,
        limit: Duration,
        is_over: impl Fn() -> bool,
    ) -> Result<(), String> {
        let here = thread::current().id();
        let is_busy = || self.0.with(|workers, _| workers.busy_threads.contains(&here));
        let missing = || self.0.with(|workers, _| workers.missing());
        let begun = Instant::now();
        let left_of = |limit: Duration| Some(limit.saturating_sub(begun.elapsed()));
        if !self.0.wait_until(|| !is_busy(), || left_of(limit.min(MOVED_WITHIN))) {
            return Err(WAITS_FOR_ITSELF.into());
        }
        let staffed = self.0.wait_until(|| missing().is_none() || is_over(), || left_of(limit));
        match missing() {
            Some(missing) if !staffed => Err(missing),
            _ => Ok(()),
        }
    }

    /// Blocks until no worker is busy and `is_empty` holds for every queue that has
    /// workers.
    pub(crate) fn wait_until_idle(&self, is_empty: impl Fn(usize) -> bool) {
        self.0.wait_until(|| self.is_idle(&is_empty), || None);
    }

    /// Returns whether a worker is busy.
    pub(crate) fn has_busy(&self) -> bool {
        self.0.with(|workers, _| workers.busy > 0)
    }

    /// Returns whether no worker is busy and, as all their queues are empty, none will
    /// be. Returns false if anything changed while the queues were visited.
    pub(crate) fn is_idle(&self, is_empty: impl Fn(usize) -> bool) -> bool {
        let (staffed, seen) = self.0.with(|workers, changes| (workers.staffed(), changes));
        let unchanged = |workers: &mut Crew, changes| workers.busy == 0 && changes == seen;
        staffed.into_iter().all(is_empty) && self.0.with(unchanged)
    }
}

impl Crew {
    fn begin(&mut self, thread: Option<ThreadId>) {
        self.busy += 1;
        self.busy_threads.extend(thread);
    }

    fn end(&mut self, thread: Option<ThreadId>) {
        self.busy -= 1;
        let is_it = |busy: &ThreadId| Some(*busy) == thread;
        if let Some(at) = self.busy_threads.iter().position(is_it) {
            self.busy_threads.swap_remove(at);
        }
    }

    fn staffed(&self) -> Vec<usize> {
        let queues = 0..self.queues.len();
        queues.filter(|&queue| self.queues[queue].present > 0).collect()
    }

    fn missing(&self) -> Option<String> {
        let mut queues = self.queues.iter().enumerate();
        let (queue, staff) = queues.find(|(_, staff)| staff.enrolled < staff.expected)?;
        let QueueWorkers { enrolled, expected, .. } = staff;
        Some(format!(
            "queue {queue} has had {enrolled} of {expected} expected workers: start them, and let \
             each wait in `recv`"
        ))
    }
}

#[derive(Clone, Copy, Default)]
enum Standing {
    /// Not known to belong to a worker.
    #[default]
    Unknown,
    /// Busy in this thread, if it is known.
    Busy(Option<ThreadId>),
    Waiting,
}

/// The worker that holds a queue's handle, if it is one's.
#[derive(Default)]
pub(crate) struct WorkerState(Cell<Standing>);

impl WorkerState {
    pub(crate) fn is_enrolled(&self) -> bool {
        !matches!(self.0.get(), Standing::Unknown)
    }

    /// Counts a worker of `queue`, unless it has already been counted. It is busy in
    /// `thread`, or in a thread that has not begun.
    pub(crate) fn enrol(&self, census: &Census, queue: usize, thread: Option<ThreadId>) {
        if !self.is_enrolled() {
            census.enrol(queue, thread);
            self.0.set(Standing::Busy(thread));
        }
    }

    /// Counts the calling thread as a worker of `queue`.
    pub(crate) fn enrol_here(&self, census: &Census, queue: usize) {
        self.enrol(census, queue, Some(thread::current().id()));
    }

    /// Notes that the worker is about to wait.
    pub(crate) fn set_idle(&self, census: &Census, queue: usize) {
        self.enrol_here(census, queue);
        if let Standing::Busy(thread) = self.0.replace(Standing::Waiting) {
            census.set_idle(thread);
        }
    }

    /// Notes that the worker has waited, and works.
    pub(crate) fn set_busy(&self, census: &Census) {
        let thread = Some(thread::current().id());
        census.set_busy(thread);
        self.0.set(Standing::Busy(thread));
    }

    /// Notes that the handle no longer belongs to a worker.
    pub(crate) fn leave(&self, census: &Census, queue: usize) {
        if self.is_enrolled() {
            self.set_idle(census, queue);
            census.leave(queue);
            self.0.set(Standing::Unknown);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn wait(census: &Census) -> Result<(), String> {
        census.wait_until_staffed(Duration::ZERO, || false)
    }

    fn missing(enrolled: usize, expected: usize) -> Result<(), String> {
        Err(format!(
            "queue 1 has had {enrolled} of {expected} expected workers: start them, and let \
             each wait in `recv`"
        ))
    }

    #[test]
    fn an_expected_worker_is_missing_until_it_has_come() {
        let census = Census::new(2);
        assert_eq!(wait(&census), Ok(()));
        census.expect(1, 2);
        assert_eq!(wait(&census), missing(0, 2));
        census.enrol(0, None);
        census.enrol(1, None);
        assert_eq!(wait(&census), missing(1, 2));
        census.enrol(1, None);
        assert_eq!(wait(&census), Ok(()));
    }

    #[test]
    fn a_worker_that_has_come_and_gone_is_not_missing() {
        let census = Census::new(2);
        census.enrol(1, None);
        census.set_idle(None);
        census.leave(1);
        census.expect(1, 1);
        assert_eq!(wait(&census), Ok(()));
    }

    #[test]
    fn all_queues_that_have_workers_must_be_empty() {
        let census = Census::new(3);
        for queue in [0, 1] {
            census.enrol(queue, None);
            census.set_idle(None);
        }
        let is_idle_but_for = |full: usize| census.is_idle(|queue| queue != full);
        assert_eq!([0, 1, 2].map(is_idle_but_for), [false, false, true]);
        census.leave(1);
        assert_eq!([0, 1, 2].map(is_idle_but_for), [false, true, true]);
    }

    #[test]
    fn a_worker_that_works_while_the_queues_are_visited_keeps_the_clock() {
        let census = Census::new(1);
        census.enrol(0, None);
        census.set_idle(None);
        assert!(census.is_idle(|_| true));
        // It may have filled a queue that had been visited.
        assert!(!census.is_idle(|_| {
            census.set_busy(None);
            census.set_idle(None);
            true
        }));
        assert!(!census.is_idle(|_| {
            census.set_busy(None);
            true
        }));
    }

    #[test]
    fn a_clock_does_not_wait_for_workers_of_an_engine_that_has_ended() {
        let census = Census::new(1);
        census.expect(0, 1);
        let waited = census.wait_until_staffed(Duration::MAX, || true);
        assert_eq!(waited, Ok(()));
    }

    #[test]
    fn a_busy_worker_cannot_wait_for_itself() {
        let census = Census::new(1);
        let here = thread::current().id();
        census.enrol(0, Some(here));
        census.enrol(0, thread::spawn(|| thread::current().id()).join().ok());
        assert_eq!(wait(&census), Err(WAITS_FOR_ITSELF.into()));
        census.set_idle(Some(here));
        assert_eq!(wait(&census), Ok(()));
        census.set_busy(Some(here));
        assert_eq!(wait(&census), Err(WAITS_FOR_ITSELF.into()));
    }

    #[test]
    fn a_handle_may_have_gone_to_another_thread() {
        let (census, here) = (Census::new(1), thread::current().id());
        census.enrol(0, Some(here));
        thread::scope(|scope| {
            scope.spawn(|| census.set_idle(Some(here)));
            assert_eq!(census.wait_until_staffed(Duration::MAX, || false), Ok(()));
        });
    }
}
