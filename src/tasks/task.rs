//! The closure that an engine stores, its return to the caller, and the firing that it
//! receives. These types name each other.

use std::any::Any;
use std::fmt;
// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc as StdArc;

use crate::hub::SharedCore;
use crate::queue::Expired;
use crate::shard;
use crate::sync::Arc;
use crate::timeline::Time;

/// A closure that is waiting to be run.
pub struct Task(Box<dyn Run>);

/// A closure of a type that the engine does not know. `Any` restores that type
/// when the closure is refused.
trait Run: Send {
    fn run(&mut self, call: Call<'_>);
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// A closure that runs at most once, without its firing. Empty afterwards.
struct Silent<F>(Option<F>);

impl<F: FnOnce() + Send + 'static> Run for Silent<F> {
    fn run(&mut self, _: Call<'_>) {
        if let Some(task) = self.0.take() {
            task();
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A closure that runs at most once. Empty afterwards.
struct Once<F>(Option<F>);

impl<F: FnOnce(Firing) + Send + 'static> Run for Once<F> {
    fn run(&mut self, call: Call<'_>) {
        if let Some(task) = self.0.take() {
            let mut firing = call.into_firing();
            firing.rearmable = false;
            task(firing);
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A closure that runs at every firing.
struct Each<F>(F);

impl<F: FnMut(Firing) + Send + 'static> Run for Each<F> {
    fn run(&mut self, call: Call<'_>) {
        (self.0)(call.into_firing());
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Task {
    pub(super) fn silent<F: FnOnce() + Send + 'static>(task: F) -> Task {
        Task(Box::new(Silent(Some(task))))
    }

    pub(super) fn once<F: FnOnce(Firing) + Send + 'static>(task: F) -> Task {
        Task(Box::new(Once(Some(task))))
    }

    pub(super) fn each<F: FnMut(Firing) + Send + 'static>(task: F) -> Task {
        Task(Box::new(Each(task)))
    }

    pub(super) fn run(&mut self, call: Call<'_>) {
        self.0.run(call);
    }

    /// Returns the closure given to [`Task::silent`], which has not run.
    pub(super) fn into_silent<F: 'static>(self) -> F {
        let silent = self.0.into_any().downcast::<Silent<F>>();
        silent.ok().and_then(|it| it.0).expect("it was not run")
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

/// The firing for which a task runs, passed to its closure.
///
/// A firing is a value that the closure may keep, clone or send to another
/// thread. After the task has returned, a firing changes nothing. It keeps the
/// memory of its engine, but does not keep the engine running.
#[derive(Clone)]
pub struct Firing {
    pub(super) firing: shard::Firing,
    pub(super) name: Option<StdArc<str>>,
    pub(super) deadline: Time,
    pub(super) core: Arc<SharedCore<Task>>,
    /// Whether the closure can run again.
    pub(super) rearmable: bool,
}

/// The parts of a [`Firing`], for closures that may not need one.
pub(super) struct Call<'a> {
    firing: shard::Firing,
    name: Option<StdArc<str>>,
    deadline: Time,
    core: &'a Arc<SharedCore<Task>>,
}

impl<'a> Call<'a> {
    pub(super) fn of(expired: &Expired<Task>, core: &'a Arc<SharedCore<Task>>) -> Call<'a> {
        Call {
            firing: expired.firing().clone(),
            name: expired.shared_name(),
            deadline: expired.deadline(),
            core,
        }
    }

    pub(super) fn into_firing(self) -> Firing {
        Firing {
            firing: self.firing,
            name: self.name,
            deadline: self.deadline,
            core: Arc::clone(self.core),
            rearmable: true,
        }
    }
}
