//! The work that a call leaves to be done after the shard's lock is released.

use crate::shard::record::Place;

#[derive(Default)]
pub(crate) struct Signals {
    /// A queue whose bell is to be rung. There is rarely more than one, so the ticker
    /// rarely allocates; an allocation could make it wait for another thread.
    bell: Option<usize>,
    more_bells: Vec<usize>,
    /// The place in the index of names that a timer has given up. As with the bells, there
    /// is rarely more than one.
    unnamed: Option<Place>,
    more_unnamed: Vec<Place>,
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

    pub(super) fn give_up_name(&mut self, place: Place) {
        match self.unnamed {
            None => self.unnamed = Some(place),
            Some(_) => self.more_unnamed.push(place),
        }
    }

    /// Takes the places in the index of names that timers have given up.
    pub(crate) fn take_unnamed(&mut self) -> impl Iterator<Item = Place> + use<> {
        let more = std::mem::take(&mut self.more_unnamed);
        self.unnamed.take().into_iter().chain(more)
    }

    pub(crate) fn bells(&self) -> impl Iterator<Item = usize> + '_ {
        self.bell.iter().chain(&self.more_bells).copied()
    }
}
