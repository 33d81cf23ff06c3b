//! Driving an engine from the caller's own loop: an event loop that waits for a
//! descriptor, one that computes a timeout, or a loop that comes by every
//! frame.

use core::fmt;
use core::time::Duration;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use crate::queue::Queue;
use crate::shared::SharedCore;
use crate::sync::Arc;
use crate::tick::Tick;
use crate::time::Time;
use crate::wheel::Advance;

/// What drives an engine that was started with
/// [`Builder::start_driven`](crate::Builder::start_driven).
///
/// On Linux it is a descriptor (`AsFd`) that becomes readable when something is
/// due, for epoll or mio, level- or edge-triggered; other threads that
/// schedule an earlier timer re-arm it. Everywhere, [`Driver::timeout`] says
/// how long a loop may sleep.
///
/// The descriptor becomes readable, too, when the engine has been shut down or
/// its last handle dropped, and stays readable from then on: its queues say
/// that they are closed, and [`Driver::process_due`] answers
/// [`Advance::ShutDown`].
///
/// ```
/// use std::time::Duration;
/// use tickwheel::wheel::Advance;
/// use tickwheel::{Engine, Timer};
///
/// let (engine, driver) = Engine::builder().start_driven()?;
/// engine.schedule(Timer::after(Duration::from_millis(3), "frame 3"))?;
/// let queue = engine.queue(0);
/// let fired = loop {
///     // A frame of a game; or a wait for descriptors, for this long.
///     let frame = Duration::from_millis(16);
///     std::thread::sleep(driver.timeout().unwrap_or(frame).min(frame));
///     while driver.process_due(1_000) == Advance::More {}
///     if let Ok(expired) = queue.try_recv() {
///         break expired.into_payload();
///     }
/// };
/// assert_eq!(fired, "frame 3");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Driver<T> {
    core: Arc<SharedCore<T>>,
    queue: Queue<T>,
}

impl<T> Driver<T> {
    pub(crate) fn new(core: Arc<SharedCore<T>>) -> Driver<T> {
        let queue = Queue::new(Arc::clone(&core), 0);
        let driver = Driver { core, queue };
        driver.core.alarm.arm_for_caller(|| driver.core.next_due());
        driver
    }

    /// Moves what is due into its queue, touching at most `budget` entries, and
    /// arms the descriptor for what comes next. Never waits.
    ///
    /// Ends whatever others file meanwhile: what is due when it is called is
    /// served, the rest left to the next call. Where the budget ends, the next
    /// call begins with the shards that this one did not get to.
    ///
    /// With [`Advance::More`] the budget did not suffice; the descriptor then
    /// stays readable, and tells an edge-triggered loop anew. With
    /// [`Advance::ShutDown`] the engine was shut down, and its queues have nothing
    /// more to give: the loop may end.
    pub fn process_due(&self, budget: usize) -> Advance {
        let mut budget = budget;
        match self.make_ready(&mut budget) {
            true => self.done(),
            false => Advance::More,
        }
    }

    /// Moves what is due into its queue, and arms the descriptor. Returns whether
    /// the budget was enough.
    pub(crate) fn make_ready(&self, budget: &mut usize) -> bool {
        self.core.alarm.acknowledge();
        let done = self.core.run_due_within(self.core.clock.now(), budget);
        self.core.confirm_next_due();
        self.core.alarm.arm_for_caller(|| self.core.next_due());
        done
    }

    /// With nothing left to do for now.
    pub(crate) fn done(&self) -> Advance {
        match self.core.is_finished() {
            true => Advance::ShutDown,
            false => Advance::Done,
        }
    }

    /// Whether anything waits, and if so, lets the descriptor and the next
    /// wake-up say it.
    pub(crate) fn what_is_left(&self, served: bool) -> Advance {
        let is_due = || self.core.next_due() <= self.core.tick_now();
        if self.queue.is_empty() && served && !is_due() {
            return self.done();
        }
        self.core.ask_for_a_look();
        self.core.alarm.call_again();
        Advance::More
    }

    pub(crate) fn queue(&self) -> &Queue<T> {
        &self.queue
    }

    /// Returns whether the engine was shut down; see
    /// [`Engine::is_shut_down`](crate::Engine::is_shut_down).
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.core.is_shut_down()
    }

    /// When the engine next has something to do: never later than the earliest
    /// deadline, sometimes earlier, when timers are to be filed anew on the way.
    /// `None` if nothing is ever due, as after the last timer was cancelled, and
    /// after the engine was shut down and its last task told.
    ///
    /// # Cost
    /// A look at each shard, and at those under their lock whose earliest timer
    /// was cancelled or postponed since the last call.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let (engine, driver) = Engine::builder().start_driven()?;
    /// let lease = engine.schedule(Timer::after(Duration::from_secs(60), "lease"))?;
    /// assert!(driver.next_wakeup().is_some());
    /// engine.cancel(lease);
    /// assert_eq!(driver.next_wakeup(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Time> {
        match self.core.confirm_next_due() {
            Tick::MAX => None,
            next => Some(self.core.tick.start_of(next)),
        }
    }

    /// The exact earliest deadline; see
    /// [`Engine::earliest_deadline`](crate::Engine::earliest_deadline). May
    /// search, where [`Driver::next_wakeup`] does not.
    ///
    /// ```
    /// use tickwheel::{Engine, Time, Timer};
    ///
    /// let (engine, driver) = Engine::builder().start_driven()?;
    /// let lease = engine.schedule(Timer::at(Time::from_secs(30), "lease"))?;
    /// engine.reschedule(lease, Time::from_secs(90))?;
    /// assert_eq!(driver.earliest_deadline(), Some(Time::from_secs(90)));
    /// assert!(driver.next_wakeup() <= driver.earliest_deadline());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn earliest_deadline(&self) -> Option<Time> {
        self.core.earliest_deadline()
    }

    /// How long a loop may sleep: until [`Driver::next_wakeup`], not at all if
    /// that has passed.
    ///
    /// With `None` nothing will ever be due unless another thread schedules
    /// something, or the engine is shut down: a loop that waits for the descriptor
    /// sleeps until then, one that cannot be called ends, or looks in now and
    /// then. It is not zero: a loop that takes it for that spins.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        Some(self.next_wakeup()? - self.core.clock.now())
    }

    /// For models: sleeps until the descriptor would be readable.
    #[cfg(any(loom, shuttle))]
    #[doc(hidden)]
    pub fn wait(&self) {
        self.core.alarm.sleep_for_caller();
    }
}

#[cfg(target_os = "linux")]
impl<T> AsFd for Driver<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let fd = self.core.alarm.fd();
        fd.expect("a driven engine has a descriptor")
    }
}

#[cfg(target_os = "linux")]
impl<T> AsRawFd for Driver<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl<T> fmt::Debug for Driver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("next_wakeup", &self.next_wakeup())
            .finish_non_exhaustive()
    }
}
