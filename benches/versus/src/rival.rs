//! What an engine has to offer to take part.
//!
//! Two kinds: a data structure with one owner who tells it the time in ticks
//! ([`Timers`]), and an engine that many threads call and that keeps its own
//! time ([`Shared`]). A payload is eight bytes.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long one tick lasts where that matters.
pub const TICK: Duration = Duration::from_millis(1);

/// A payload that an engine reports when it only knows that something fired.
pub const UNKNOWN: u64 = u64::MAX;

/// A timer collection with one owner. Time starts at tick 0.
pub trait Timers {
    const NAME: &'static str;
    const THREAD_SAFE: bool = false;
    /// Whether its time goes on to the last tick of u64.
    const ENDLESS: bool = false;
    type Id;

    fn new() -> Self;

    fn schedule(&mut self, deadline: u64, payload: u64) -> Self::Id;

    /// Only for a timer that has not fired: what a stale id does differs.
    fn cancel(&mut self, id: Self::Id);

    /// Gives a live timer another deadline, in the engine's own way if it has
    /// one, and by cancelling and scheduling anew otherwise.
    fn postpone(&mut self, id: Self::Id, deadline: u64, payload: u64) -> Self::Id {
        self.cancel(id);
        self.schedule(deadline, payload)
    }

    /// Moves the clock to `now`, never back, and appends the payloads of what
    /// fired.
    fn advance(&mut self, now: u64, fired: &mut Vec<u64>);

    /// Gives memory back, where there is a call for that.
    fn shrink(&mut self) {}

    /// Takes back the id of a timer that has fired.
    fn ended(&mut self, id: Self::Id) {
        drop(id);
    }
}

/// An engine for many threads.
pub trait Shared: Sync + Sized + 'static {
    const NAME: &'static str;
    const THREAD_SAFE: bool = true;
    /// Whether a thread may cancel what another one scheduled.
    const REMOTE: bool = true;
    /// Whether its timers fire by themselves.
    const FIRES: bool = true;
    type Id: Send + 'static;
    type Caller<'a>: Caller<Id = Self::Id>
    where
        Self: 'a;

    fn start() -> Self;

    /// One thread's way in.
    fn caller(&self) -> Self::Caller<'_>;

    /// Waits until everything asked for so far was done, where calls only put
    /// it into a queue.
    fn settle(&self) {}

    /// Gives memory back, where there is a call for that.
    fn shrink(&self) {}

    /// Takes what fires, until told otherwise, where somebody has to.
    fn take_until(&self, is_over: &AtomicBool) {
        let _ = is_over;
    }
}

/// One thread's way into a [`Shared`] engine.
pub trait Caller {
    type Id;

    /// Schedules a timer with a deadline that the caller knows: no clock is
    /// read if the engine can do without.
    fn schedule(&mut self, delay_ticks: u64, payload: u64) -> Self::Id;

    /// As [`Caller::schedule`], in the way of somebody who has just a delay.
    fn schedule_after(&mut self, delay_ticks: u64, payload: u64) -> Self::Id {
        self.schedule(delay_ticks, payload)
    }

    fn cancel(&mut self, id: Self::Id);

    /// Cancels many, all at once where the engine has a call for that.
    fn cancel_all(&mut self, ids: &mut Vec<Self::Id>) {
        ids.drain(..).for_each(|id| self.cancel(id));
    }

    fn postpone(&mut self, id: Self::Id, delay_ticks: u64, payload: u64) -> Self::Id {
        self.cancel(id);
        self.schedule(delay_ticks, payload)
    }
}

/// An engine that keeps its own time and tells somebody when it fires.
pub trait Sleepers {
    const NAME: &'static str;
    const FINEST_TICK: Duration = Duration::from_nanos(1);

    /// Sets a timer for each delay, all at once, and returns how late each one
    /// was, in nanoseconds, measured where a user's code would run.
    fn lateness(tick: Duration, delays: &[Duration]) -> Vec<i64>;

    /// Sets a timer for each delay, all from one moment on, and sleeps until
    /// each has reached a user's code that counts.
    fn count(delays: &[Duration]);

    /// Keeps something that is due once in each period while `watch` runs.
    fn beat(period: Duration, watch: impl FnOnce());

    /// Sets one timer with this delay, if any, and keeps it while `watch` runs.
    fn idle(delay: Option<Duration>, watch: impl FnOnce());
}
