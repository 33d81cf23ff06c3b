//! Runs that take longer than they may.

use std::time::Duration;

use tickwheel::{Timer, TimerId};

use super::Node;
use crate::job::JobId;
use crate::window::Aimed;

impl Node {
    /// Takes note of a run that begins, and sets a timer to its limit.
    pub(crate) fn begin_run(&self, id: JobId, within: Duration) -> Option<TimerId> {
        let mut runs = self.runs.lock();
        let limit = Timer::after(within, Aimed { id, version: 0 }).queue(self.lanes());
        let timer = self.engine.schedule(limit).ok()?;
        runs.insert(timer, None);
        Some(timer)
    }

    /// Takes note of the end of a run. Returns whether its worker was replaced.
    pub(crate) fn end_run(&self, timer: TimerId) -> bool {
        self.engine.cancel(timer);
        let late = self.runs.lock().remove(&timer).flatten();
        if late.is_some() {
            // A lane may have seen it among the late ones, and wait: see `room_beside`.
            drop(self.windows.lock());
            self.freed.notify_all();
        }
        late == Some(true)
    }

    /// Returns how many runs are beyond their limits.
    pub(crate) fn late(&self) -> usize {
        self.runs.lock().values().flatten().count()
    }

    /// Calls `replace` for each worker whose run goes beyond its limit, until the node ends.
    pub(crate) fn watch(&self, replace: impl Fn() -> bool) {
        for limit in self.engine.queue(self.lanes()) {
            self.note_late(limit.id(), limit.payload().id, &replace);
        }
    }

    /// Takes note that a run is beyond its limit, unless it has ended. Others may start beside it
    /// from now on, even if its worker can't be replaced, or it has none.
    pub(super) fn note_late(&self, timer: TimerId, id: JobId, replace: impl Fn() -> bool) {
        let lane = self.windows.lock().iter().position(|window| window.has(id));
        let has_worker = lane.is_some_and(|lane| self.needs_workers(lane));
        let mut runs = self.runs.lock();
        let Some(run) = runs.get_mut(&timer) else { return };
        let is_replaced = *run.insert(has_worker && replace());
        drop(runs);
        if is_replaced {
            return self.note_return(id, Duration::MAX);
        }
        self.windows.lock().iter_mut().for_each(|window| window.note_late(id));
        self.freed.notify_all();
    }
}
