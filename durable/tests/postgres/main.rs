//! Several nodes on one PostgreSQL database. Needs a server: run it with `durable/tests/postgres.sh`.
//!
//! Time is real, because the database's clock is. No test depends on how fast anything is; what
//! must happen is waited for.

mod fences;
mod nodes;
mod plans;
mod processes;
mod schemas;
#[path = "../support/postgres.rs"]
mod server;
mod settings;
mod transactions;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use server::Schema;
use tickwheel_durable::store::{
    Answer, Change, DueJob, Kind, Lease, List, NewJob, News, Page, Store, StoreError, Target, Then,
};
use tickwheel_durable::{
    Builder, Durable, Job, PostgresStore, Recurrence, Retry, SystemClock, WallClock, WallTime,
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn kinds() -> Vec<Kind> {
    vec!["note".into()]
}

pub(crate) fn names() -> Vec<String> {
    vec!["note".to_owned()]
}

/// Waits until something holds. A minute is more than a busy machine needs.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + SECOND * 60;
    while !holds() {
        assert!(Instant::now() < end, "in vain: {what}");
        thread::sleep(millis(5));
    }
}

/// Which node has run which jobs, and when.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<(String, String)>>>);

impl Ledger {
    pub(crate) fn note(&self, node: &str, job: &str) {
        let line = (node.to_owned(), job.to_owned());
        self.0.lock().unwrap().push(line);
    }

    pub(crate) fn runs(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap().clone()
    }

    /// Returns how often each job ran.
    pub(crate) fn jobs(&self) -> BTreeMap<String, usize> {
        let mut jobs = BTreeMap::new();
        for (_, job) in self.runs() {
            *jobs.entry(job).or_default() += 1;
        }
        jobs
    }

    /// Returns how many jobs a node ran.
    pub(crate) fn of(&self, node: &str) -> usize {
        self.runs().iter().filter(|(name, _)| name == node).count()
    }

    /// A node's builder, whose handler of kind `note` notes the job.
    pub(crate) fn builder(&self, node: &'static str) -> Builder {
        let ledger = self.clone();
        let builder = Durable::builder().owner(node).tick(millis(1));
        builder.handler("note", move |attempt| {
            ledger.note(node, &String::from_utf8_lossy(attempt.payload()));
        })
    }
}

pub(crate) fn note(text: impl Into<String>) -> Job {
    Job::new("note", text.into())
}

/// Waits until a node holds a lease and has loaded its window.
pub(crate) fn until_ready(node: &Durable) {
    until("a lease and a window", || {
        let status = node.status();
        status.holds_lease && status.horizon > SystemClock.now()
    });
}

/// Returns how many shards each node has, by name.
pub(crate) fn shares(schema: &Schema) -> BTreeMap<String, i64> {
    let name = &schema.name;
    let text = format!(
        "SELECT l.owner, count(s.shard) FROM {name}.leases l \
         LEFT JOIN {name}.shards s ON s.fence = l.fence GROUP BY l.owner"
    );
    let rows = schema.client().query(&text, &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}
