//! Events about an engine's life, for operators. They are events of the crate
//! `tracing` with the target `tickwheel`. Without that feature there are none.
//!
//! Only rare events are emitted: starts, drains, shutdowns and panics. A timer or a
//! wake-up of the ticker does not emit an event, because a subscriber is foreign
//! code that may block, and a running ticker never calls it. The ticker's work is
//! counted instead: see [`Engine::snapshot`](crate::Engine::snapshot).
//!
//! `name` is the engine's name, and `engine` is a number within the process, because
//! several engines may have one name. The ids of an engine's timers begin with that
//! number or with one of the numbers that follow, one for each shard. `timer` is the
//! name of a timer, if it has one.

use std::time::Duration;

use crate::engine_name::EngineName;
use crate::id::WheelNumber;

pub(crate) use imp::{
    drain_begun, drain_ended, lent_to_a_panic, panicked, shut_down, start_refused, started,
    ticker_ended, waker_panicked, worker_panicked,
};

/// The engine that an event concerns.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "tracing"), allow(dead_code))]
pub(crate) struct Subject<'a> {
    pub(crate) number: WheelNumber,
    pub(crate) name: &'a EngineName,
}

/// The properties of an engine that has started.
#[cfg_attr(not(feature = "tracing"), allow(dead_code))]
pub(crate) struct Started<'a> {
    pub(crate) subject: Subject<'a>,
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

    use crate::engine_name::EngineName;
    use crate::id::TimerId;
    use crate::observe::{Started, Subject};
    use tracing::{error, info, warn};

    const TARGET: &str = "tickwheel";

    pub(crate) fn started(engine: &Started<'_>) {
        info!(
            target: TARGET,
            engine = %engine.subject.number,
            name = engine.subject.name.as_str(),
            tick = ?engine.tick,
            wheel_size = engine.wheel_size,
            shards = engine.shards,
            queues = engine.queues,
            clock = engine.clock,
            "engine started",
        );
    }

    pub(crate) fn start_refused(name: &EngineName, error: &impl Display) {
        let name = name.as_str();
        warn!(target: TARGET, name, %error, "engine not started");
    }

    pub(crate) fn drain_begun(engine: Subject<'_>, limit: Duration) {
        info!(target: TARGET, engine = %engine.number, name = engine.name.as_str(), ?limit, "drain begun");
    }

    /// Reports the end of a drain. It is `complete` if its timers were all taken.
    pub(crate) fn drain_ended(engine: Subject<'_>, complete: bool) {
        info!(target: TARGET, engine = %engine.number, name = engine.name.as_str(), complete, "drain ended");
    }

    pub(crate) fn shut_down(engine: Subject<'_>, live: usize) {
        info!(target: TARGET, engine = %engine.number, name = engine.name.as_str(), live, "engine shut down");
    }

    /// Reports the end of a ticker, as its last act. A subscriber delays nothing else.
    pub(crate) fn ticker_ended(engine: Subject<'_>) {
        info!(target: TARGET, engine = %engine.number, name = engine.name.as_str(), "ticker ended");
    }

    /// Reports a panic of this timer's task or of the drop that ended the task.
    pub(crate) fn panicked(
        engine: Subject<'_>,
        id: TimerId,
        timer: Option<&str>,
        thrown: &(dyn Any + Send),
    ) {
        error!(
            target: TARGET,
            engine = %engine.number,
            name = engine.name.as_str(),
            ?id,
            timer,
            panic = message(thrown),
            "task panicked",
        );
    }

    /// Reports a panic of a worker outside every task. The worker goes on.
    pub(crate) fn worker_panicked(engine: Subject<'_>, thrown: &(dyn Any + Send)) {
        error!(
            target: TARGET,
            engine = %engine.number,
            name = engine.name.as_str(),
            panic = message(thrown),
            "worker panicked",
        );
    }

    /// Reports a panic of a waker.
    pub(crate) fn waker_panicked(engine: Subject<'_>, thrown: &(dyn Any + Send)) {
        error!(
            target: TARGET,
            engine = %engine.number,
            name = engine.name.as_str(),
            panic = message(thrown),
            "waker panicked",
        );
    }

    /// Returns the message of a panic if it is text.
    fn message(thrown: &(dyn Any + Send)) -> Option<&str> {
        let text = thrown.downcast_ref::<&str>().copied();
        text.or_else(|| thrown.downcast_ref::<String>().map(String::as_str))
    }

    /// Reports that a panicking thread gives back a firing of this timer. The payload
    /// of the panic is not available there.
    pub(crate) fn lent_to_a_panic(engine: Subject<'_>, id: TimerId, timer: Option<&str>) {
        error!(
            target: TARGET,
            engine = %engine.number,
            name = engine.name.as_str(),
            ?id,
            timer,
            "worker panicked with a firing",
        );
    }
}

#[cfg(not(feature = "tracing"))]
mod imp {
    use std::any::Any;
    use std::fmt::Display;
    use std::time::Duration;

    use crate::engine_name::EngineName;
    use crate::id::TimerId;
    use crate::observe::{Started, Subject};

    pub(crate) fn started(_: &Started<'_>) {}
    pub(crate) fn start_refused(_: &EngineName, _: &impl Display) {}
    pub(crate) fn drain_begun(_: Subject<'_>, _: Duration) {}
    pub(crate) fn drain_ended(_: Subject<'_>, _: bool) {}
    pub(crate) fn shut_down(_: Subject<'_>, _: usize) {}
    pub(crate) fn ticker_ended(_: Subject<'_>) {}
    pub(crate) fn panicked(_: Subject<'_>, _: TimerId, _: Option<&str>, _: &(dyn Any + Send)) {}
    pub(crate) fn worker_panicked(_: Subject<'_>, _: &(dyn Any + Send)) {}
    pub(crate) fn waker_panicked(_: Subject<'_>, _: &(dyn Any + Send)) {}
    pub(crate) fn lent_to_a_panic(_: Subject<'_>, _: TimerId, _: Option<&str>) {}
}
