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
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A name that is empty or contains a NUL character.
    InvalidName,
    /// A tick of zero.
    ZeroTick,
    /// A wheel size or number of levels that is out of range.
    Geometry(InvalidGeometry),
    /// An engine without a queue.
    NoQueues,
    /// More queues than [`Builder::queues`](crate::Builder::queues) allows.
    TooManyQueues,
    /// A limit of zero timers.
    ZeroMaxTimers,
    /// An engine without a shard.
    NoShards,
    /// More shards than [`Builder::shards`](crate::Builder::shards) allows.
    TooManyShards,
    /// A task engine without a worker.
    NoWorkers,
    /// More workers than [`TaskBuilder::workers`](crate::TaskBuilder::workers)
    /// allows.
    TooManyWorkers,
    /// A number of workers for an engine that was shut down.
    ShutDown,
    /// A number of workers for an engine whose tasks run in the caller's loop.
    Driven,
    /// The system has no timer descriptor left.
    Alarm(io::Error),
    /// The system has no thread left.
    Thread(io::Error),
}

impl From<InvalidGeometry> for StartError {
    fn from(error: InvalidGeometry) -> StartError {
        StartError::Geometry(error)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::InvalidName => {
                f.write_str("an engine's name must have characters, and no NUL among them")
            }
            StartError::ZeroTick => f.write_str("a tick must be longer than zero"),
            StartError::Geometry(error) => fmt::Display::fmt(error, f),
            StartError::NoQueues => f.write_str("an engine needs at least one queue"),
            StartError::TooManyQueues => write!(
                f,
                "queues and reports times shards may come to {MOST_LISTS}: ask for fewer of either"
            ),
            StartError::ZeroMaxTimers => f.write_str(
                "an engine bounded to zero timers would refuse all: raise `max_timers` or leave it out",
            ),
            StartError::NoShards => f.write_str("an engine needs at least one shard"),
            StartError::TooManyShards => write!(
                f,
                "an engine has {MOST_SHARDS} shards at most: ask for as many as threads schedule at a time"
            ),
            StartError::NoWorkers => f.write_str("a task engine needs at least one worker"),
            StartError::TooManyWorkers => write!(
                f,
                "a task engine has {MOST_WORKERS} workers at most: ask for as many as tasks run at a time"
            ),
            StartError::ShutDown => {
                f.write_str("the engine was shut down: start another one")
            }
            StartError::Driven => f.write_str(
                "the caller's loop runs the tasks of this engine: call `run_due` in more threads",
            ),
            StartError::Alarm(error) => write!(f, "the system gave no timer descriptor: close others or raise their limit ({error})"),
            StartError::Thread(error) => write!(f, "the system gave no thread: end others or raise their limit ({error})"),
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
