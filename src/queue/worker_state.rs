//! Whether a queue handle belongs to a worker, and whether that worker is
//! busy. A virtual clock waits until all workers are idle.

use std::cell::Cell;

use crate::hub::Census;
use crate::sync::thread::{self, ThreadId};

#[derive(Clone, Copy, Default)]
enum State {
    /// Not known to belong to a worker.
    #[default]
    Unknown,
    /// Busy in this thread, if it is known.
    Busy(Option<ThreadId>),
    Waiting,
}

#[derive(Default)]
pub(super) struct WorkerState(Cell<State>);

impl WorkerState {
    pub(super) fn has_joined(&self) -> bool {
        !matches!(self.0.get(), State::Unknown)
    }

    /// Counts a worker of `queue`, unless it has already been counted. It is busy in
    /// `thread`, or in a thread that has not begun.
    pub(super) fn join(&self, census: &Census, queue: usize, thread: Option<ThreadId>) {
        if !self.has_joined() {
            census.join(queue, thread);
            self.0.set(State::Busy(thread));
        }
    }

    /// Counts the calling thread as a worker of `queue`.
    pub(super) fn join_here(&self, census: &Census, queue: usize) {
        self.join(census, queue, Some(thread::current().id()));
    }

    /// Notes that the worker is about to wait.
    pub(super) fn set_idle(&self, census: &Census, queue: usize) {
        self.join_here(census, queue);
        if let State::Busy(thread) = self.0.replace(State::Waiting) {
            census.set_idle(thread);
        }
    }

    /// Notes that the worker has waited, and works if it has received something. If not,
    /// its handle may go to another thread, so that its thread is not known.
    pub(super) fn set_busy(&self, census: &Census, has_received: bool) {
        let thread = has_received.then(|| thread::current().id());
        census.set_busy(thread);
        self.0.set(State::Busy(thread));
    }

    /// Notes that the handle no longer belongs to a worker.
    pub(super) fn leave(&self, census: &Census, queue: usize) {
        if self.has_joined() {
            self.set_idle(census, queue);
            census.leave(queue);
            self.0.set(State::Unknown);
        }
    }
}
