//! Events about an engine's life, for operators. They are events of the crate
//! `tracing` with the target `tickwheel`. Without that feature there are none.
//!
//! Only rare events are emitted: starts, drains, shutdowns and panics. A timer or a
//! wake-up of the ticker does not emit an event, because a subscriber is foreign
//! code that may block, and a running ticker never calls it. (If it panics, the engine
//! goes on.) The ticker's work is counted instead: see
//! [`Engine::snapshot`](crate::Engine::snapshot).
//!
//! `name` is the engine's name, and `engine` is a number within the process, because
//! several engines may have one name. The ids of an engine's timers begin with that
//! number or with one of the numbers that follow, one for each shard. `timer` is the
//! name of a timer, if it has one.

#![cfg_attr(not(feature = "tracing"), allow(unused_variables, dead_code))]

use std::any::Any;
use std::fmt::Display;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::id::{TimerId, WheelNumber};

/// Emits an event about an engine: its level, the engine, more fields, and the text.
#[cfg(feature = "tracing")]
macro_rules! event {
    ($level:ident, $engine:ident, { $($field:tt)* }, $text:literal) => {
        guarded(|| tracing::$level!(
            target: "tickwheel",
            engine = %$engine.number,
            name = $engine.name,
            $($field)*
            $text,
        ))
    };
}
#[cfg(not(feature = "tracing"))]
macro_rules! event {
    ($($event:tt)*) => {};
}

/// The engine that an event concerns.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) number: WheelNumber,
    pub(crate) name: &'a str,
}

pub(crate) fn started(
    engine: Subject<'_>,
    tick: Duration,
    wheel_size: usize,
    shards: usize,
    queues: usize,
    clock: &'static str,
) {
    event!(info, engine, { ?tick, wheel_size, shards, queues, clock, }, "engine started");
}

pub(crate) fn start_refused(name: &str, error: &impl Display) {
    #[cfg(feature = "tracing")]
    guarded(|| tracing::warn!(target: "tickwheel", name, %error, "engine not started"));
}

pub(crate) fn drain_begun(engine: Subject<'_>, limit: Duration) {
    event!(info, engine, { ?limit, }, "drain begun");
}

/// Reports the end of a drain. It is `complete` if its timers were all taken.
pub(crate) fn drain_ended(engine: Subject<'_>, complete: bool) {
    event!(info, engine, { complete, }, "drain ended");
}

pub(crate) fn shut_down(engine: Subject<'_>, live: usize) {
    event!(info, engine, { live, }, "engine shut down");
}

/// Reports the end of a ticker, as its last act. A subscriber delays nothing else.
pub(crate) fn ticker_ended(engine: Subject<'_>) {
    event!(info, engine, {}, "ticker ended");
}

/// Reports a panic of this timer's task or of the drop that ended the task.
pub(crate) fn panicked(
    engine: Subject<'_>,
    id: TimerId,
    timer: Option<&str>,
    thrown: &(dyn Any + Send),
) {
    event!(error, engine, { ?id, timer, panic = message(thrown), }, "task panicked");
}

/// Reports a panic of a worker outside every task. The worker goes on.
pub(crate) fn worker_panicked(engine: Subject<'_>, thrown: &(dyn Any + Send)) {
    event!(error, engine, { panic = message(thrown), }, "worker panicked");
}

/// Reports a panic of a waker.
pub(crate) fn waker_panicked(engine: Subject<'_>, thrown: &(dyn Any + Send)) {
    event!(error, engine, { panic = message(thrown), }, "waker panicked");
}

/// Reports that a panicking thread gives back a firing of this timer. The payload
/// of the panic is not available there.
pub(crate) fn lent_to_a_panic(engine: Subject<'_>, id: TimerId, timer: Option<&str>) {
    event!(error, engine, { ?id, timer, }, "worker panicked with a firing");
}

/// Returns the message of a panic if it is text.
fn message(thrown: &(dyn Any + Send)) -> Option<&str> {
    let text = thrown.downcast_ref::<&str>().copied();
    text.or_else(|| thrown.downcast_ref::<String>().map(String::as_str))
}

/// Reports a panic with `report`, and drops its payload.
pub(crate) fn dispose(thrown: Box<dyn Any + Send>, report: impl FnOnce(&(dyn Any + Send))) {
    report(&*thrown);
    guarded(|| drop(thrown));
}

/// Runs foreign code, and leaks what that throws: a drop could panic without end.
fn guarded(run: impl FnOnce()) {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(mem::forget);
}
