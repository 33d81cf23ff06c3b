//! The promises of DESIGN.md, each by its number. Time is virtual unless threads are the
//! subject.

mod attempts;
mod calls;
mod clocks;
mod failures;
mod kinds;
mod nodes;
#[path = "../support/mod.rs"]
mod support;
mod threads;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tickwheel_durable::store::{Answer, Change, Kind, List, NewJob, Page, Store, StoreError};
use tickwheel_durable::{
    Attempt, Builder, Cancelled, Durable, IfTaken, Job, JobId, Jobs, ManualClock, Outcome,
    RedbStore, Refusal, Retry, State, VirtualNode, WallClock, WallTime,
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) fn kinds() -> Vec<Kind> {
    ["job", "mail", "note", "effect"].map(Kind::from).into()
}

/// The beginning of the tests, in seconds since 1970.
const BEGIN: u64 = 1_800_000_000;

/// A time, in seconds since the beginning.
pub(crate) fn at(secs: u64) -> WallTime {
    WallTime::from_unix_micros((BEGIN + secs) * 1_000_000)
}

/// What handlers have done: the text of the job, and when in milliseconds since the beginning.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(String, u64)>>>);

impl Log {
    pub(crate) fn note(&self, text: &str, now: WallTime) {
        let millis = now.since(at(0)).as_millis() as u64;
        self.0.lock().unwrap().push((text.to_owned(), millis));
    }

    pub(crate) fn take(&self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// The texts alone.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.take().into_iter().map(|(text, _)| text).collect()
    }
}

/// A store, a clock and a log, which outlive the nodes on them.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) store: RedbStore,
    pub(crate) log: Log,
}

impl World {
    pub(crate) fn new() -> World {
        let clock = ManualClock::new(at(0));
        World { store: RedbStore::in_memory_by(clock.clone()), clock, log: Log::default() }
    }

    /// A builder whose handler of kind `note` logs the job and returns `outcome`. All its nodes
    /// have one name.
    pub(crate) fn notes<O: Into<Outcome>>(
        &self,
        outcome: impl Fn(&Attempt) -> O + Send + Sync + 'static,
    ) -> Builder {
        let (log, clock) = (self.log.clone(), self.clock.clone());
        let builder = Durable::builder().owner("node");
        builder.handler("note", move |attempt| {
            log.note(&String::from_utf8_lossy(attempt.payload()), clock.now());
            outcome(attempt).into()
        })
    }

    pub(crate) fn open(&self, builder: Builder) -> (Durable, VirtualNode) {
        let opened = builder.open_virtual(self.store.clone(), self.clock.clone());
        opened.unwrap()
    }

    /// A node whose handler logs jobs and succeeds.
    pub(crate) fn node(&self) -> (Durable, VirtualNode) {
        self.open(self.notes(|_| ()))
    }

    pub(crate) fn count(&self, list: List) -> u64 {
        self.store.count(list).unwrap()
    }
}

pub(crate) fn note(text: &str, due: u64) -> Job {
    Job::new("note", text).at(at(due))
}

pub(crate) fn said(text: &str, millis: u64) -> (String, u64) {
    (text.to_owned(), millis)
}
