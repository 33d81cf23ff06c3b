//! What an operator sees of a node: its status and events, and with the feature `metrics` its
//! metrics. Time is virtual.

mod counts;
#[path = "../../../tests/support/events.rs"]
mod events;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "metrics")]
#[path = "../../../tests/support/recorder.rs"]
mod recorder;
#[path = "../support/mod.rs"]
mod support;
mod tracing;

use std::time::Duration;

use tickwheel_durable::{
    Builder, Durable, Job, ManualClock, Outcome, RedbStore, Retry, VirtualNode, WallTime,
};

use self::support::failing::{Failing, Mode};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A time, in seconds since the beginning.
pub(crate) fn at(secs: u64) -> WallTime {
    WallTime::from_unix_micros((1_800_000_000 + secs) * 1_000_000)
}

/// A node on a store that fails on request.
pub(crate) struct World {
    pub(crate) jobs: Durable,
    pub(crate) node: VirtualNode,
    pub(crate) clock: ManualClock,
    pub(crate) store: Failing,
    pub(crate) memory: RedbStore,
}

impl World {
    pub(crate) fn new() -> World {
        World::of(handlers())
    }

    pub(crate) fn of(builder: Builder) -> World {
        let clock = ManualClock::new(at(0));
        let memory = RedbStore::in_memory_by(clock.clone());
        let store = Failing::new(memory.clone());
        let opened = builder.open_virtual(store.clone(), clock.clone());
        let (jobs, node) = opened.unwrap();
        World { jobs, node, clock, store, memory }
    }

    pub(crate) fn schedule(&self, kind: &str, due: u64) {
        let job = Job::new(kind, "").at(at(due));
        self.jobs.schedule(job).unwrap();
    }

    /// Runs a job of each kind at 10 s, and to the end of the one that is tried twice.
    pub(crate) fn run_each(&self) {
        for kind in ["done", "again", "failed", "never"] {
            self.schedule(kind, 10);
        }
        self.node.run_until(at(20));
    }
}

/// A node with a handler for each outcome.
pub(crate) fn handlers() -> Builder {
    let retry = Retry::attempts(2).first_pause(SECOND).longest_pause(SECOND);
    Durable::builder()
        .owner("node")
        .handler("done", |_| ())
        .handler("again", |attempt| {
            if attempt.due() < at(11) { Outcome::AgainAt(at(12)) } else { Outcome::Done }
        })
        .handler("failed", |_| Err::<(), _>("no line"))
        .retry("failed", retry)
        .handler("never", |_| Outcome::Never("no such address".to_owned()))
}
