//! What workers do with a shard's firings: how late they take them, and how long they
//! hold them.

use crate::shard::Shard;
use crate::stats::Histogram;
use crate::time::Time;

/// The work on a shard's firings.
#[derive(Default)]
pub(crate) struct Work {
    /// The number of lent firings.
    pub(crate) held: usize,
    measured: Option<Box<Measured>>,
}

/// Times that are kept only if takes are measured.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) lateness_at_start: Histogram,
    pub(crate) durations: Histogram,
}

impl Work {
    pub(crate) fn measured(&self) -> Option<&Measured> {
        self.measured.as_deref()
    }

    fn measure(&mut self) -> &mut Measured {
        self.measured.get_or_insert_default()
    }
}

impl<T> Shard<T> {
    /// Records that a worker takes the first expired timer of a queue at `now`, and how
    /// late that is.
    pub(crate) fn note_take(&mut self, queue: usize, now: Time) {
        let Some(at) = self.ready[queue].first(&self.wheel) else {
            return;
        };
        if let Some(key) = self.record_of(at) {
            let record = &mut self.records[key];
            if !record.state.is_live() {
                return;
            }
            record.taken = Some(now);
        }
        let due = self.tick.start_of(self.wheel.deadline_of(at));
        let late = now.since_nanos(due);
        self.work.measure().lateness_at_start.record(late);
    }

    /// Records that a lent firing has come back at `now`.
    pub(crate) fn note_return(&mut self, key: usize, now: Time) {
        self.work.held -= 1;
        if let Some(taken) = self.records[key].taken.take() {
            let nanos = now.since_nanos(taken);
            self.work.measure().durations.record(nanos);
        }
    }
}
