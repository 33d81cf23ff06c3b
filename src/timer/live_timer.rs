//! A live timer, as a walk or a look-up finds it.

// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc;

use crate::id::TimerId;
use crate::tick::Tick;
use crate::timeline::Time;

/// A live timer, as it was when a walk reached it or
/// [`Engine::find`](crate::Engine::find) looked it up.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LiveTimer {
    /// The timer.
    pub id: TimerId,
    /// The timer's name, if it has one.
    pub name: Option<Arc<str>>,
    /// The tick at which the timer is due next, or was due if it is running or waiting to
    /// be taken.
    pub tick: Tick,
    /// The time at which that tick begins.
    pub deadline: Time,
    /// The timer's queue.
    pub queue: usize,
}
