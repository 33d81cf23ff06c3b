//! What every store must do. Each test runs on each store.

mod changes;
mod lists;
mod outcomes;
#[cfg(feature = "postgres")]
#[path = "../support/postgres.rs"]
mod postgres;
mod stores;

use std::time::Duration;

use tickwheel_durable::store::{
    Answer, Change, DueJob, Kind, Lease, List, NewJob, Page, Store, StoreError, Target, Then,
};
use tickwheel_durable::{
    IfTaken, Job, JobId, Recurrence, RedbStore, State, StoredJob, SystemClock, WallClock, WallTime,
};

/// A store with a lease on it.
pub(crate) struct Bench<S> {
    pub(crate) store: S,
    pub(crate) lease: Lease,
}

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

pub(crate) fn at(micros: u64) -> WallTime {
    WallTime::from_unix_micros(micros)
}

pub(crate) fn kinds() -> Vec<Kind> {
    ["job", "mail", "note", "effect"].map(Kind::from).into()
}

pub(crate) fn names() -> Vec<String> {
    kinds().into_iter().map(|kind| kind.name).collect()
}

/// A job of kind `mail`, due at a time.
pub(crate) fn mail(due: u64) -> Job {
    Job::new("mail", b"body".to_vec()).at(at(due))
}

impl<S: Store> Bench<S> {
    pub(crate) fn new(store: S) -> Bench<S> {
        let lease = store.acquire("first", &kinds(), HOUR).unwrap().expect("no lease");
        Bench { store, lease }
    }

    pub(crate) fn commit(&self, changes: &[Change]) -> Vec<Answer> {
        self.store.commit(changes).unwrap()
    }

    pub(crate) fn change(&self, change: Change) -> Answer {
        let mut answers = self.commit(&[change]);
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    pub(crate) fn try_insert(&self, job: Job) -> Answer {
        self.change(Change::Insert(NewJob::new(job, at(0)).unwrap()))
    }

    pub(crate) fn insert(&self, job: Job) -> DueJob {
        placed(self.try_insert(job))
    }

    pub(crate) fn start(&self, job: DueJob) -> Answer {
        self.start_under(self.lease, job)
    }

    pub(crate) fn start_under(&self, lease: Lease, job: DueJob) -> Answer {
        let (DueJob { id, version, .. }, Lease { fence, .. }) = (job, lease);
        self.change(Change::Start { id, version, fence })
    }

    pub(crate) fn started(&self, job: DueJob) -> StoredJob {
        match self.start(job) {
            Answer::Started { job, .. } => *job,
            answer => panic!("{answer:?}"),
        }
    }

    pub(crate) fn finish(&self, job: &StoredJob, then: Then) -> Answer {
        self.change(Change::finish(job, self.lease.fence, then))
    }

    pub(crate) fn due(&self) -> Vec<u64> {
        let due = self.store.due_before(self.lease, &names(), WallTime::MAX, 100);
        let micros = |job: DueJob| job.due.as_unix_micros();
        due.unwrap().jobs.into_iter().map(micros).collect()
    }

    pub(crate) fn counts(&self) -> (u64, u64) {
        let count = |list| self.store.count(list).unwrap();
        (count(List::Live), count(List::Dead))
    }
}

pub(crate) fn placed(answer: Answer) -> DueJob {
    match answer {
        Answer::Placed(job) => job,
        answer => panic!("{answer:?}"),
    }
}

/// Runs the named functions on each store.
macro_rules! on_each_store {
    ($($test:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $test() { super::$test(&crate::Bench::new(crate::RedbStore::in_memory())) })*
        }
        mod redb {
            $(#[test] fn $test() {
                let folder = tempfile::tempdir().unwrap();
                let store = crate::RedbStore::open(folder.path().join("jobs.redb")).unwrap();
                super::$test(&crate::Bench::new(store));
            })*
        }
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[test] fn $test() {
                let Some(schema) = crate::postgres::Schema::new() else { return };
                super::$test(&crate::Bench::new(schema.open()));
            })*
        }
    };
}
pub(crate) use on_each_store;
