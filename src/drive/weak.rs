//! The weak handle to an engine.

// Not those of `crate::sync`: a model has no weak references.
use std::sync::{Arc, Weak};

use crate::drive::Family;
use crate::engine::{Engine, Handle};

/// A handle that does not keep its engine alive, from the engine's `downgrade`. `E` is an
/// [`Engine`], a [`TaskEngine`](crate::TaskEngine), or [`Timers`](crate::time::Timers).
///
/// A payload, a cache or a closure that holds an engine keeps it from being shut down when
/// its owner drops it. With a weak handle it does not. Say, a closure schedules a follow-up:
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use tickwheel::TaskEngine;
///
/// let (timers, clock) = TaskEngine::builder().start_virtual()?;
/// let second = Duration::from_secs(1);
/// let weak = timers.downgrade();
/// let (tell, told) = mpsc::channel();
/// timers.run_after(second, move || {
///     tell.send("first").unwrap();
///     if let Some(timers) = weak.upgrade() {
///         let follow_up = move || tell.send("follow-up").unwrap();
///         let _ = timers.run_after(second, follow_up);
///     }
/// })?;
/// clock.run_until(timers.now() + second);
/// assert_eq!(told.recv()?, "first");
/// drop(timers); // the last handle: drops the follow-up unfired
/// assert!(told.recv().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WeakEngine<E: Family> {
    handle: Weak<Handle<E::Payload>>,
}

impl<T> Engine<T> {
    /// Returns a handle that does not keep the engine alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakEngine<Engine<T>> {
        WeakEngine::to(self)
    }
}

impl<E: Family> WeakEngine<E> {
    pub(crate) fn to(engine: &Engine<E::Payload>) -> WeakEngine<E> {
        WeakEngine { handle: Arc::downgrade(engine.handle()) }
    }

    /// Returns a handle to the engine, or `None` if the last handle was dropped. The
    /// returned handle keeps the engine alive as any other does. After a
    /// [`shutdown`](Engine::shutdown), still returns a handle, whose calls answer that
    /// the engine was shut down.
    ///
    /// # Cost
    /// A few atomic operations, and no lock.
    #[must_use]
    pub fn upgrade(&self) -> Option<E> {
        Some(E::of(Engine::of(self.handle.upgrade()?)))
    }
}

impl<E: Family> Clone for WeakEngine<E> {
    fn clone(&self) -> WeakEngine<E> {
        WeakEngine { handle: self.handle.clone() }
    }
}

debug!(it: [E: Family] WeakEngine<E> => "WeakEngine" { handles: it.handle.strong_count() });
