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
            let is_replaced = match self.runs.lock().get_mut(&limit.id()) {
                Some(run) => *run.insert(replace()),
                None => false,
            };
            if is_replaced {
                self.note_return(limit.payload().id, Duration::MAX);
            }
        }
    }
}
