//! The work that a call leaves to be done after the shard's lock is released.

use crate::shard::record::Place;

#[derive(Default)]
pub(crate) struct Signals {
    /// A queue whose bell is to be rung. There is rarely more than one, so the ticker
    /// rarely allocates; an allocation could make it wait for another thread.
    bell: Option<usize>,
    more_bells: Vec<usize>,
    /// The places in the index of names that timers have given up.
    pub(crate) unnamed: Vec<Place>,
    /// Whether a task became ready although no timer came due. A loop that runs tasks
    /// itself must be woken for it.
    pub(crate) wake_driver: bool,
    /// Whether this shard will make no further report.
    pub(crate) settled: bool,
    /// Whether the last timer that a drain waited for is gone.
    pub(crate) drained: bool,
}

impl Signals {
    pub(super) fn ring(&mut self, queue: usize) {
        match self.bell {
            None => self.bell = Some(queue),
            Some(_) => self.more_bells.push(queue),
        }
    }

    pub(crate) fn bells(&self) -> impl Iterator<Item = usize> + '_ {
        self.bell.iter().chain(&self.more_bells).copied()
    }
}
