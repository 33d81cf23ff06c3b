//! Runs that take longer than they may.

use std::time::Duration;

use super::Node;
use super::limits::Run;
use crate::job::JobId;

impl Node {
    /// Takes note of a run that begins. Returns whether the keeper should look, because it would
    /// look too late.
    pub(crate) fn begin_run(&self, id: JobId, within: Duration) -> bool {
        let limit = self.engine.now() + within;
        let mut limits = self.limits.lock();
        let is_replaced = false;
        limits.runs.insert(id, Run { limit, is_replaced });
        let is_earlier = limits.look.is_none_or(|look| limit < look);
        limits.look = limits.look.map_or(limit, |look| look.min(limit)).into();
        is_earlier
    }

    /// Takes note of the end of a run. Returns whether its worker was replaced.
    pub(crate) fn end_run(&self, id: JobId) -> bool {
        let run = self.limits.lock().runs.remove(&id);
        run.is_some_and(|run| run.is_replaced)
    }

    /// Returns how many runs are beyond their limits.
    pub(crate) fn late(&self) -> usize {
        let now = self.engine.now();
        let limits = self.limits.lock();
        limits.runs.values().filter(|run| run.limit <= now).count()
    }

    /// Calls `replace` for each worker whose run is beyond its limit, once.
    pub(crate) fn replace_late(&self, mut replace: impl FnMut() -> bool) {
        let now = self.engine.now();
        let mut late = Vec::new();
        for (id, run) in &mut self.limits.lock().runs {
            if run.limit <= now && !run.is_replaced && replace() {
                run.is_replaced = true;
                late.push(*id);
            }
        }
        late.into_iter()
            .for_each(|id| self.note_return(id, Duration::MAX));
    }
}
