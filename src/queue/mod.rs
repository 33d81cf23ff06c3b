//! Queues: where workers take expired timers from.

mod batch;
mod expired;
mod reports;

pub use batch::Batch;
pub use expired::Expired;
pub use reports::Reports;

use core::fmt;
use std::cell::Cell;
use std::time::Duration;

use crate::shard::Shard;
use crate::shared::{Bell, SharedCore, Wait, WaitError};
use crate::sync::Arc;

/// How many timers a worker takes from one shard before it looks at others.
const TURNS: u32 = 64;

/// A handle to one of an engine's worker queues.
///
/// Expired timers stay in the engine until a worker takes them, one at a time:
/// until then they can be cancelled, and a queue is never full. Each worker
/// thread has a handle of its own; clone it or call
/// [`Engine::queue`](crate::Engine::queue) again.
///
/// Timers of one shard (that is, usually, scheduled by one thread) come in the
/// order of their deadlines; between shards no order is promised.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Timer};
///
/// let engine = Engine::builder().start()?;
/// engine.schedule(Timer::after(Duration::from_millis(5), "hello"))?;
/// let queue = engine.queue(0);
/// let worker = std::thread::spawn(move || {
///     let expired = queue.recv().unwrap();
///     assert_eq!(*expired.payload(), "hello");
/// });
/// worker.join().unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Queue<T> {
    core: Arc<SharedCore<T>>,
    index: usize,
    /// A shard that had more when it was last looked at, and for how many
    /// turns to stay with it.
    hint: Cell<Option<(usize, u32)>>,
    presence: Cell<Presence>,
}

/// What a virtual clock knows about this handle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Unknown,
    Busy,
    Waiting,
}

/// Why a queue gave nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvError {
    /// Nothing has expired (within the time given).
    Empty,
    /// The engine was shut down: nothing will come.
    ShutDown,
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecvError::Empty => "nothing has expired",
            RecvError::ShutDown => "the engine was shut down",
        })
    }
}

impl std::error::Error for RecvError {}

impl From<WaitError> for RecvError {
    fn from(error: WaitError) -> RecvError {
        match error {
            WaitError::Empty => RecvError::Empty,
            WaitError::Stopped => RecvError::ShutDown,
        }
    }
}

impl<T> Queue<T> {
    pub(crate) fn new(core: Arc<SharedCore<T>>, index: usize) -> Queue<T> {
        Queue {
            core,
            index,
            hint: Cell::new(None),
            presence: Cell::new(Presence::Unknown),
        }
    }

    /// Takes an expired timer, waiting for one if there is none.
    ///
    /// # Errors
    /// [`RecvError::ShutDown`] when the engine was shut down.
    #[inline]
    pub fn recv(&self) -> Result<Expired<T>, RecvError> {
        self.take(Wait::Forever)
    }

    /// Takes an expired timer if there is one.
    ///
    /// # Errors
    /// [`RecvError::Empty`] if there is none, [`RecvError::ShutDown`] when the
    /// engine was shut down.
    #[inline]
    pub fn try_recv(&self) -> Result<Expired<T>, RecvError> {
        self.take(Wait::No)
    }

    /// Takes an expired timer, waiting for one for at most `limit`.
    ///
    /// # Errors
    /// [`RecvError::Empty`] if none came in time, [`RecvError::ShutDown`] when
    /// the engine was shut down.
    pub fn recv_timeout(&self, limit: Duration) -> Result<Expired<T>, RecvError> {
        // Without a look at the clock, if something is there.
        self.join();
        self.try_recv().or_else(|error| match error {
            RecvError::Empty => self.take(Wait::at_most(limit)),
            RecvError::ShutDown => Err(error),
        })
    }

