//! Events about an engine's life, for operators. They are events of the crate
//! `tracing` with the target `tickwheel`. Without that feature there are none.
//!
//! Only rare events are emitted: starts, drains, shutdowns and panics. A timer or a
//! wake-up of the ticker does not emit an event, because a subscriber is foreign
//! code that may block, and a running ticker never calls it. The ticker's work is
//! counted instead: see [`Engine::snapshot`](crate::Engine::snapshot).
//!
//! `engine` is a number within the process. The ids of an engine's timers begin
//! with it or with one of the numbers that follow, one for each shard.

use std::time::Duration;

use crate::id::WheelNumber;

pub(crate) use imp::{
    drain_begun, drain_ended, lent_to_a_panic, panicked, shut_down, start_refused, started,
    ticker_ended,
};

/// The properties of an engine that has started.
#[cfg_attr(not(feature = "tracing"), allow(dead_code))]
pub(crate) struct Started {
    pub(crate) number: WheelNumber,
    pub(crate) tick: Duration,
    pub(crate) wheel_size: usize,
    pub(crate) shards: usize,
    pub(crate) queues: usize,
    pub(crate) clock: &'static str,
}

#[cfg(feature = "tracing")]
mod imp {
    use std::any::Any;
    use std::fmt::Display;
    use std::time::Duration;

    use crate::id::{TimerId, WheelNumber};
    use crate::observe::Started;
    use tracing::{error, info, warn};

    const TARGET: &str = "tickwheel";

    pub(crate) fn started(engine: &Started) {
        info!(
            target: TARGET,
            engine = %engine.number,
            tick = ?engine.tick,
            wheel_size = engine.wheel_size,
            shards = engine.shards,
            queues = engine.queues,
            clock = engine.clock,
            "engine started",
        );
    }

    pub(crate) fn start_refused(error: &impl Display) {
        warn!(target: TARGET, %error, "engine not started");
    }

    pub(crate) fn drain_begun(engine: WheelNumber, limit: Duration) {
        info!(target: TARGET, %engine, ?limit, "drain begun");
    }

    /// Reports the end of a drain. It is `complete` if its timers were all taken.
    pub(crate) fn drain_ended(engine: WheelNumber, complete: bool) {
        info!(target: TARGET, %engine, complete, "drain ended");
    }

    pub(crate) fn shut_down(engine: WheelNumber, live: usize) {
        info!(target: TARGET, %engine, live, "engine shut down");
    }

    /// Reports the end of a ticker, as its last act. A subscriber delays nothing else.
    pub(crate) fn ticker_ended(engine: WheelNumber) {
        info!(target: TARGET, %engine, "ticker ended");
    }

    /// Reports a panic of this timer's task or of the drop that ended the task.
    pub(crate) fn panicked(id: TimerId, thrown: &(dyn Any + Send)) {
        error!(target: TARGET, ?id, panic = message(thrown), "task panicked");
    }

    /// Returns the message of a panic if it is text.
    fn message(thrown: &(dyn Any + Send)) -> Option<&str> {
        let text = thrown.downcast_ref::<&str>().copied();
        text.or_else(|| thrown.downcast_ref::<String>().map(String::as_str))
    }

    /// Reports that a panicking thread gives back a firing of this timer. The payload
    /// of the panic is not available there.
    pub(crate) fn lent_to_a_panic(id: TimerId) {
        error!(target: TARGET, ?id, "worker panicked with a firing in its hands");
    }
}

#[cfg(not(feature = "tracing"))]
mod imp {
    use std::any::Any;
    use std::fmt::Display;
    use std::time::Duration;

    use crate::id::{TimerId, WheelNumber};
    use crate::observe::Started;

    pub(crate) fn started(_: &Started) {}
    pub(crate) fn start_refused(_: &impl Display) {}
    pub(crate) fn drain_begun(_: WheelNumber, _: Duration) {}
    pub(crate) fn drain_ended(_: WheelNumber, _: bool) {}
    pub(crate) fn shut_down(_: WheelNumber, _: usize) {}
    pub(crate) fn ticker_ended(_: WheelNumber) {}
    pub(crate) fn panicked(_: TimerId, _: &(dyn Any + Send)) {}
    pub(crate) fn lent_to_a_panic(_: TimerId) {}
}
