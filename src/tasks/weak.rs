//! Handles that do not keep a task engine alive.

use std::fmt;
use std::sync::Arc;

use crate::engine::WeakEngine;
use crate::tasks::workers::Workers;
use crate::tasks::{Task, TaskEngine};

/// A handle that does not keep its engine alive, from [`TaskEngine::downgrade`].
///
/// A closure that schedules a follow-up needs a handle. With a weak one, the engine
/// ends when its owner drops it:
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
#[derive(Clone)]
pub struct WeakTaskEngine {
    engine: WeakEngine<Task>,
    workers: Arc<Workers>,
}

impl TaskEngine {
    /// Returns a handle that does not keep the engine alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakTaskEngine {
        WeakTaskEngine {
            engine: self.engine.downgrade(),
            workers: Arc::clone(&self.workers),
        }
    }
}

impl WeakTaskEngine {
    /// Returns a handle to the engine, or `None` if the last handle was dropped; see
    /// [`WeakEngine::upgrade`].
    #[must_use]
    pub fn upgrade(&self) -> Option<TaskEngine> {
        Some(TaskEngine {
            engine: self.engine.upgrade()?,
            workers: Arc::clone(&self.workers),
        })
    }
}

impl fmt::Debug for WeakTaskEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakTaskEngine").finish_non_exhaustive()
    }
}