    /// Takes what is there, one at a time, each when the iterator is asked for
    /// it, without ever waiting: it ends when nothing is there at that moment.
    /// What it has not reached yet can still be cancelled.
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
    /// let taken = queue.try_iter().map(|expired| expired.into_payload());
    /// assert_eq!(taken.collect::<Vec<_>>(), [0, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_iter(&self) -> impl Iterator<Item = Expired<T>> + '_ {
        std::iter::from_fn(|| self.try_recv().ok())
    }

    /// How many expired timers wait to be taken. Looks at every shard.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.ready_len(self.index)
    }

    /// Whether no expired timer waits to be taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the engine was shut down, so that nothing more comes but
    /// tasks that are to be told of it; see
    /// [`Engine::is_shut_down`](crate::Engine::is_shut_down).
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.core.is_shut_down()
    }

    /// The queue's number.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// For models: the limits of those who wait have passed from now on. Wakes
    /// nobody.
    #[cfg(any(loom, shuttle))]
    #[doc(hidden)]
    pub fn pass_limits(&self) {
        self.core.doorbell(self.index).pass_limits();
    }

    /// For models: has all who wait look at the time.
    #[cfg(any(loom, shuttle))]
    #[doc(hidden)]
    pub fn wake_receivers(&self) {
        self.core.doorbell(self.index).wake_receivers();
    }

    #[inline]
    pub(crate) fn take(&self, wait: Wait) -> Result<Expired<T>, RecvError> {
        let doorbell = self.core.doorbell(self.index);
        if doorbell.is_bounded() {
            self.wait_at(wait, |wait| doorbell.take_permit(wait))?;
        }
        let taken = self.take_permitted(wait);
        if taken.is_err() {
            doorbell.return_permit();
        }
        self.pass_by();
        taken
    }

    #[inline]
    fn take_permitted(&self, wait: Wait) -> Result<Expired<T>, RecvError> {
        let doorbell = self.core.doorbell(self.index);
        loop {
            let (shard, turns, bell) = match self.hint.take() {
                Some((shard, turns)) => (shard, turns, None),
                None => match self.wait_at(wait, |wait| doorbell.answer(wait)) {
                    Err(RecvError::ShutDown) => return self.last().ok_or(RecvError::ShutDown),
                    bell => {
                        let bell = bell?;
                        (bell.shard(), TURNS, Some(bell))
                    }
                },
            };
            if let Some(expired) = self.claim(shard, turns, bell) {
                return Ok(expired);
            }
            if wait.is_over() {
                return Err(RecvError::Empty);
            }
        }
    }

    /// What is left after the engine was shut down: tasks that are to be told.
    #[cold]
    fn last(&self) -> Option<Expired<T>> {
        (0..self.core.shard_count()).find_map(|shard| self.claim(shard, TURNS, None))
    }

    /// Takes one timer of a shard. As long as there are more and it is this
    /// shard's turn, the next call goes there directly; the bell is in the
    /// channel meanwhile, for other workers.
    #[inline]
    fn claim(&self, shard: usize, turns: u32, bell: Option<Bell>) -> Option<Expired<T>> {
        let queue = self.index;
        let claim = |shard: &mut Shard<T>| shard.claim(queue);
        let (claimed, more) = self.core.take_from(shard, queue, bell, claim);
        if more && turns > 1 {
            self.hint.set(Some((shard, turns - 1)));
        }
        Some(Expired::new(claimed?, queue, &self.core))
    }

    /// Waits, and lets a virtual clock know.
    fn wait_at<R>(
        &self,
        wait: Wait,
        receive: impl Fn(Wait) -> Result<R, WaitError>,
    ) -> Result<R, RecvError> {
        if wait == Wait::No || !self.core.clock.is_virtual() {
            return Ok(receive(wait)?);
        }
        self.enter(Presence::Waiting);
        let received = receive(wait);
        self.enter(Presence::Busy);
        Ok(received?)
    }

    /// A handle that is no worker may have taken what a virtual clock expects
    /// a worker to come for: then no worker comes, and the clock has to look.
    fn pass_by(&self) {
        if self.core.clock.is_virtual() && self.presence.get() == Presence::Unknown {
            self.core.census.notify();
        }
    }

    /// Counts this handle as a worker, busy until it waits.
    pub(crate) fn join(&self) {
        if self.core.clock.is_virtual() && self.presence.get() == Presence::Unknown {
            self.core.census.join(self.index);
            self.presence.set(Presence::Busy);
        }
    }

    /// Notes that a task of this queue panicked.
    pub(crate) fn count_panic(&self) {
        self.core.count_panic();
    }

    fn enter(&self, presence: Presence) {
        self.join();
        if self.presence.replace(presence) != presence {
            self.core.census.set_busy(presence == Presence::Busy);
        }
    }
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Queue<T> {
        Queue::new(Arc::clone(&self.core), self.index)
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        match self.presence.get() {
            Presence::Unknown => {}
            presence => self
                .core
                .census
                .leave(self.index, presence == Presence::Busy),
        }
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

/// Waits for expired timers until the engine is shut down.
impl<T> Iterator for Queue<T> {
    type Item = Expired<T>;

    fn next(&mut self) -> Option<Expired<T>> {
        self.recv().ok()
    }
}
