//! Whether a queue handle belongs to a worker, and whether that worker is
//! busy. A virtual clock waits until all workers are idle.

use std::cell::Cell;

use crate::hub::Census;

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// Not known to belong to a worker.
    #[default]
    Unknown,
    Busy,
    Waiting,
}

#[derive(Default)]
pub(super) struct WorkerState(Cell<State>);

impl WorkerState {
    pub(super) fn has_joined(&self) -> bool {
        self.0.get() != State::Unknown
    }

    /// Counts a worker of `queue`, unless it has already been counted.
    pub(super) fn join(&self, census: &Census, queue: usize) {
        if !self.has_joined() {
            census.join(queue);
            self.0.set(State::Busy);
        }
    }

    pub(super) fn set_busy(&self, busy: bool, census: &Census, queue: usize) {
        self.join(census, queue);
        let state = if busy { State::Busy } else { State::Waiting };
        if self.0.replace(state) != state {
            census.set_busy(busy);
        }
    }

    pub(super) fn leave(&self, census: &Census, queue: usize) {
        if self.has_joined() {
            census.leave(queue, self.0.get() == State::Busy);
        }
    }
}
