//! Events per second, from totals that only grow.

use std::collections::VecDeque;
use std::time::Duration;

use tickwheel::{Snapshot, Time};

/// The length of time over which a rate is an average.
const WINDOW: Duration = Duration::from_secs(1);

/// Events per second of the engine's time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PerSecond {
    /// Timers accepted.
    pub scheduled: f64,
    /// Timers cancelled.
    pub cancelled: f64,
    /// Firings that entered their queues.
    pub fired: f64,
    /// Wake-ups of the ticker.
    pub wakeups: f64,
}

#[derive(Clone, Copy, Debug)]
struct Totals {
    at: Time,
    scheduled: u64,
    cancelled: u64,
    fired: u64,
    wakeups: u64,
}

impl Totals {
    fn of(snapshot: &Snapshot, at: Time) -> Totals {
        Totals {
            at,
            scheduled: snapshot.ledger.accepted,
            cancelled: snapshot.ledger.cancelled,
            fired: snapshot.lateness.count(),
            wakeups: snapshot.wakeups,
        }
    }

    fn per_second_since(&self, earlier: &Totals) -> PerSecond {
        let seconds = self.at.since(earlier.at).as_secs_f64();
        let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        PerSecond {
            scheduled: per_second(self.scheduled, earlier.scheduled),
            cancelled: per_second(self.cancelled, earlier.cancelled),
            fired: per_second(self.fired, earlier.fired),
            wakeups: per_second(self.wakeups, earlier.wakeups),
        }
    }
}

/// The totals of the last second.
#[derive(Default, Debug)]
pub(crate) struct Rates {
    seen: VecDeque<Totals>,
}

impl Rates {
    /// Notes the totals at `now`, and returns the rates of the second before.
    pub(crate) fn note(&mut self, snapshot: &Snapshot, now: Time) -> PerSecond {
        let totals = Totals::of(snapshot, now);
        self.seen.retain(|seen| seen.at < now);
        while self
            .seen
            .get(1)
            .is_some_and(|second| now.since(second.at) >= WINDOW)
        {
            self.seen.pop_front();
        }
        self.seen.push_back(totals);
        match self.seen.front() {
            Some(first) if first.at < now => totals.per_second_since(first),
            _ => PerSecond::default(),
        }
    }
}
