//! Many payloads for one worker, in few holds of a lock.

use crate::hub::{TAKES_PER_HOLD, Wait};
use crate::queue::{Expired, Place, Queue, RecvError};
use crate::shard::Claimed;

impl<T> Queue<T> {
    /// Blocks until a timer has expired, and appends the payloads of up to `max` expired
    /// timers to `payloads`. Takes what is there and does not wait for more.
    ///
    /// A payload in `payloads` belongs to the worker, and its timer has ended. It is as
    /// if the worker had called [`recv`](Queue::recv) and [`Expired::into_payload`] for
    /// each of them, one after the other.
    ///
    /// A repeating or [`rearmable`](crate::Timer::rearmable) timer only lends its
    /// payload. The call ends at such a timer and returns its firing: the firing comes
    /// after the payloads that were appended. Dropping it returns the payload to the
    /// engine. The worker calls again for the timers behind it.
    ///
    /// # Errors
    /// Returns [`RecvError::ShutDown`] if the engine was shut down, and appends nothing.
    ///
    /// # Cost
    /// Takes up to 32 timers in one hold of a shard's lock, and so costs less than half
    /// of what `recv` costs for each. The price is that a timer in `payloads` can no
    /// longer be cancelled: a cancel of it returns [`Cancel::Gone`](crate::Cancel::Gone),
    /// although the worker has not come to it. [`try_iter`](Queue::try_iter) takes a
    /// timer only when it reaches it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let (engine, clock) = Engine::builder().start_virtual()?;
    /// let second = Duration::from_secs(1);
    /// engine.schedule(Timer::after(second, "first"))?;
    /// engine.schedule(Timer::after(second, "second"))?;
    /// engine.schedule(Timer::every(second, "beat"))?;
    /// clock.advance(second);
    /// let (queue, mut payloads) = (engine.queue(0), Vec::new());
    /// let lent = queue.recv_many(&mut payloads, 100)?;
    /// assert_eq!(payloads, ["first", "second"]);
    /// assert_eq!(lent.map(|firing| *firing.payload()), Some("beat"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recv_many(
        &self,
        payloads: &mut Vec<T>,
        max: usize,
    ) -> Result<Option<Expired<T>>, RecvError> {
        self.take_many(Wait::Forever, payloads, max)
    }

    /// Takes payloads as [`recv_many`](Queue::recv_many) does, if a timer has expired.
    ///
    /// # Errors
    /// Returns [`RecvError::Empty`] if none has, or [`RecvError::ShutDown`] if the engine
    /// was shut down, and appends nothing.
    ///
    /// ```
    /// use tickwheel::{Engine, RecvError};
    ///
    /// let engine = Engine::<u64>::builder().start()?;
    /// let taken = engine.queue(0).try_recv_many(&mut Vec::new(), 100);
    /// assert!(matches!(taken, Err(RecvError::Empty)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_recv_many(
        &self,
        payloads: &mut Vec<T>,
        max: usize,
    ) -> Result<Option<Expired<T>>, RecvError> {
        self.take_many(Wait::No, payloads, max)
    }

    fn take_many(
        &self,
        wait: Wait<'_>,
        payloads: &mut Vec<T>,
        max: usize,
    ) -> Result<Option<Expired<T>>, RecvError> {
        let taken = self.take_up_to(wait, payloads, max);
        self.notify_census();
        taken
    }

    fn take_up_to(
        &self,
        wait: Wait<'_>,
        payloads: &mut Vec<T>,
        max: usize,
    ) -> Result<Option<Expired<T>>, RecvError> {
        let before = payloads.len();
        let (mut left, mut wait) = (max, wait);
        while left > 0 {
            // A bell in hand must not meet a failed allocation, which would lose it.
            payloads.reserve(left.min(TAKES_PER_HOLD));
            let place = match self.place(wait) {
                Err(_) if left < max => break,
                place => place?,
            };
            if let Some(lent) = self.claim_many(place, payloads, left) {
                return Ok(Some(lent));
            }
            left = max - (payloads.len() - before);
            if left < max {
                wait = Wait::No;
            }
        }
        Ok(None)
    }

    /// Takes payloads from one shard in one hold of its lock. Returns the firing at which
    /// it stopped, if any.
    fn claim_many(&self, place: Place, payloads: &mut Vec<T>, most: usize) -> Option<Expired<T>> {
        let Place { shard, turns, bell } = place;
        let before = payloads.len();
        let most = most.min(turns as usize);
        let (lent, more) = self.core.take_many(shard, self.index, bell, payloads, most);
        let taken = payloads.len() - before + usize::from(lent.is_some());
        self.stay(shard, turns - taken as u32, more);
        lent.map(|lent| self.lent(lent))
    }

    #[cold]
    fn lent(&self, lent: Claimed<T>) -> Expired<T> {
        self.expired(lent)
    }
}
