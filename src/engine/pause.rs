//! Pausing and resuming timers.

use std::time::Duration;

use crate::engine::Engine;
use crate::id::TimerId;
use crate::timer::Refusal;

impl<T> Engine<T> {
    /// Pauses a timer: for this timer, time stands still until
    /// [`resume`](Engine::resume). The timer keeps its id, name and payload and
    /// what is left of its delay. It cannot fire and causes no wake-up.
    ///
    /// A paused timer is live: it can be cancelled, [`live`](Engine::live) visits it,
    /// [`shutdown`](Engine::shutdown) returns it, and it counts against
    /// [`Builder::max_timers`](crate::Builder::max_timers). A [`drain`](Engine::drain)
    /// does not wait for it. [`reschedule`](Engine::reschedule) sets what is left of its
    /// delay, and leaves it paused.
    ///
    /// An expired timer that no worker has taken leaves its queue, with nothing
    /// left of its delay. While a worker holds a firing, the pause takes effect
    /// when the firing returns, from the moment of this call. If no firing
    /// follows, it has no effect. Pausing a paused timer changes nothing.
    ///
    /// A pause also moves the deadline of a timer that was scheduled for a point in
    /// time. To keep that point, as a job of a calendar should, resume the timer and then
    /// [`reschedule`](Engine::reschedule) it.
    ///
    /// # Errors
    /// Returns [`Refusal::Gone`] if the timer is not live, and
    /// [`Refusal::Cancelled`] if it was cancelled while a firing is running.
    ///
    /// # Cost
    /// One short lock. A one-shot without further settings gets a record, as a
    /// named one has, and keeps it until it ends.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// // A lease of ten seconds that is suspended for an hour.
    /// let second = Duration::from_secs(1);
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// let lease = engine.schedule(Timer::after(10 * second, "lease"))?;
    /// clock.advance(4 * second);
    /// engine.pause(lease)?;
    /// assert_eq!(engine.paused(lease), Some(6 * second));
    /// clock.advance(3_600 * second);
    /// engine.resume(lease)?;
    /// assert_eq!(engine.deadline(lease), Some(engine.now() + 6 * second));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pause(&self, id: TimerId) -> Result<(), Refusal> {
        self.core.pause(id)
    }

    /// Resumes a paused timer with what is left of its delay. The phase of a
    /// repeating timer, and the firings that it has missed before the pause,
    /// move by the length of the pause. Changes nothing if the timer is not
    /// paused.
    ///
    /// Among the timers of its new tick, a resumed timer keeps the place of its
    /// first scheduling.
    ///
    /// # Errors
    /// Returns [`Refusal::Gone`] if the timer is not live.
    pub fn resume(&self, id: TimerId) -> Result<(), Refusal> {
        self.core.resume(id)
    }

    /// Returns what is left of a paused timer's delay, or `None` if the timer
    /// is not paused. Returns zero while a worker holds a firing of the timer.
    #[must_use]
    pub fn paused(&self, id: TimerId) -> Option<Duration> {
        self.core.paused(id)
    }
}
