//! Handles that do not keep an engine alive.

use core::fmt;

use crate::engine::{Engine, Handle};
use crate::sync::{Arc, CountedArc, WeakArc};

/// A handle that does not keep its engine alive, from [`Engine::downgrade`].
///
/// A payload or a cache that holds an [`Engine`] keeps it from being shut down when its
/// owner drops it. With a weak handle it does not:
///
/// ```
/// use tickwheel::Engine;
///
/// let engine = Engine::<()>::builder().start()?;
/// let queue = engine.queue(0);
/// let weak = engine.downgrade();
/// assert!(weak.upgrade().is_some());
/// drop(engine);
/// assert!(weak.upgrade().is_none());
/// assert!(queue.is_shut_down());
/// # Ok::<(), tickwheel::StartError>(())
/// ```
pub struct WeakEngine<T> {
    handle: WeakArc<Handle<T>>,
}

impl<T> Engine<T> {
    /// Returns a handle that does not keep the engine alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakEngine<T> {
        WeakEngine {
            handle: CountedArc::downgrade(&self.handle),
        }
    }
}

impl<T> WeakEngine<T> {
    /// Returns a handle to the engine, or `None` if the last handle was dropped. The
    /// returned handle keeps the engine alive as any other does. After a
    /// [`shutdown`](Engine::shutdown), still returns a handle, whose calls answer that
    /// the engine was shut down.
    ///
    /// # Cost
    /// A few atomic operations, and no lock.
    #[must_use]
    pub fn upgrade(&self) -> Option<Engine<T>> {
        let handle = self.handle.upgrade()?;
        let core = Arc::clone(handle.shared.core());
        Some(Engine { core, handle })
    }
}

impl<T> Clone for WeakEngine<T> {
    fn clone(&self) -> WeakEngine<T> {
        WeakEngine {
            handle: self.handle.clone(),
        }
    }
}

impl<T> fmt::Debug for WeakEngine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakEngine").finish_non_exhaustive()
    }
}
