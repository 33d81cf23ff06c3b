//! The closure that an engine stores, and its return to the caller.

use std::any::Any;
use std::fmt;

use crate::tasks::Firing;

/// A closure that is waiting to be run.
pub struct Task(Box<dyn Run>);

/// A closure of a type that the engine does not know. `Any` restores that type
/// when the closure is refused.
trait Run: Send {
    fn run(&mut self, firing: &Firing);
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// A closure that runs at most once. Empty afterwards.
struct Once<F>(Option<F>);

impl<F: FnOnce() + Send + 'static> Run for Once<F> {
    fn run(&mut self, _: &Firing) {
        if let Some(task) = self.0.take() {
            task();
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A closure that runs at every firing.
struct Each<F>(F);

impl<F: FnMut(&Firing) + Send + 'static> Run for Each<F> {
    fn run(&mut self, firing: &Firing) {
        (self.0)(firing);
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Task {
    pub(super) fn once<F: FnOnce() + Send + 'static>(task: F) -> Task {
        Task(Box::new(Once(Some(task))))
    }

    pub(super) fn each<F: FnMut(&Firing) + Send + 'static>(task: F) -> Task {
        Task(Box::new(Each(task)))
    }

    pub(super) fn run(&mut self, firing: &Firing) {
        self.0.run(firing);
    }

    /// Returns the closure given to [`Task::once`], which has not run.
    pub(super) fn into_once<F: 'static>(self) -> F {
        let once = self.0.into_any().downcast::<Once<F>>();
        once.ok().and_then(|once| once.0).expect("it was not run")
    }

    /// Returns the closure given to [`Task::each`].
    pub(super) fn into_each<F: 'static>(self) -> F {
        let each = self.0.into_any().downcast::<Each<F>>();
        each.expect("it is what it was made of").0
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}
