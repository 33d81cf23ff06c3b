//! What every contender can do.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_durable::WallTime;

/// A handler: it is given the due time of its job.
pub(crate) type Handler = Arc<dyn Fn(WallTime) + Send + Sync>;

/// A design.
pub(crate) trait Contender: Sync {
    fn name(&self) -> &'static str;

    /// Returns what it promises less than tickwheel-durable does.
    fn promises_less(&self) -> &'static str;

    /// Starts a node, with a lease of this length if it has any. Creates the tables unless they
    /// exist. Dropping it ends it.
    fn node(&self, database: &str, lease: Duration, handler: Handler) -> Box<dyn Node>;

    /// Connects a process that only schedules.
    fn scheduler(&self, database: &str) -> Box<dyn Scheduler>;
}

pub(crate) trait Node: Send {}

pub(crate) trait Scheduler {
    /// Stores a job for each due time, in one commit. Returns once it is durable.
    fn schedule(&mut self, dues: &[WallTime]);

    /// Returns the number of jobs that have not ended.
    fn left(&mut self) -> u64;
}
