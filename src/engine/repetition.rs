//! Reading and changing the repetition of a live timer.

use std::time::Duration;

use crate::engine::Engine;
use crate::id::TimerId;
use crate::timer::{Refusal, Repetition};

impl<T> Engine<T> {
    /// Returns a live timer's period and the number of its firings still to
    /// come, or `None` if the timer does not repeat or is not live.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let second = Duration::from_secs(1);
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// let poison = engine.schedule(Timer::every(3 * second, "poison").times(4))?;
    /// clock.advance(3 * second);
    /// drop(engine.queue(0).recv()?);
    /// assert_eq!(engine.repetition(poison).unwrap().left, Some(3));
    ///
    /// // A second dose: five more ticks, two seconds apart, the first of them now.
    /// engine.set_times(poison, 5)?;
    /// engine.set_period(poison, 2 * second)?;
    /// engine.reschedule(poison, Duration::ZERO)?;
    /// clock.advance(Duration::ZERO);
    /// drop(engine.queue(0).recv()?);
    /// assert_eq!(engine.deadline(poison), Some(engine.now() + 2 * second));
    /// assert_eq!(engine.repetition(poison).unwrap().left, Some(4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn repetition(&self, id: TimerId) -> Option<Repetition> {
        self.core.repetition(id)
    }

    /// Sets another period of a repeating timer. The next deadline stays; the
    /// one after it is a new period later. While a worker holds a firing, even
    /// within the timer's own task, the next deadline follows the new period.
    /// To change the next deadline, call [`reschedule`](Engine::reschedule).
    ///
    /// # Errors
    /// Refuses a period that [`schedule`](Engine::schedule) would refuse. Returns
    /// [`Refusal::NotRepeating`] for a one-shot, and the reason if the timer is
    /// not live or was cancelled or shut down while a worker holds a firing.
    pub fn set_period(&self, id: TimerId, period: Duration) -> Result<(), Refusal> {
        self.core.set_period(id, period)
    }

    /// Sets the number of a repeating timer's firings from now on; 0 means for
    /// ever. A firing that a worker holds does not count, even if it would
    /// have been the last one: the timer then continues.
    ///
    /// # Errors
    /// Fails as [`set_period`](Engine::set_period) does.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Firing, TaskEngine, Timer};
    ///
    /// // A buff that refreshes itself once from within its last firing.
    /// let second = Duration::from_secs(1);
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let engine = timers.engine().clone();
    /// let tick = move |firing: Firing| {
    ///     if firing.number() == 2 {
    ///         engine.set_times(firing.id(), 3).unwrap();
    ///     }
    /// };
    /// timers.run(Timer::every(second, tick).times(2).named("buff").reported())?;
    /// clock.run_until(timers.now() + 9 * second);
    /// assert_eq!(timers.engine().reports().recv()?.firings, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_times(&self, id: TimerId, times: u64) -> Result<(), Refusal> {
        self.core.set_times(id, times)
    }
}
