//! The traits that an engine implements to take part. A tick is a millisecond and a payload
//! eight bytes, for everyone.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

/// The length of a tick.
pub const TICK: Duration = Duration::from_millis(1);

/// The payload that stands for a timer that an engine cannot identify.
pub const UNKNOWN: u64 = u64::MAX;

pub trait Rival: 'static {
    const NAME: &'static str;
    /// What it promises less than tickwheel, as its documentation and code say.
    const LESS: &'static str = "";
}

/// A timer collection with one owner, who passes it the time. Time starts at tick 0.
pub trait Timers: Rival + Sized {
    type Id;

    fn new() -> Self;

    fn schedule(&mut self, deadline: u64, payload: u64) -> Self::Id;

    /// Cancels a timer that has not fired.
    fn cancel(&mut self, id: Self::Id);

    /// Gives a live timer another deadline. An engine that has no call for it cancels the
    /// timer and schedules another.
    fn postpone(&mut self, id: Self::Id, deadline: u64, payload: u64) -> Self::Id {
        self.cancel(id);
        self.schedule(deadline, payload)
    }

    /// Moves the clock to `now`, never back, and appends the payloads of the timers that
    /// fired.
    fn advance(&mut self, now: u64, fired: &mut Vec<u64>);

    /// Returns memory to the system, if the engine has a call for it.
    fn shrink(&mut self) {}

    /// Accepts the id of a timer that has fired.
    fn ended(&mut self, id: Self::Id) {
        drop(id);
    }
}

/// An engine that many threads call and that keeps its own time.
pub trait Shared: Rival + Sync + Sized {
    type Id: Send + 'static;
    type Caller<'a>: Caller<Id = Self::Id>;

    fn start() -> Self;

    /// Returns a handle for one thread.
    fn caller(&self) -> Self::Caller<'_>;

    /// Waits until all calls so far have taken effect, if calls only enter a queue.
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

    /// Schedules a timer whose deadline the caller knows. Reads no clock if the engine can
    /// do without.
    fn schedule(&mut self, delay_ticks: u64, payload: u64) -> Self::Id;

    /// Schedules a timer of which the caller knows only the delay.
    fn schedule_after(&mut self, delay_ticks: u64, payload: u64) -> Self::Id;

    fn cancel(&mut self, id: Self::Id);

    /// Does what [`Timers::postpone`] does.
    fn postpone(&mut self, id: Self::Id, delay_ticks: u64, payload: u64) -> Self::Id {
        self.cancel(id);
        self.schedule(delay_ticks, payload)
    }
}

/// An engine that keeps its own time and calls a user's code when a timer fires.
pub trait Sleepers: Rival {
    /// Schedules a timer for each delay, all from the same moment. Sleeps until a user's
    /// code has counted them all. Returns the processor time after the last schedule.
    fn count(delays: &[Duration]) -> Duration;
}

/// An engine that keeps its own time and never fires before the deadline.
pub trait Punctual: Rival {
    /// Schedules a timer for each delay, all at once. Returns the lateness of each in
    /// nanoseconds, by a reading of the clock where a user's code would run.
    fn lateness(tick: Duration, delays: &[Duration]) -> Vec<u64>;
}

/// An engine that runs closures on threads of its own.
pub trait Closures: Rival {
    type Id;

    fn start() -> Self;
    fn run_after(&self, delay: Duration, closure: impl FnOnce() + Send + 'static) -> Self::Id;
    fn run_at(&self, time: Instant, closure: impl FnOnce() + Send + 'static) -> Self::Id;
    fn cancel(&self, id: Self::Id);
}

/// A library whose timers are futures, used by tasks of a tokio runtime.
pub trait Awaited: Rival {
    type Sleep: Future<Output: Send> + Send + 'static;

    /// Starts what drives these timers, if a new runtime does so.
    fn start(runtime: &Runtime) {
        let _ = runtime;
    }

    fn sleep(delay: Duration) -> Self::Sleep;

    fn sleep_until(deadline: Instant) -> Self::Sleep;

    fn reset(sleep: Pin<&mut Self::Sleep>, deadline: Instant);
}
