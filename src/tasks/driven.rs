//! Running tasks in the caller's own loop.

use crate::drive::Driver;
use crate::tasks::Task;
use crate::tasks::worker::run_counted;
use crate::wheel::Advance;

/// How many entries may be touched for each task that may run. A timer is filed
/// again on its way inward, at most once in each level, and sorted at the end.
const TOUCHES_PER_TASK: usize = 16;

impl Driver<Task> {
    /// Runs what is due here, in the calling thread, in the order of deadlines:
    /// at most `budget` tasks. What a task adds that is due at once is served
    /// in the same pass, as far as the budget goes: a task that adds itself anew
    /// with no delay comes to an end with it. A panic is caught and counted.
    ///
    /// The budget bounds the timers that are touched, too, at sixteen for each
    /// task. With [`Advance::More`] there may be more to do, and the descriptor
    /// stays readable; with [`Advance::ShutDown`] the engine was shut down, and
    /// every task that was to be told has been.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::TaskEngine;
    /// use tickwheel::wheel::Advance;
    ///
    /// let (timers, driver) = TaskEngine::builder().start_driven()?;
    /// let here = std::thread::current().id();
    /// timers.run_after(Duration::ZERO, move || {
    ///     assert_eq!(std::thread::current().id(), here);
    /// })?;
    /// assert_eq!(driver.run_due(100), Advance::Done);
    /// assert_eq!(timers.ledger().completed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_due(&self, budget: usize) -> Advance {
        let mut tasks = budget;
        let mut touches = budget.saturating_mul(TOUCHES_PER_TASK);
        loop {
            let served = self.make_ready(&mut touches);
            let before = tasks;
            while tasks > 0
                && let Ok(expired) = self.queue().try_recv()
            {
                run_counted(self.queue(), expired);
                tasks -= 1;
            }
            if tasks == 0 || !served {
                return self.what_is_left(served);
            }
            if tasks == before {
                return self.done();
            }
        }
    }
}
