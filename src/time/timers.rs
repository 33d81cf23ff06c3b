//! An engine for awaited timers, with settings of its own.

use core::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::clock::ClockSource;
use crate::engine::{Builder, Engine, StartError};
use crate::hub::Core;
use crate::stats::{Ledger, Snapshot};
use crate::time::driver::TimersDriver;
use crate::time::virtual_clock::TimersClock;
use crate::time::wake::wake;
use crate::timeline::Time;

/// An engine for awaited timers, with settings of its own.
///
/// Clones of a handle share one engine. The functions of this module use the process-wide
/// [`Global`](crate::time::Global) instead. An engine of one's own can be shut down, is
/// driven by the caller's loop if it wishes, and has a virtual clock in tests.
///
/// The futures borrow the engine, which costs nothing. A spawned task needs `'static`:
/// either [`leak`](Timers::leak) the engine once, or let each future have a handle of its
/// own with [`Sleep::into_owned`](crate::time::Sleep::into_owned).
///
/// An engine on another clock than the monotonic one measures no `Instant`s: pass it
/// [`Time`]s. Its calls panic otherwise.
///
/// ```
/// use std::future::Future;
/// use std::pin::pin;
/// use std::task::{Context, Waker};
/// use std::time::Duration;
/// use tickwheel::time::Timers;
///
/// let (timers, clock) = Timers::builder().start_virtual()?;
/// let mut sleep = pin!(timers.sleep(Duration::from_secs(3_600)));
/// let mut cx = Context::from_waker(Waker::noop());
/// assert!(sleep.as_mut().poll(&mut cx).is_pending());
/// clock.advance(Duration::from_secs(3_600));
/// assert!(sleep.as_mut().poll(&mut cx).is_ready());
/// # Ok::<(), tickwheel::StartError>(())
/// ```
pub struct Timers {
    engine: Engine<Waker>,
}

impl Timers {
    /// Returns a builder with the default settings.
    pub fn builder() -> TimersBuilder {
        TimersBuilder {
            engine: Engine::builder(),
        }
    }

    #[inline]
    pub(super) fn core(&self) -> &Core<Waker> {
        self.engine.core()
    }

    /// Keeps the engine to the end of the process, and returns a handle that costs
    /// nothing to copy, for spawned tasks. The engine can still be shut down.
    #[must_use]
    pub fn leak(self) -> &'static Timers {
        Box::leak(Box::new(self))
    }

    /// Returns the current time of the engine's clock.
    #[must_use]
    pub fn now(&self) -> Time {
        self.engine.now()
    }

    /// Returns the engine's counts; see [`Engine::snapshot`]. `panics` counts wakers that
    /// panicked.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.engine.snapshot()
    }

    /// Returns the account of all timers that sleeps have registered.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.engine.ledger()
    }

    /// Ends all waits, and refuses new ones. Returns the number of tasks that it wakes.
    ///
    /// A waiting [`Sleep`](crate::time::Sleep) is then ready, and its
    /// [`is_elapsed`](crate::time::Sleep::is_elapsed) says `false`. A
    /// [`Timeout`](crate::time::Timeout) returns [`Elapsed`](crate::time::Elapsed), which
    /// [says so](crate::time::Elapsed::is_shut_down). A wait that begins later panics,
    /// because a loop of waits that are ready at once would never yield.
    ///
    /// Wakes the tasks in this call. No lock is held meanwhile.
    pub fn shutdown(&self) -> usize {
        let closed = self.engine.shutdown();
        let wakers = closed.into_iter().filter_map(|closed| closed.payload);
        wakers.map(|waker| wake(self.core(), waker)).count()
    }

    /// Returns whether the engine was shut down.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.engine.is_shut_down()
    }
}

impl Clone for Timers {
    fn clone(&self) -> Timers {
        Timers {
            engine: self.engine.clone(),
        }
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

/// Sets up [`Timers`]; from [`Timers::builder`]. Has the settings of [`Builder`] that
/// concern awaited timers.
#[derive(Debug)]
#[must_use = "a builder does nothing until `start` is called"]
pub struct TimersBuilder {
    engine: Builder<Waker>,
}

impl TimersBuilder {
    /// Sets the engine's name, from which its thread is named; see [`Builder::name`].
    pub fn name(mut self, name: impl Into<Arc<str>>) -> TimersBuilder {
        self.engine = self.engine.name(name);
        self
    }

    /// Sets the duration of a tick. Defaults to one millisecond; see [`Builder::tick`].
    pub fn tick(mut self, tick: Duration) -> TimersBuilder {
        self.engine = self.engine.tick(tick);
        self
    }

    /// Sets the number of slots per level; see [`Builder::wheel_size`].
    pub fn wheel_size(mut self, size: usize) -> TimersBuilder {
        self.engine = self.engine.wheel_size(size);
        self
    }

    /// Sets the number of shards; see [`Builder::shards`]. Sleeps of one shard are woken
    /// in the order of their deadlines.
    pub fn shards(mut self, shards: usize) -> TimersBuilder {
        self.engine = self.engine.shards(shards);
        self
    }

    /// Sets the system clock that the engine follows; see [`Builder::clock`].
    pub fn clock(mut self, clock: ClockSource) -> TimersBuilder {
        self.engine = self.engine.clock(clock);
        self
    }

    /// Makes the engine's thread sleep on a condition variable; see
    /// [`Builder::portable_ticker`].
    pub fn portable_ticker(mut self) -> TimersBuilder {
        self.engine = self.engine.portable_ticker();
        self
    }

    /// Sets the time at which a virtual clock starts; see [`Builder::start_at`].
    pub fn start_at(mut self, start: Time) -> TimersBuilder {
        self.engine = self.engine.start_at(start);
        self
    }

    /// Starts the engine and its thread, which wakes tasks.
    ///
    /// # Errors
    /// Fails as [`Builder::start`] does.
    pub fn start(self) -> Result<Timers, StartError> {
        let engine = self.engine.start_sink(wake)?;
        Ok(Timers { engine })
    }

    /// Starts the engine without a thread. The caller's loop or runtime drives it through
    /// the [`TimersDriver`], and wakes the tasks.
    ///
    /// # Errors
    /// Fails as [`Builder::start_driven`] does.
    pub fn start_driven(self) -> Result<(Timers, TimersDriver), StartError> {
        let (engine, driver) = self.engine.start_driven()?;
        Ok((Timers { engine }, TimersDriver::new(driver)))
    }

    /// Starts the engine on a clock that only the caller moves, without a thread.
    ///
    /// # Errors
    /// Fails as [`Builder::start_virtual`] does.
    pub fn start_virtual(self) -> Result<(Timers, TimersClock), StartError> {
        let (engine, clock) = self.engine.start_virtual()?;
        Ok((Timers { engine }, TimersClock::new(clock)))
    }
}
