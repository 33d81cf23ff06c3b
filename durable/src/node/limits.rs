//! Runs and their time limits.

use std::collections::HashMap;
use std::time::Duration;

use tickwheel::Time;

use crate::job::JobId;

#[derive(Default)]
pub(super) struct Limits {
    pub(super) runs: HashMap<JobId, Run>,
    /// When the keeper looks for late runs next.
    pub(super) look: Option<Time>,
}

pub(super) struct Run {
    pub(super) limit: Time,
    /// Whether another worker has taken the place of the one that runs it.
    pub(super) is_replaced: bool,
}

impl Limits {
    /// Returns the time until the next run is late, and remembers it.
    pub(super) fn look(&mut self, now: Time) -> Option<Duration> {
        let waiting = self.runs.values().filter(|run| !run.is_replaced);
        self.look = waiting.map(|run| run.limit).min();
        self.look.map(|look| look.since(now))
    }
}
