//! Changing the number of workers while the engine runs.

use std::cmp::Ordering;

use crate::engine::{StartError, check_workers};
use crate::hub::workers::Change;
use crate::tasks::{TaskEngine, worker};

impl TaskEngine {
    /// Returns the number of workers that the engine is to have: the number given to
    /// [`Builder::workers`](crate::Builder::workers) or, last, to
    /// [`set_workers`](TaskEngine::set_workers). Returns zero if a
    /// [`Driver`](crate::Driver) runs the tasks.
    ///
    /// Surplus workers that have yet to leave are not counted.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.engine.core().workers.wanted()
    }

    /// Sets the number of worker threads, from 1 to 4,096, while the engine runs.
    ///
    /// If the number grows, the new workers serve waiting tasks at once, even if all
    /// others run long tasks. If it falls, surplus workers leave: idle ones at once, busy
    /// ones when their tasks return. This call does not wait for them. More tasks than
    /// `workers` may therefore run for a while. Growing again keeps surplus workers that
    /// have not left, before it starts others.
    ///
    /// A task may call this, and may thereby dismiss its own worker. If several threads
    /// call at the same time, the calls take effect one after the other. A shutdown ends
    /// the leaving: workers that have not left serve until all
    /// [`notified`](crate::Timer::notified) tasks have run.
    ///
    /// # Errors
    /// Returns [`StartError::Setting`] for zero and above 4,096, [`StartError::ShutDown`]
    /// after a shutdown, and [`StartError::Driven`] if a [`Driver`](crate::Driver) runs the
    /// tasks. The number of workers is then unchanged.
    ///
    /// Returns [`StartError::Thread`] if the system starts no more threads. Workers that
    /// this call has started remain, and [`workers`](TaskEngine::workers) counts them.
    ///
    /// # Cost
    /// Starts a thread for each worker that is added. Wakes all idle workers if
    /// the number falls.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::TaskEngine;
    ///
    /// let timers = TaskEngine::builder().start()?;
    /// let (finish, finished) = std::sync::mpsc::channel();
    /// timers.run_after(Duration::ZERO, move || finished.recv().unwrap())?;
    /// timers.run_after(Duration::ZERO, move || finish.send(()).unwrap())?;
    /// timers.set_workers(2)?; // one for each task: the first waits for the second
    /// timers.drain(Duration::ZERO);
    /// timers.join();
    /// assert_eq!(timers.ledger().completed, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_workers(&self, workers: usize) -> Result<(), StartError> {
        if self.workers() == 0 {
            return Err(StartError::Driven);
        }
        check_workers(workers)?;
        let mut change = self.engine.core().workers.change();
        if change.is_stopping() || self.is_shut_down() {
            return Err(StartError::ShutDown);
        }
        match workers.cmp(&self.workers()) {
            Ordering::Less => self.shrink(workers, change),
            Ordering::Equal => {}
            Ordering::Greater => self.grow(workers, &mut change)?,
        }
        Ok(())
    }

    fn grow(&self, workers: usize, change: &mut Change<'_>) -> Result<(), StartError> {
        let present = self.workers();
        let kept = change.keep(workers - present);
        change.set_wanted(present + kept);
        worker::start_up_to(workers, &self.engine, change)
    }

    fn shrink(&self, workers: usize, mut change: Change<'_>) {
        change.dismiss(self.workers() - workers);
        change.set_wanted(workers);
        drop(change);
        self.engine.core().doorbell(0).wake_receivers();
    }
}
