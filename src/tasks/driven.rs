//! Running tasks in the caller's own loop.

use crate::drive::Driver;
use crate::hub::Wait;
use crate::tasks::Task;
use crate::tasks::worker::Runner;
use crate::wheel::Advance;

/// The number of entries that may be touched for each task that may run. A
/// timer cascades at most once per level, and is sorted at the end.
const TOUCHES_PER_TASK: usize = 16;

impl Driver<Task> {
    /// Runs at most `budget` due tasks in the calling thread, in the order
    /// of their deadlines. A task that another one adds without a delay runs
    /// in the same pass, within the budget. A panic is caught and counted.
    ///
    /// The budget also limits the number of entries touched, to sixteen per
    /// task. Returns [`Advance::More`] if work may be left; the descriptor
    /// then stays readable. Returns [`Advance::ShutDown`] if the engine was
    /// shut down and every [`notified`](crate::Timer::notified) task has run.
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
    ///
    /// # Nested calls
    /// A task that calls `run_due` of its own engine would run other tasks inside
    /// itself. Such a call does nothing, because the outer call will run them. It
    /// returns [`Advance::Done`], or [`Advance::ShutDown`] if the engine was shut down
    /// and no task is left. A task may drive another engine.
    ///
    /// # Several threads
    /// Threads may call at the same time. Each due task runs once, in one of them; the
    /// tasks of one call run in the order of their deadlines. A call does not wait for
    /// tasks that another call runs. Tasks that a call has made ready do not wake a
    /// thread that sleeps on the descriptor.
    pub fn run_due(&self, budget: usize) -> Advance {
        match self.enter_loop() {
            Some(_in_loop) => self.run_tasks(budget),
            None => self.done(),
        }
    }

    fn run_tasks(&self, budget: usize) -> Advance {
        let queue = self.queue();
        let mut runner = Runner::new(&queue);
        let mut tasks = budget;
        let mut touches = budget.saturating_mul(TOUCHES_PER_TASK);
        loop {
            let served = self.make_ready(&mut touches);
            let before = tasks;
            while tasks > 0 && runner.run_next(Wait::No).is_ok() {
                tasks -= 1;
            }
            runner.finish();
            if tasks == 0 || !served {
                return self.what_is_left(served);
            }
            if tasks == before {
                return self.done();
            }
        }
    }
}
