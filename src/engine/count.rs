//! Counts over all shards.

use std::time::Duration;

use crate::engine::{Core, Engine};
use crate::stats::{Ledger, Snapshot};
use crate::sync::Ordering;

impl<T> Engine<T> {
    /// Returns the account of all timers. It is exact only while no other call is
    /// running. Prefer [`snapshot`](Engine::snapshot) for monitoring.
    ///
    /// # Cost
    /// Locks each shard once, whatever the number of timers.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.core.ledger()
    }

    /// Returns all counts, for monitoring: ledger, queue depths, lateness, work,
    /// wake-ups, panics.
    ///
    /// # Cost
    /// Locks each shard once, whatever the number of timers.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            name: self.core.name.clone(),
            queued: vec![0; self.core.queues()],
            wakeups: self.core.alarm.wakeups(),
            panics: self.core.panics(),
            workers: self.core.workers.wanted(),
            max_timers: self.core.max_timers,
            behind: self.core.behind(),
            ..Snapshot::default()
        };
        for cell in &self.core.shards {
            let shard = cell.lock();
            let (reports, queues) = shard.ready.split_last().expect("the last is the reports'");
            snapshot.reports += reports.len();
            for (queued, ready) in snapshot.queued.iter_mut().zip(queues) {
                *queued += ready.len();
            }
            snapshot.held += shard.work.held;
            if let Some(measured) = shard.work.measured() {
                let at_start = &measured.lateness_at_start;
                snapshot.lateness_at_start.add(at_start);
                snapshot.durations.add(&measured.durations);
            }
            snapshot.ledger.add(&shard.ledger());
            snapshot.lateness.add(&shard.lateness);
            snapshot.refused.add(&shard.refused);
            snapshot.memory += shard.bytes();
        }
        snapshot
    }
}

impl<T> Core<T> {
    pub(crate) fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::default();
        for cell in &self.shards {
            ledger.add(&cell.lock().ledger());
        }
        ledger
    }

    /// Returns the time since the tick at which a shard should have been visited, or zero
    /// if that tick has not come.
    fn behind(&self) -> Duration {
        self.clock.now() - self.tick.start_of(self.next_due())
    }

    /// Returns the number of panics of tasks and of wakers.
    fn panics(&self) -> u64 {
        let wakers: u64 = self.doorbells.iter().map(|bells| bells.panics()).sum();
        self.panics.load(Ordering::Relaxed) + wakers
    }

    pub(crate) fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }
}
