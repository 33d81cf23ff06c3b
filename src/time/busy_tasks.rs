//! The tracked tasks that are busy, for a virtual clock that moves only when there are
//! none.
//!
//! A task is busy from its wake-up to the end of the poll that follows. A new task counts
//! as woken. All counts change under one lock: a task that wakes another one while it is
//! running is itself counted until the other one is counted, too. Therefore a count of
//! zero means that no tracked task can act until time or something untracked wakes it.

use std::fmt;
use std::time::{Duration, Instant};

use crate::hub::Waiters;
use crate::sync::thread::{self, ThreadId};

pub(crate) struct BusyTasks(Waiters<Counts>);

#[derive(Default)]
struct Counts {
    /// Whether any task has ever been tracked.
    in_use: bool,
    /// The number of tasks that were woken or created and have not been polled since.
    woken: usize,
    /// The threads that are polling or dropping a task, once for each task.
    running: Vec<ThreadId>,
}

/// The reason why a clock cannot wait until all tasks are idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotIdle {
    /// No task has ever been tracked.
    Untracked,
    /// The calling thread is running a tracked task.
    IsTask,
    /// Tasks were still busy at the end of the limit.
    Busy {
        woken: usize,
        running: usize,
        limit: Duration,
    },
}

impl fmt::Display for NotIdle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotIdle::Untracked => f.write_str(
                "no future is tracked, so that time would not wait for any task: wrap \
                 each task in `track`, or call `run_until_settled` or `advance`",
            ),
            NotIdle::IsTask => f.write_str(
                "the calling thread is running a tracked future and would wait for itself: \
                 call `advance`, or call from another thread",
            ),
            NotIdle::Busy {
                woken,
                running,
                limit,
            } => write!(
                f,
                "tracked futures did not become idle within {limit:?}: {running} in a poll \
                 that does not return, {woken} woken but not polled. Spawn each tracked \
                 future, keep its executor running, and do not block in it"
            ),
        }
    }
}

impl BusyTasks {
    pub(super) fn new() -> BusyTasks {
        BusyTasks(Waiters::new(Counts::default()))
    }

    /// Counts a new task, which nobody has polled.
    pub(super) fn add(&self) {
        self.0.change(|counts| {
            counts.in_use = true;
            counts.woken += 1;
        });
    }

    /// Notes that an idle task was woken. Wakes no waiter, because it does not make
    /// anything idle.
    pub(super) fn wake(&self) {
        self.0.with(|counts, _| counts.woken += 1);
    }

    /// Notes that the calling thread begins to run a task.
    pub(super) fn begin(&self, was_woken: bool) {
        let here = thread::current().id();
        self.0.with(|counts, _| {
            counts.woken -= usize::from(was_woken);
            counts.running.push(here);
        });
    }

    /// Notes that the calling thread has run a task, and whether the task was woken
    /// meanwhile.
    pub(super) fn end(&self, is_woken: bool) {
        let here = thread::current().id();
        self.0.change(|counts| {
            counts.woken += usize::from(is_woken);
            counts.leave(here);
        });
    }

    /// Checks that the clock has a task to wait for.
    pub(super) fn check_in_use(&self) -> Result<(), NotIdle> {
        match self.0.with(|counts, _| counts.in_use) {
            true => Ok(()),
            false => Err(NotIdle::Untracked),
        }
    }

    /// Blocks until no task is busy. Returns [`runs`](BusyTasks::runs) of that moment.
    ///
    /// # Errors
    /// Fails at once if the calling thread is running a task, and after `limit` if tasks
    /// are still busy.
    pub(super) fn wait_until_idle(&self, limit: Duration) -> Result<u64, NotIdle> {
        let here = thread::current().id();
        if self.0.with(|counts, _| counts.running.contains(&here)) {
            return Err(NotIdle::IsTask);
        }
        let begun = Instant::now();
        let left = || Some(limit.saturating_sub(begun.elapsed()));
        let mut idle = None;
        let is_idle = || {
            idle = self.idle();
            idle.is_some()
        };
        self.0.wait_until(is_idle, left);
        idle.ok_or_else(|| self.busy(limit))
    }

    /// Returns a number that grows each time a task has run.
    pub(super) fn runs(&self) -> u64 {
        self.0.with(|_, changes| changes)
    }

    /// Returns `runs` if no task is busy.
    fn idle(&self) -> Option<u64> {
        let is_idle = |counts: &Counts| counts.woken == 0 && counts.running.is_empty();
        self.0.with(|counts, runs| is_idle(counts).then_some(runs))
    }

    /// Returns the error for tasks that are still busy after `limit`.
    pub(super) fn busy(&self, limit: Duration) -> NotIdle {
        self.0.with(|counts, _| NotIdle::Busy {
            woken: counts.woken,
            running: counts.running.len(),
            limit,
        })
    }
}

impl Counts {
    fn leave(&mut self, thread: ThreadId) {
        let at = self.running.iter().position(|&running| running == thread);
        self.running.swap_remove(at.expect("it began to run here"));
    }
}
