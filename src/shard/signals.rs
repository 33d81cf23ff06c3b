//! The work that a call leaves to be done after the shard's lock is released.

// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc;

use crate::shard::record::Place;
use crate::stats::Histogram;

#[derive(Default)]
pub(crate) struct Signals {
    /// A queue whose bell is to be rung. There is rarely more than one, so the ticker
    /// rarely allocates; an allocation could make it wait for another thread.
    bell: Option<usize>,
    /// The name that a timer has given up. As with the bells, there is rarely more than
    /// one.
    unnamed: Option<Unnamed>,
    more: Option<Box<More>>,
    /// Whether a task became ready although no timer came due. A loop that runs tasks
    /// itself must be woken for it.
    pub(crate) wake_driver: bool,
    /// Whether this shard will make no further report.
    pub(crate) settled: bool,
    /// Whether the last timer that a drain waited for is gone.
    pub(crate) drained: bool,
}

/// The bells and places beyond the first. In a box, because signals are moved whenever
/// there are any.
#[derive(Default)]
struct More {
    bells: Vec<usize>,
    unnamed: Vec<Unnamed>,
}

/// The place of a timer in the index of names, and the name if nothing else needs it.
/// Dropping the name may free memory, which takes too long under a shard's lock.
type Unnamed = (Place, Option<Arc<str>>);

impl Signals {
    #[cold]
    pub(super) fn ring(&mut self, queue: usize) {
        match self.bell {
            None => self.bell = Some(queue),
            Some(_) => self.more().bells.push(queue),
        }
    }

    #[inline]
    pub(super) fn give_up_name(&mut self, place: Place, name: Option<Arc<str>>) {
        match self.unnamed {
            None => self.unnamed = Some((place, name)),
            Some(_) => self.more().unnamed.push((place, name)),
        }
    }

    #[cold]
    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Takes the places in the index of names that timers have given up.
    #[inline]
    pub(crate) fn take_unnamed(&mut self, mut each: impl FnMut(Place)) {
        if let Some((place, _name)) = self.unnamed.take() {
            each(place);
        }
        if let Some(more) = &mut self.more {
            more.unnamed
                .drain(..)
                .for_each(|(place, _name)| each(place));
        }
    }

    #[inline]
    pub(crate) fn each_bell(&self, mut each: impl FnMut(usize)) {
        if let Some(queue) = self.bell {
            each(queue);
        }
        if let Some(more) = &self.more {
            more.bells.iter().copied().for_each(each);
        }
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
