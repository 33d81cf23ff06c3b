//! What a call leaves to be done when the shard's lock has been released.

use crate::shard::record::NameTag;

/// What is to be done when the lock has been released.
#[derive(Default)]
pub(crate) struct Signals {
    /// Queues whose bell is to be rung: mostly one, so that the ticker need not
    /// allocate, which another thread may hold up.
    bell: Option<usize>,
    more_bells: Vec<usize>,
    /// Names of timers that have ended.
    pub(crate) unnamed: Vec<NameTag>,
    /// Whether a task waits for which nothing came due: a loop that runs tasks
    /// itself has to be called to it.
    pub(crate) wake_driver: bool,
    /// Whether no report will come of this shard any more.
    pub(crate) settled: bool,
    /// Whether the last timer has gone that a drain waited for.
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
