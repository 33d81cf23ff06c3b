//! The reasons why an engine does not start, and the limits of its settings.

use core::fmt;
use std::io;

use crate::wheel::InvalidGeometry;

/// The maximum number of shards, each of which may have many levels.
pub(super) const MOST_SHARDS: usize = 1_024;

/// The maximum number of ready lists: each shard has one for each queue,
/// and one for the reports.
pub(super) const MOST_LISTS: usize = 1 << 20;

/// The maximum number of worker threads of a task engine.
pub(crate) const MOST_WORKERS: usize = 4_096;

/// The reason why an engine, or one of its workers, was not started.
///
/// ```
/// use tickwheel::{Engine, StartError};
///
/// let error = Engine::<()>::builder().queues(0).start().unwrap_err();
/// assert!(matches!(error, StartError::Setting("queues", _)));
/// assert!(error.to_string().starts_with("`queues`: an engine has at least one"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A setting is out of range: the builder's method that makes it, and what to do.
    Setting(&'static str, &'static str),
    /// A wheel size or number of levels that is out of range.
    Geometry(InvalidGeometry),
    /// A number of workers for an engine that was shut down.
    ShutDown,
    /// A number of workers for an engine whose tasks run in the caller's loop.
    Driven,
    /// The system has no timer descriptor left.
    Alarm(io::Error),
    /// The system has no thread left.
    Thread(io::Error),
}

/// What is wrong with each setting, in the words of its limits above.
impl StartError {
    pub(super) const NAME: StartError = StartError::Setting(
        "name",
        "an engine's name must have characters, and no NUL among them",
    );
    pub(super) const TICK: StartError =
        StartError::Setting("tick", "a tick must be longer than zero");
    pub(super) const MAX_TIMERS: StartError = StartError::Setting(
        "max_timers",
        "an engine bounded to zero timers would refuse all: raise it or leave it out",
    );
    pub(super) const SHARDS: StartError = StartError::Setting(
        "shards",
        "an engine has at least one shard, and 1024 shards at most: ask for as many as threads \
         schedule at a time",
    );
    pub(super) const QUEUES: StartError = StartError::Setting(
        "queues",
        "an engine has at least one queue, and queues and reports times shards may come to \
         1048576: ask for fewer of either",
    );
    pub(crate) const WORKERS: StartError = StartError::Setting(
        "workers",
        "a task engine has at least one worker, and 4096 workers at most: ask for as many as \
         tasks run at a time",
    );
}

impl From<InvalidGeometry> for StartError {
    fn from(error: InvalidGeometry) -> StartError {
        StartError::Geometry(error)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Setting(name, advice) => write!(f, "`{name}`: {advice}"),
            StartError::Geometry(error) => fmt::Display::fmt(error, f),
            StartError::ShutDown => f.write_str("the engine was shut down: start another one"),
            StartError::Driven => f.write_str(
                "the caller's loop runs the tasks of this engine: call `process_due` in more threads",
            ),
            StartError::Alarm(error) => write!(
                f,
                "the system gave no timer descriptor: close others or raise their limit ({error})"
            ),
            StartError::Thread(error) => write!(
                f,
                "the system gave no thread: end others or raise their limit ({error})"
            ),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Geometry(error) => Some(error),
            StartError::Alarm(error) | StartError::Thread(error) => Some(error),
            _ => None,
        }
    }
}
