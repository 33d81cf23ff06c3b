//! Reports: how those timers ended whose owners want to know. An unread report is the entry of
//! its timer, on the list after those of the queues.
//!
//! A shard counts the reported timers that it has accepted and that have no report yet:
//! live timers, those with a lent firing, and those whose task has yet to run once more.
//! A closed shard accepts no timers. At a count of zero, it has reported all.

use crate::shard::record::State;
use crate::shard::{Phase, Shard};
use crate::tick::Tick;
use crate::timer::{CloseReason, Closed};
use crate::wheel::EntryIndex;

impl<T> Shard<T> {
    /// Returns the number of the list of reports, which is also that of the queues.
    pub(super) fn reports(&self) -> usize {
        self.ready.len() - 1
    }

    /// Returns the report on a timer that ends, without its payload.
    pub(super) fn closed(&self, at: EntryIndex, reason: CloseReason, tick: Tick) -> Closed<T> {
        let key = self.record_of(at);
        Closed {
            id: self.wheel.id(at),
            name: self.name_of(at).cloned(),
            queue: self.queue_of(at),
            tick,
            deadline: self.tick.start_of(self.due_tick_of(at)),
            firings: key.map_or(0, |key| self.records[key].firings),
            reason,
            payload: None,
        }
    }

    /// Makes the report on a timer that has ended available.
    pub(super) fn report(&mut self, at: EntryIndex) {
        self.put_on(self.reports(), at);
        self.to_report -= 1;
        self.signal_if_all_reported();
    }

    /// Takes the first unread report.
    pub(crate) fn claim_report(&mut self) -> Option<Closed<T>> {
        let reports = self.reports();
        let at = self.ready[reports].first_to_take(&self.wheel)?;
        self.ready[reports].unlink(&mut self.wheel, at);
        let key = self.record_of(at)?;
        let State::Ended { reason, tick } = self.records[key].state else {
            unreachable!("only ended timers are reported");
        };
        let mut closed = self.closed(at, reason, tick);
        closed.payload = self.records[key].payload.take();
        self.forget(at, key);
        Some(closed)
    }

    /// Signals that no report is still to come. This happens only once, because a closed shard
    /// accepts no timers.
    pub(super) fn signal_if_all_reported(&mut self) {
        if self.phase == Phase::Closed && self.to_report == 0 {
            self.signal().all_reported = true;
        }
    }
}
