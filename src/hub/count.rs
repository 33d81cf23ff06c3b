//! Counts over all shards.

use crate::hub::Core;
use crate::stats::{Ledger, Snapshot};
use crate::sync::Ordering;

impl<T> Core<T> {
    pub(crate) fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::default();
        for cell in &self.shards {
            ledger.add(&cell.lock().ledger());
        }
        ledger
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            name: self.name.to_arc(),
            queued: (0..self.queues())
                .map(|queue| self.ready_len(queue))
                .collect(),
            reports: self.ready_len(self.queues()),
            wakeups: self.alarm.wakeups(),
            panics: self.panics.load(Ordering::Relaxed),
            ..Snapshot::default()
        };
        for cell in &self.shards {
            let shard = cell.lock();
            snapshot.ledger.add(&shard.ledger());
            snapshot.lateness.add(&shard.lateness);
        }
        snapshot
    }

    pub(crate) fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }
}
