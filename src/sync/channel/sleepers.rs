//! The sleeping receivers of a channel. Threads sleep on one condition variable, which is in
//! `channel.rs`; each task leaves its waker in a place of its own. A message calls one
//! sleeper, which then checks for messages.
//!
//! # Why no call is lost
//!
//! A called task no longer has its waker here. It answers the call when it is polled:
//! it takes its place again and then checks for messages. If its future is dropped
//! instead, the call goes on to another sleeper.
//!
//! Nobody knows which thread the condition variable wakes, so calls of threads
//! are only counted. Every thread that wakes up answers one call, if there is
//! one, and then checks for messages. A thread may answer the call of another
//! one, because its limit has passed or it woke up by itself. That other thread
//! is awake too, or is about to be woken, and also checks. So there are never
//! more unanswered calls than threads that will check.

use std::collections::BTreeMap;
use std::mem;
use std::task::Waker;
use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct Sleepers {
    pub(super) limits: Limits,
    threads: usize,
    /// The number of calls of threads that no thread has answered. At most `threads`.
    called: usize,
    /// The tasks that have not been called, in the order in which they came.
    tasks: BTreeMap<u64, Task>,
    next_token: u64,
    /// Whether a thread is called next, if both a thread and a task sleep.
    is_threads_turn: bool,
    /// Whether it is always the turn of the threads.
    threads_first: bool,
}

struct Task {
    waker: Waker,
    watches: bool,
}

/// The place of one task among the sleepers of a channel. Its owner leaves it before the
/// place is dropped.
#[derive(Default, Debug)]
pub struct Place {
    /// Present until the place is left. The task was called if no sleeper has this token.
    token: Option<u64>,
    watches: bool,
}

impl Place {
    /// Creates the place of a task that may neither poll again nor leave when it is
    /// called. So a message that calls it calls another sleeper too.
    #[cfg_attr(not(feature = "stream"), allow(dead_code))]
    pub fn watching() -> Place {
        Place { token: None, watches: true }
    }

    pub(super) fn is_vacant(&self) -> bool {
        self.token.is_none()
    }
}

/// The sleepers that were called and have to be woken, outside the lock.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) task: Option<Waker>,
    pub(super) watchers: Vec<Waker>,
    pub(super) threads: Threads,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Threads {
    #[default]
    None,
    One,
    All,
}

impl Sleepers {
    /// Calls a task only while no thread sleeps.
    pub(super) fn put_threads_first(&mut self) {
        (self.threads_first, self.is_threads_turn) = (true, true);
    }

    /// Returns the number of sleepers that have not been called.
    pub(super) fn uncalled(&self) -> usize {
        self.threads - self.called + self.tasks.len()
    }

    pub(super) fn add_thread(&mut self) {
        self.threads += 1;
    }

    pub(super) fn remove_thread(&mut self) {
        self.threads -= 1;
    }

    /// Answers the call of a thread, for a thread that has woken up.
    pub(super) fn answer(&mut self) {
        self.called = self.called.saturating_sub(1);
    }

    /// Leaves the task's waker in its place, unless an equal waker is there.
    /// Takes it from `spare`, and leaves there what has to be dropped outside the
    /// lock. Returns false if a waker is needed and `spare` is empty, because
    /// cloning runs foreign code.
    pub(super) fn enter(
        &mut self,
        place: &mut Place,
        waker: &Waker,
        spare: &mut Option<Waker>,
    ) -> bool {
        let entered = place.token.and_then(|token| self.tasks.get_mut(&token));
        let Some(task) = entered else {
            let added = spare.take().map(|waker| self.add_task(place, waker));
            return added.is_some();
        };
        if task.waker.will_wake(waker) {
            return true;
        }
        let swapped = spare.as_mut().map(|new| mem::swap(&mut task.waker, new));
        swapped.is_some()
    }

    fn add_task(&mut self, place: &mut Place, waker: Waker) {
        let (token, watches) = (self.next_token, place.watches);
        self.next_token += 1;
        self.tasks.insert(token, Task { waker, watches });
        place.token = Some(token);
    }

    /// Makes the place vacant. Returns the task's waker, unless the task was called.
    pub(super) fn leave(&mut self, place: &mut Place) -> Option<Waker> {
        let task = self.tasks.remove(&place.token.take()?)?;
        Some(task.waker)
    }

    /// Calls one sleeper. Threads and tasks take turns, and tasks are called in the order
    /// in which they came.
    pub(super) fn call_one(&mut self) -> Calls {
        let mut calls = Calls::default();
        if !self.is_threads_turn || !self.call_thread(&mut calls) {
            self.call_task(&mut calls);
            if calls.task.is_none() {
                self.call_thread(&mut calls);
            }
        }
        self.is_threads_turn = self.threads_first || calls.threads == Threads::None;
        calls
    }

    fn call_thread(&mut self, calls: &mut Calls) -> bool {
        let sleeps = self.called < self.threads;
        if sleeps {
            self.called += 1;
            calls.threads = Threads::One;
        }
        sleeps
    }

    /// Calls the first task that does not only watch, and all that watch before it.
    fn call_task(&mut self, calls: &mut Calls) {
        while let Some((_, task)) = self.tasks.pop_first() {
            if !task.watches {
                calls.task = Some(task.waker);
                break;
            }
            calls.watchers.push(task.waker);
        }
    }

    pub(super) fn call_all(&mut self) -> Calls {
        self.called = self.threads;
        let tasks = mem::take(&mut self.tasks);
        Calls {
            task: None,
            watchers: tasks.into_values().map(|task| task.waker).collect(),
            threads: Threads::All,
        }
    }
}

/// The limits of one channel's waits. Outside a model, a limit passes when its time comes. In a
/// model, it passes when the model says so, even if no receiver is awake to notice.
#[derive(Default)]
pub(super) struct Limits {
    #[cfg(any(loom, shuttle))]
    have_passed: bool,
}

impl Limits {
    /// Returns the time left until `end`.
    #[cfg(not(any(loom, shuttle)))]
    pub(super) fn left(&self, end: Instant) -> Duration {
        end.saturating_duration_since(Instant::now())
    }

    #[cfg(any(loom, shuttle))]
    pub(super) fn left(&self, _end: Instant) -> Duration {
        if self.have_passed { Duration::ZERO } else { Duration::MAX }
    }

    /// Treats the limits of all waits as passed from now on.
    #[cfg(any(loom, shuttle))]
    pub(super) fn pass(&mut self) {
        self.have_passed = true;
    }
}
