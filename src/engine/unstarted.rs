//! Timers that exist before they are started.

use core::fmt;

use crate::hub::SharedCore;
use crate::id::TimerId;
use crate::sync::Arc;
use crate::timer::{Refused, Timer};

/// A timer that was created but has not been started, from
/// [`Engine::create`](crate::Engine::create).
///
/// It already has its id and its name, and can be cancelled by either. If it
/// was cancelled, it ends as soon as it is started. Dropping it dismisses it.
///
/// It is not live before it is started. Until then,
/// [`deadline`](crate::Engine::deadline) returns `None`, and
/// [`reschedule`](crate::Engine::reschedule) and other changes return
/// [`Refusal::Unstarted`](crate::Refusal::Unstarted). To start it with
/// another deadline or payload, dismiss it and create another.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Timer};
///
/// let engine = Engine::builder().start()?;
/// let timer = Timer::after(Duration::from_secs(1), "lease").named("leases");
/// let unstarted = engine.create(timer)?;
/// assert_eq!(engine.ledger().accepted, 0);
/// let id = unstarted.start()?;
/// assert_eq!(engine.cancel(id).into_payload(), Some("lease"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping an unstarted timer dismisses it"]
pub struct Unstarted<T> {
    core: Arc<SharedCore<T>>,
    id: TimerId,
    /// Whether the timer is neither started nor dismissed.
    owned: bool,
}

impl<T> Unstarted<T> {
    pub(crate) fn new(core: Arc<SharedCore<T>>, id: TimerId) -> Unstarted<T> {
        Unstarted {
            core,
            id,
            owned: true,
        }
    }

    /// Returns the timer's id.
    #[must_use]
    pub fn id(&self) -> TimerId {
        self.id
    }

    /// Starts the timer; its delay counts from this call. A cancelled timer
    /// ends at once.
    ///
    /// # Errors
    /// Returns the timer if the engine was shut down meanwhile.
    pub fn start(mut self) -> Result<TimerId, Refused<Timer<T>>> {
        self.owned = false;
        self.core.start(self.id)
    }

    /// Gives the timer up. Returns its payload, or `None` if the timer was
    /// cancelled, in which case the canceller received it.
    pub fn dismiss(mut self) -> Option<T> {
        self.owned = false;
        self.core.dismiss(self.id)
    }
}

impl<T> Drop for Unstarted<T> {
    fn drop(&mut self) {
        if self.owned {
            drop(self.core.dismiss(self.id));
        }
    }
}

impl<T> fmt::Debug for Unstarted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unstarted")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
