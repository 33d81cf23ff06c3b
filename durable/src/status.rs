//! The state of a node, as an operator sees it.

use std::time::Duration;

use crate::observe::Counts;
use crate::store::StoreError;
use crate::wall::WallTime;

/// The state of a node.
///
/// With the feature `metrics`, `publish` hands it to a recorder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The [name](crate::Builder::owner) of the node.
    pub owner: String,
    /// Whether the node has handlers.
    pub delivers: bool,
    /// The number of jobs in the window that wait for their due time.
    pub armed: usize,
    /// The number of jobs that run, or are about to.
    pub running: usize,
    /// The time before which the window holds every waiting job.
    pub horizon: WallTime,
    /// The time for which the first job of the window has been due, or zero. Jobs wait beyond
    /// their due time if there is no free worker.
    pub behind: Duration,
    /// Whether this node may start jobs.
    pub holds_lease: bool,
    /// The number of jobs that the store could not start or complete, because their rows are
    /// damaged. Each is tried again after an hour, or once it is scheduled anew.
    pub set_aside: usize,
    /// The number of handlers that run for longer than their [limit](crate::Builder::time_limit). An
    /// asynchronous one counts a second later, because it should have been dropped then.
    pub late: usize,
    /// How far the clock of this machine is from the one by which jobs are due. Only a database
    /// has one of its own. Jobs run by that: such a difference harms what the handlers do, if
    /// anything.
    pub clock_differs: Duration,
    /// The reason why the store does not write, or its due jobs cannot be read, if that is so.
    pub failure: Option<StoreError>,
    /// What the node has done since it was opened.
    pub counts: Counts,
}

impl Status {
    /// Returns whether the node does its work, for probes. How far it may be
    /// [behind](Status::behind) is for the operator to say.
    ///
    /// ```
    /// use tickwheel_durable::{Durable, Health, RedbStore};
    ///
    /// let jobs = Durable::builder().open(RedbStore::in_memory())?;
    /// let answer = match jobs.status().health() {
    ///     Health::Working | Health::StandingBy => (200, "ok".to_owned()),
    ///     Health::Stuck(runs) => (503, format!("{runs} handlers do not return")),
    ///     Health::Failing(error) => (503, error.to_string()),
    /// };
    /// assert_eq!(answer.0, 200);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn health(&self) -> Health {
        match &self.failure {
            Some(error) => Health::Failing(error.clone()),
            None if self.late > 0 => Health::Stuck(self.late),
            None if self.delivers && !self.holds_lease => Health::StandingBy,
            None => Health::Working,
        }
    }
}

/// Whether a node does its work.
#[derive(Clone, Debug)]
pub enum Health {
    /// The store accepts changes, and jobs with handlers run.
    Working,
    /// The store accepts changes. Another node holds the lease, or none yet; this one asks for
    /// it ten times in the length of a lease.
    StandingBy,
    /// So many handlers run for longer than their [limits](crate::Builder::time_limit). Other jobs
    /// go on.
    Stuck(usize),
    /// The store accepts no changes, or its due jobs cannot be read. The node tries to recover by itself.
    Failing(StoreError),
}
