//! The traits that an engine implements to take part.
//!
//! [`Timers`] is a data structure with one owner, which passes it the time in
//! ticks. [`Shared`] is an engine that many threads call and that keeps its own
//! time. [`Sleepers`] is an engine that calls a user's code when a timer fires. A
//! payload is eight bytes. [`Awaited`] is a library whose timers are futures.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

/// The length of a tick.
pub const TICK: Duration = Duration::from_millis(1);

/// The payload that stands for a timer that an engine cannot identify.
pub const UNKNOWN: u64 = u64::MAX;

/// A timer collection with one owner. Time starts at tick 0.
pub trait Timers {
    const NAME: &'static str;
    const THREAD_SAFE: bool = false;
    /// Whether its time reaches the last tick of `u64`.
    const ENDLESS: bool = false;
    type Id;

    fn new() -> Self;

    fn schedule(&mut self, deadline: u64, payload: u64) -> Self::Id;

    /// Cancels a timer that has not fired. Engines differ on stale ids.
    fn cancel(&mut self, id: Self::Id);

    /// Gives a live timer another deadline. Defaults to a cancel and a new timer,
    /// for engines that have no call for it.
    fn postpone(&mut self, id: Self::Id, deadline: u64, payload: u64) -> Self::Id {
        self.cancel(id);
        self.schedule(deadline, payload)
    }

    /// Keeps a live timer from firing until it is armed again. Defaults to a cancel, for
    /// engines that have no call for it.
    fn disarm(&mut self, id: Self::Id) -> Option<Self::Id> {
        self.cancel(id);
        None
    }

    /// Arms a timer that was disarmed, or schedules a new one.
    fn arm(&mut self, id: Option<Self::Id>, deadline: u64, payload: u64) -> Self::Id {
        match id {
            Some(id) => self.postpone(id, deadline, payload),
            None => self.schedule(deadline, payload),
        }
    }

    /// Moves the clock to `now`, never back, and appends the payloads of the
    /// timers that fired.
    fn advance(&mut self, now: u64, fired: &mut Vec<u64>);

    /// Returns memory to the system, if the engine has a call for it.
    fn shrink(&mut self) {}

    /// Accepts the id of a timer that has fired.
    fn ended(&mut self, id: Self::Id) {
        drop(id);
    }
}

/// An engine for many threads.
pub trait Shared: Sync + Sized + 'static {
    const NAME: &'static str;
    const THREAD_SAFE: bool = true;
    /// Whether a thread may cancel the timers of another.
    const REMOTE: bool = true;
    /// Whether its timers fire by themselves.
    const FIRES: bool = true;
    type Id: Send + 'static;
    type Caller<'a>: Caller<Id = Self::Id>
    where
        Self: 'a;

    fn start() -> Self;

    /// Starts the engine as on a machine with a core for each of `threads`.
    fn start_for(threads: usize) -> Self {
        let _ = threads;
        Self::start()
    }

    /// Returns a handle for one thread.
    fn caller(&self) -> Self::Caller<'_>;

    /// Waits until all calls so far have taken effect, if calls only enter a
    /// queue.
    fn settle(&self) {}

    /// Returns memory to the system, if the engine has a call for it.
    fn shrink(&self) {}

    /// Takes expired timers until `is_over`, if the engine needs a worker.
    fn take_until(&self, is_over: &AtomicBool) {
        let _ = is_over;
    }
}

/// One thread's handle to a [`Shared`] engine.
pub trait Caller {
    type Id;

    /// Schedules a timer whose deadline the caller knows. Reads no clock if the
    /// engine can do without.
    fn schedule(&mut self, delay_ticks: u64, payload: u64) -> Self::Id;

    /// Schedules a timer of which the caller knows only the delay.
    fn schedule_after(&mut self, delay_ticks: u64, payload: u64) -> Self::Id {
        self.schedule(delay_ticks, payload)
    }

    fn cancel(&mut self, id: Self::Id);

    /// Cancels many timers, with a single call if the engine has one.
    fn cancel_all(&mut self, ids: &mut Vec<Self::Id>) {
        ids.drain(..).for_each(|id| self.cancel(id));
    }

    fn postpone(&mut self, id: Self::Id, delay_ticks: u64, payload: u64) -> Self::Id {
        self.cancel(id);
        self.schedule(delay_ticks, payload)
    }

    /// Keeps a live timer from firing, as [`Timers::disarm`] does.
    fn disarm(&mut self, id: Self::Id) -> Option<Self::Id> {
        self.cancel(id);
        None
    }

    /// Arms a timer that was disarmed, or schedules a new one.
    fn arm(&mut self, id: Option<Self::Id>, delay_ticks: u64, payload: u64) -> Self::Id {
        match id {
            Some(id) => self.postpone(id, delay_ticks, payload),
            None => self.schedule(delay_ticks, payload),
        }
    }
}

/// An engine that keeps its own time and calls a user's code when a timer fires.
pub trait Sleepers {
    const NAME: &'static str;
    const FINEST_TICK: Duration = Duration::from_nanos(1);

    /// Schedules a timer for each delay, all at once. Returns the lateness of each
    /// in nanoseconds, measured where a user's code would run.
    fn lateness(tick: Duration, delays: &[Duration]) -> Vec<i64>;

    /// Schedules a timer for each delay, all from the same moment. Sleeps until a
    /// user's code has counted them all.
    fn count(delays: &[Duration]);

    /// Keeps a timer that fires once per period while `watch` runs.
    fn beat(period: Duration, watch: impl FnOnce());

    /// Keeps a timer with this delay, if any, while `watch` runs.
    fn idle(delay: Option<Duration>, watch: impl FnOnce());
}

/// A library whose timers are futures, used by tasks of a tokio runtime.
pub trait Awaited: 'static {
    const NAME: &'static str;
    /// Whether a caller that knows an instant saves a reading of the clock.
    const TAKES_INSTANTS: bool = true;
    /// Whether its timers fire by themselves.
    const FIRES: bool = true;
    /// Whether its timers work in a runtime that runs on a single thread.
    const ON_ONE_THREAD: bool = true;
    /// How late its timers may be so that one wake-up serves several.
    const TICK: Duration = TICK;
    type Sleep: Future<Output: Send> + Send + 'static;
    type Elapsed: Debug + Send;

    /// Sets what the runtime needs for these timers.
    fn configure(builder: &mut Builder) {
        let _ = builder;
    }

    /// Starts what drives these timers, if a new runtime does so.
    fn start(runtime: &Runtime) {
        let _ = runtime;
    }

    fn sleep(delay: Duration) -> Self::Sleep;

    fn sleep_until(deadline: Instant) -> Self::Sleep;

    fn reset(sleep: Pin<&mut Self::Sleep>, delay: Duration);

    fn reset_at(sleep: Pin<&mut Self::Sleep>, deadline: Instant);

    fn timeout<F>(
        limit: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Self::Elapsed>> + Send
    where
        F: Future<Output: Send> + Send;
}
