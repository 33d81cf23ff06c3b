//! Several expired timers for one worker.

use crate::queue::{Expired, Queue, RecvError};

/// Iterator over expired timers, from [`Queue::recv_batch`].
#[derive(Debug)]
#[must_use = "a batch takes no timer until it is iterated"]
pub struct Batch<'a, T> {
    queue: &'a Queue<T>,
    first: Option<Expired<T>>,
    more: usize,
}

impl<T> Queue<T> {
    /// Blocks until a timer has expired, and returns an iterator over at most
    /// `max` expired timers. The iterator takes a timer only when it reaches it;
    /// until then, the timer can be cancelled. It ends early if no timer is left.
    ///
    /// # Errors
    /// Returns [`RecvError::ShutDown`] if the engine was shut down.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// for n in 0..3 {
    ///     engine.schedule(Timer::after(Duration::from_secs(1), n))?;
    /// }
    /// clock.advance(Duration::from_secs(1));
    /// let queue = engine.queue(0);
    /// let batch = queue.recv_batch(2)?.map(|expired| expired.into_payload());
    /// assert_eq!(batch.collect::<Vec<_>>(), [0, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recv_batch(&self, max: usize) -> Result<Batch<'_, T>, RecvError> {
        match max {
            0 => Ok(self.batch(None, 0)),
            max => Ok(self.batch(Some(self.recv()?), max - 1)),
        }
    }

    fn batch(&self, first: Option<Expired<T>>, more: usize) -> Batch<'_, T> {
        let queue = self;
        Batch { queue, first, more }
    }
}

impl<T> Iterator for Batch<'_, T> {
    type Item = Expired<T>;

    fn next(&mut self) -> Option<Expired<T>> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        self.more = self.more.checked_sub(1)?;
        self.queue.try_recv().ok()
    }
}
