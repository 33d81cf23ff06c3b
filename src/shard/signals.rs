//! The work that a call leaves to be done after the shard's lock is released.

use crate::stats::Histogram;

#[derive(Default)]
pub(crate) struct Signals {
    /// A queue whose bell is to be rung. There is rarely more than one, so the ticker
    /// rarely allocates; an allocation could make it wait for another thread.
    bell: Option<usize>,
    more_bells: Vec<usize>,
    /// Whether a task became ready although no timer came due. A loop that runs tasks
    /// itself must be woken for it.
    pub(crate) wake_driver: bool,
    /// Whether this shard will make no further report.
    pub(crate) settled: bool,
    /// Whether the last timer that a drain waited for is gone.
    pub(crate) drained: bool,
}

impl Signals {
    #[cold]
    pub(super) fn ring(&mut self, queue: usize) {
        match self.bell {
            None => self.bell = Some(queue),
            Some(_) => self.more_bells.push(queue),
        }
    }

    #[inline]
    pub(crate) fn bells(&self) -> impl Iterator<Item = usize> {
        self.bell.into_iter().chain(self.more_bells.iter().copied())
    }
}

/// The work on a shard's firings.
#[derive(Default)]
pub(crate) struct Work {
    /// The number of lent firings.
    pub(crate) held: usize,
    measured: Option<Box<Measured>>,
}

/// Times that are kept only if takes are measured.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) lateness_at_start: Histogram,
    pub(crate) durations: Histogram,
}

impl Work {
    pub(crate) fn measured(&self) -> Option<&Measured> {
        self.measured.as_deref()
    }

    pub(super) fn measure(&mut self) -> &mut Measured {
        self.measured.get_or_insert_default()
    }
}
