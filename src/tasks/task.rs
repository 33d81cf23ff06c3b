//! The closure that an engine stores, its return to the caller, and the firing that it
//! receives. These types name each other.

use std::fmt;

use crate::hub::SharedCore;
use crate::shard;
use crate::sync::Arc;
use crate::tasks::closure::{Closure, Make, RunEach, RunOnce};

/// A closure that is waiting to be run.
///
/// A cancel, a shutdown or a replacement may return it, and it can be scheduled again. A
/// closure that runs at most once ends its timer with its run, even if that timer repeats.
pub struct Task(Closure<Firing>);

/// A closure that runs at most once, without its firing.
struct Silent<F>(F);

impl<F: FnOnce() + Send + 'static> RunOnce<Firing> for Silent<F> {
    fn run(self, _: Make<'_, Firing>) {
        (self.0)();
    }
}

/// A closure that runs at most once.
struct Once<F>(F);

impl<F: FnOnce(Firing) + Send + 'static> RunOnce<Firing> for Once<F> {
    fn run(self, firing: Make<'_, Firing>) {
        let mut firing = firing();
        firing.rearmable = false;
        (self.0)(firing);
    }
}

/// A closure that runs at every firing.
struct Each<F>(F);

impl<F: FnMut(Firing) + Send + 'static> RunEach<Firing> for Each<F> {
    fn run(&mut self, firing: Make<'_, Firing>) {
        (self.0)(firing());
    }
}

impl Task {
    #[inline]
    pub(super) fn silent<F: FnOnce() + Send + 'static>(task: F) -> Task {
        Task(Closure::once(Silent(task)))
    }

    #[inline]
    pub(super) fn once<F: FnOnce(Firing) + Send + 'static>(task: F) -> Task {
        Task(Closure::once(Once(task)))
    }

    #[inline]
    pub(super) fn each<F: FnMut(Firing) + Send + 'static>(task: F) -> Task {
        Task(Closure::each(Each(task)))
    }

    /// Runs the closure, with the firing that `firing` makes. Does nothing if the closure
    /// runs at most once and has run.
    pub(super) fn run(&mut self, firing: Make<'_, Firing>) {
        self.0.run(firing);
    }

    /// Whether the closure has run and cannot run again. There is nothing left to drop.
    pub(super) fn is_consumed(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the closure given to [`Task::silent`], which has not run.
    pub(super) fn into_silent<F: Send + 'static>(self) -> F {
        self.0.into_inner::<Silent<F>>().expect(AS_MADE).0
    }

    /// Returns the closure given to [`Task::once`], which has not run.
    pub(super) fn into_once<F: Send + 'static>(self) -> F {
        self.0.into_inner::<Once<F>>().expect(AS_MADE).0
    }

    /// Returns the closure given to [`Task::each`].
    pub(super) fn into_each<F: Send + 'static>(self) -> F {
        self.0.into_inner::<Each<F>>().expect(AS_MADE).0
    }
}

const AS_MADE: &str = "it is what it was made of";

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}

/// The firing for which a task runs, passed to its closure.
///
/// A firing is a value that the closure may keep, clone or send to another
/// thread. After the task has returned, a firing changes nothing. It keeps the
/// memory of its engine, but does not keep the engine running.
#[derive(Clone)]
pub struct Firing {
    pub(super) firing: shard::Firing,
    pub(super) core: Arc<SharedCore<Task>>,
    /// Whether the closure can run again.
    pub(super) rearmable: bool,
}

impl Firing {
    pub(super) fn of(firing: &shard::Firing, core: &Arc<SharedCore<Task>>) -> Firing {
        Firing {
            firing: firing.clone(),
            core: Arc::clone(core),
            rearmable: true,
        }
    }
}
