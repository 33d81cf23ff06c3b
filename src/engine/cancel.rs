//! Cancelling many timers, and waiting for a timer that runs.

use crate::engine::Engine;
use crate::hub::running;
use crate::id::TimerId;
use crate::timer::Cancel;

impl<T> Engine<T> {
    /// Cancels many timers, and returns the answer of [`cancel`](Engine::cancel)
    /// for each, with its id, in the order of `ids`.
    ///
    /// Faster than repeated `cancel` calls, especially for timers that another
    /// thread scheduled. Consecutive ids from one thread are cancelled under a
    /// single lock acquisition, and their entries are prefetched together.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Cancel, Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let schedule = |n| engine.schedule(Timer::after(Duration::from_secs(9), n));
    /// let ids = [schedule(1)?, schedule(2)?];
    /// engine.cancel(ids[0]);
    /// let answers = engine.cancel_many(&ids);
    /// assert_eq!(answers, [(ids[0], Cancel::Gone), (ids[1], Cancel::Cancelled(2))]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_many(&self, ids: &[TimerId]) -> Vec<(TimerId, Cancel<T>)> {
        self.core.cancel_many(ids)
    }

    /// Cancels the timers that have this name, oldest first: all of them if `max` is
    /// `None`, otherwise at most `max`. Returns the answer of [`cancel`](Engine::cancel)
    /// for each, with its id. None of them fires again. A timer whose last firing is running
    /// is [`Cancel::Running`], and does not count towards `max`, because it may end by
    /// itself. Does not cancel timers that are created during the call.
    ///
    /// # Cost
    /// Grows with the number of timers cancelled, not with the number that share
    /// the name. Other users of the name can proceed after every few timers.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Cancel, Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let batch = |n| Timer::after(Duration::from_secs(9), n).named("batch");
    /// let first = engine.schedule(batch(1))?;
    /// engine.schedule(batch(2))?;
    /// let cancelled = engine.cancel_by_name("batch", 1);
    /// assert_eq!(cancelled, [(first, Cancel::Cancelled(1))]);
    /// assert_eq!(engine.cancel_by_name("batch", None).len(), 1);
    /// assert!(engine.cancel_by_name("batch", None).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_by_name(
        &self,
        name: &str,
        max: impl Into<Option<usize>>,
    ) -> Vec<(TimerId, Cancel<T>)> {
        self.core.cancel_by_name(name, max.into())
    }

    /// Cancels all timers, without shutting the engine down.
    ///
    /// Does for each timer what [`cancel`](Engine::cancel) does. Expired timers that no
    /// worker has taken and [unstarted](Engine::create) timers are cancelled, and a timer
    /// with a running firing does not fire again. Returns the answer for each that had not
    /// ended, with its id, in no particular order. Does not cancel timers that are created
    /// during the call, so it returns even
    /// if other threads continue to schedule.
    ///
    /// # Cost
    /// Grows with the largest number of timers that were ever live, or live since
    /// the last [`shrink`](Engine::shrink). Holds a shard's lock for a few dozen
    /// timers at a time.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Engine, Timer};
    /// // A game room is cleared, and the next round begins in it.
    /// let room = Engine::builder().start()?;
    /// for buff in ["haste", "shield"] {
    ///     room.schedule(Timer::after(Duration::from_secs(9), buff))?;
    /// }
    /// let cleared = room.cancel_all().into_iter();
    /// let buffs = cleared.filter_map(|(_, answer)| answer.into_payload());
    /// assert_eq!(buffs.count(), 2);
    /// assert!(room.schedule(Timer::after(Duration::from_secs(9), "haste")).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_all(&self) -> Vec<(TimerId, Cancel<T>)> {
        self.core.cancel_all()
    }

    /// Cancels a timer, and blocks until no worker holds a firing of it, even if the engine
    /// was shut down during that firing. Returns the answer of [`cancel`](Engine::cancel).
    ///
    /// Also waits for the run that tells a [`notified`](crate::Timer::notified) task of the
    /// end. That run may need the calling thread itself: if a task of this engine makes the
    /// call, or if the engine has no workers because a loop runs its tasks, the call waits
    /// for the run only if it has begun.
    ///
    /// Does not block when called from within the timer's own task, even if that
    /// task drives another engine whose task makes the call. A worker that calls
    /// this for an [`Expired`](crate::Expired) that it holds itself blocks for
    /// ever; so do two tasks that wait for each other.
    pub fn cancel_and_wait(&self, id: TimerId) -> Cancel<T> {
        let cancelled = self.cancel(id);
        // A timer that is gone may have been shut down during its firing.
        let may_run = !matches!(cancelled, Cancel::Cancelled(_));
        if may_run && !running::is_running_here(id) {
            self.core.wait_for_return(id);
        }
        cancelled
    }
}
