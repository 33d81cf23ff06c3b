//! Where jobs are kept: the interface that every store fulfils.
//!
//! A store carries out *changes*, whole decisions such as "start this job if its version is
//! still 4", in batches that are durable when the call returns. It reads jobs in the order of
//! their due times. It knows nothing of windows, threads and handlers.
//!
//! `tests/conformance` checks every store in the same way.

#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
mod postgres;
mod redb;

#[cfg(feature = "postgres")]
pub use self::postgres::{PostgresOptions, PostgresStore, Transaction};
pub use self::redb::{RedbOptions, RedbStore};

#[cfg(feature = "postgres")]
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::job::{IfTaken, Job, JobId, State, StoredJob};
use crate::recurrence::Recurrence;
use crate::wall::{WallClock, WallTime};

/// What was asked for, or a [`StoreError`].
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// A store of jobs. All calls block, and any thread may make them.
///
/// Every change of a batch has an answer of its own. Later changes of a batch see the effects
/// of earlier ones. If the call fails, none or all of them have happened.
pub trait Store: Send + Sync + 'static {
    /// Takes a lease for `length` by the store's clock, for jobs of these kinds. Returns `None` if
    /// there is none to take.
    ///
    /// The store decides which jobs of the kinds belong to a lease: all, or those of some shards. A
    /// job never belongs to two leases. Each grant has a higher fence than all before.
    ///
    /// To take one may take its time, so a node then [renews](Store::renew) it, and counts from that.
    ///
    /// # Errors
    /// Returns the reason why the store did not answer.
    fn acquire(&self, owner: &str, kinds: &[Kind], length: Duration) -> Result<Option<Lease>>;

    /// Extends a lease by `length` from now. Returns `false` if it was lost.
    ///
    /// # Errors
    /// Returns the reason why the store did not answer.
    fn renew(&self, lease: Lease, length: Duration) -> Result<bool>;

    /// Carries out the changes in their order, and returns their answers once all are
    /// durable. To one that it cannot carry out because the job's row is damaged, the answer is
    /// [`Answer::Damaged`], and the others go on. [`Change::Start`] and [`Change::Finish`] need the fence of a lease that no other
    /// has replaced; otherwise they change nothing, and the answer is [`Answer::Fenced`]. To a
    /// lease that the job does not belong to, the answer is [`Answer::Gone`].
    ///
    /// # Errors
    /// Returns the reason for which it is unknown whether the changes happened. The store then
    /// accepts no more changes until [`recover`](Store::recover) has succeeded.
    fn commit(&self, changes: &[Change]) -> Result<Vec<Answer>>;

    /// Returns whether leases run out. If not, a lease lasts until the store is closed, and is
    /// not renewed. Defaults to true.
    fn leases_end(&self) -> bool {
        true
    }

    /// Returns after what time a lease should be renewed even if its end is far: another node may
    /// have ended, or stored jobs. Defaults to no such time.
    fn renew_after(&self) -> Duration {
        Duration::MAX
    }

    /// Returns how long starts and outcomes may wait for others, to be committed with them. A
    /// node waits for no more than a tenth of its lease. Defaults to zero: a commit begins when
    /// the last one has ended.
    fn linger(&self) -> Duration {
        Duration::ZERO
    }

    /// Lets others have the jobs of a lease, but for shards of which one runs. Those start no more
    /// either, and the lease goes on. Defaults to nothing.
    fn leave(&self, _: Lease) {}

    /// Ends a lease, so that others need not wait for its end. A node that had none has the fence 0.
    /// Defaults to nothing.
    fn give_back(&self, _: Lease) {}

    /// Returns the clock by which jobs of this store are due, on whatever machine a node runs.
    /// Defaults to none: the node's own.
    fn clock(&self) -> Option<Arc<dyn WallClock>> {
        None
    }

    /// Returns the kinds with waiting jobs that no node handles, and when the first job of each is
    /// due.
    ///
    /// # Errors
    /// Returns the reason why the store did not answer.
    fn unhandled(&self) -> Result<Vec<(String, WallTime)>>;

    /// Returns the kinds that are paused.
    ///
    /// # Errors
    /// Returns the reason why the store did not answer.
    fn paused(&self) -> Result<Vec<String>>;

    /// Calls `hear` from now on with what other nodes do. Jobs that are due within `reach` may
    /// stand in this node's window. Defaults to nothing, for stores that serve one node at a
    /// time.
    fn listen(&self, _reach: Duration, _hear: Hear) {}

    /// Returns the transactions of the store, if it is a [`PostgresStore`]: handlers may then work
    /// in them. Defaults to none.
    #[cfg(feature = "postgres")]
    #[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
    fn transactions(&self) -> Option<&dyn Transactions> {
        None
    }

    /// Makes the store accept changes again after a failed commit. Keeps the leases.
    ///
    /// # Errors
    /// Returns the reason why it still accepts none.
    fn recover(&self) -> Result<()>;

    /// Returns the first jobs of some kinds of the lease that are due before `before`, at most `most`
    /// and about as many if there are more, in the order of due times. Begins with the earliest job
    /// of all, started ones included, and leaves out paused kinds, but perhaps not what the lease has
    /// started of them. A job whose row cannot be read counts as one of the first kind of the lease:
    /// starting it fails.
    ///
    /// # Errors
    /// Returns the reason why the store did not answer.
    fn due_before(
        &self,
        lease: Lease,
        kinds: &[String],
        before: WallTime,
        most: usize,
    ) -> Result<Due>;

    /// Returns a job, dead letters included.
    ///
    /// # Errors
    /// Returns the reason why the store did not answer.
    fn get(&self, id: JobId) -> Result<Option<StoredJob>>;

    /// Returns the waiting or running job of this kind that has this key.
    ///
    /// # Errors
    /// Returns the reason why the store did not answer.
    fn find(&self, kind: &str, key: &str) -> Result<Option<StoredJob>>;

    /// Returns a page of jobs: as many as asked for, or fewer if their payloads have 16 MiB
    /// together. Only behind the last job is a page empty.
    ///
    /// # Errors
    /// Returns the reason why the store did not answer.
    fn list(&self, page: Page<'_>) -> Result<Vec<StoredJob>>;

    /// Returns whether there is room for new jobs. Defaults to true.
    fn has_room(&self) -> bool {
        true
    }

    /// Returns the number of jobs in a list.
    ///
    /// # Errors
    /// Returns the reason why the store did not answer.
    fn count(&self, list: List) -> Result<u64>;
}

/// Transactions in which handlers work.
#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
pub trait Transactions {
    /// Has `work` done within a transaction, and carries out the change that it returns in it, too: a
    /// new one while the answer is `Changed`. Commits and returns the change and its answer if that is
    /// accepted. Otherwise rolls back, and returns `None` if there was no change. The server ends a
    /// statement after `limit`.
    ///
    /// # Errors
    /// Returns the reason why the change was not accepted, or why it is unknown whether the
    /// transaction was committed.
    fn transact(&self, limit: Duration, work: &mut dyn Work) -> Result<Option<(Change, Answer)>>;
}

/// What is done within a transaction: a closure such as `async |transaction| …`.
#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
pub trait Work {
    /// Does it. Returns the change that is to be carried out with it, if it is to be committed. Is
    /// called again with a job that has changed, for another change.
    fn work<'a>(
        &'a mut self,
        transaction: &'a mut Transaction<'_>,
        changed: Option<StoredJob>,
    ) -> Pin<Box<dyn Future<Output = Option<Change>> + 'a>>;
}

#[cfg(feature = "postgres")]
impl<F: AsyncFnMut(&mut Transaction<'_>, Option<StoredJob>) -> Option<Change>> Work for F {
    fn work<'a>(
        &'a mut self,
        transaction: &'a mut Transaction<'_>,
        changed: Option<StoredJob>,
    ) -> Pin<Box<dyn Future<Output = Option<Change>> + 'a>> {
        Box::pin(self(transaction, changed))
    }
}

/// The two lists of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum List {
    /// Waiting and running jobs, by due time.
    Live,
    /// Dead letters, by the time at which they died.
    Dead,
}

/// A kind of jobs that a node handles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kind {
    /// The name.
    pub name: String,
    /// How many of its jobs may run at a time on all nodes together, if there is a limit. If leases
    /// disagree, the last one that was taken decides.
    pub most: Option<usize>,
}

impl From<&str> for Kind {
    fn from(name: &str) -> Kind {
        let (name, most) = (name.to_owned(), None);
        Kind { name, most }
    }
}

/// The bytes of payloads with which a page ends.
const PAGE_BYTES: usize = 16 << 20;

/// A page of a list.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The list.
    pub list: List,
    /// The only kind of jobs on the page, if there is one.
    pub kind: Option<&'a str>,
    /// The job behind which it begins, if it is not the first one.
    pub after: Option<&'a StoredJob>,
    /// The largest number of jobs.
    pub most: usize,
}

impl<'a> Page<'a> {
    /// Returns a page of all kinds.
    #[must_use]
    pub fn new(list: List, after: Option<&'a StoredJob>, most: usize) -> Page<'a> {
        Page { list, kind: None, after, most }
    }
}

/// The right to run the jobs that the store gives to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The number of the grant.
    pub fence: u64,
}

/// What a node is called with when a store tells it of others.
pub type Hear = Box<dyn Fn(News) + Send + Sync>;

/// What other nodes have done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum News {
    /// These jobs wait for their due times.
    Placed(Vec<DueJob>),
    /// More jobs than can be said, or jobs of a shard that was another node's.
    Many,
    /// A node came or went: the lease should be renewed.
    Nodes,
}

/// What a store has read for a window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Due {
    /// The jobs.
    pub jobs: Vec<DueJob>,
    /// Up to which due time these are all, unless they are all that was asked for.
    pub until: Option<WallTime>,
}

impl Due {
    /// Returns the first `most` jobs, behind which there may be more.
    pub(crate) fn first(jobs: Vec<DueJob>, most: usize) -> Due {
        let last = jobs.last().filter(|_| jobs.len() == most);
        Due { until: last.map(|job| job.due), jobs }
    }
}

/// A job that is due soon, without its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DueJob {
    /// The id.
    pub id: JobId,
    /// The version at which `due` holds.
    pub version: u64,
    /// The due time.
    pub due: WallTime,
    /// Whether a run has begun under an earlier lease and not ended: its process may have died of
    /// it.
    pub is_interrupted: bool,
    /// The place of its kind among those of the lease that was taken through the store that says so,
    /// if it belongs to that.
    pub kind: Option<usize>,
}

impl DueJob {
    /// Returns what a window needs of a job, under the lease with this fence.
    pub(crate) fn of(job: &StoredJob, lease: u64, kind: Option<usize>) -> DueJob {
        DueJob {
            id: job.id,
            version: job.version,
            due: job.due,
            is_interrupted: matches!(job.state, State::Started { fence } if fence != lease),
            kind,
        }
    }
}

/// A job, by its id or by its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// The job with this id.
    Id(JobId),
    /// The waiting or running job of this kind with this key.
    Key {
        /// The kind.
        kind: String,
        /// The key.
        key: String,
    },
}

impl From<JobId> for Target {
    fn from(id: JobId) -> Target {
        Target::Id(id)
    }
}

impl From<(&str, &str)> for Target {
    fn from((kind, key): (&str, &str)) -> Target {
        Target::Key { kind: kind.to_owned(), key: key.to_owned() }
    }
}

/// A change of the stored jobs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Stores a job. Answers `Placed`, `Kept` or `Taken`.
    Insert(NewJob),
    /// Removes a waiting or running job. Answers `Removed`, `RemovedRunning` or `Gone`.
    Cancel(Target),
    /// Sets the due time of a waiting or running job. Answers `Placed` or `Gone`.
    Move {
        /// The job.
        target: Target,
        /// Its new due time.
        due: WallTime,
    },
    /// Notes that a handler is about to run, and counts the attempt. Answers `Started`,
    /// `Full`, `Stale`, `Gone` or `Fenced`. If the job was started under the same lease already,
    /// answers `Started` and counts nothing. `Stale` means that the job was moved: it waits then,
    /// even if an earlier try of this change has started it. `Full` means that as many jobs of
    /// its kind run on all nodes as may, whatever the version: a node asks with the version 0, which no
    /// job has, whether there is room. To a job of a paused kind, answers `Gone`.
    Start {
        /// The job.
        id: JobId,
        /// The version that it must have.
        version: u64,
        /// The fence of the lease.
        fence: u64,
    },
    /// Notes how a run ended. Answers `Placed`, `Removed`, `Changed`, `Stale`, `Gone` or `Fenced`.
    /// `Stale` means that the job was moved while it ran: the move stands, the outcome is dropped,
    /// and the attempts are forgotten.
    Finish {
        /// The job.
        id: JobId,
        /// The version that it was started with.
        version: u64,
        /// The fence of the lease under which it was started.
        fence: u64,
        /// The recurrence by which the next due time was reckoned.
        recurrence: Option<Recurrence>,
        /// What becomes of it.
        then: Then,
    },
    /// Makes a dead letter due again, without its attempts. Answers `Placed`, `Taken` if another
    /// job has its key meanwhile, or `Gone`.
    Revive {
        /// The dead letter.
        id: JobId,
        /// Its new due time.
        due: WallTime,
    },
    /// Removes a dead letter. Answers `Removed` or `Gone`.
    Bury(JobId),
    /// Lets no more jobs of a kind be started, or lets them again. Answers `Set`.
    Pause {
        /// The kind.
        kind: String,
        /// Whether it is paused from now on.
        is_paused: bool,
    },
}

impl Change {
    /// Returns the end of the run of a job under the lease with this fence.
    #[must_use]
    pub fn finish(job: &StoredJob, fence: u64, then: Then) -> Change {
        let (id, version, recurrence) = (job.id, job.version, job.recurrence.clone());
        Change::Finish { id, version, fence, recurrence, then }
    }

    /// Returns the fence that the change needs, if it needs one.
    #[must_use]
    pub fn fence(&self) -> Option<u64> {
        match self {
            Change::Start { fence, .. } | Change::Finish { fence, .. } => Some(*fence),
            _ => None,
        }
    }
}

/// A job that is about to be stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewJob {
    /// The job as its caller described it, for the way back.
    pub(crate) job: Job,
    /// The due time.
    pub due: WallTime,
    /// What to do if the key is taken.
    pub if_taken: IfTaken,
    pub(crate) now: WallTime,
}

impl NewJob {
    /// Returns the job with its due time as of `now`.
    ///
    /// # Errors
    /// Returns the job if its recurrence has no occurrence after `now`.
    pub fn new(job: Job, now: WallTime) -> Result<NewJob, Box<Job>> {
        let Some(due) = job.resolve(now) else {
            return Err(Box::new(job));
        };
        let job = job.keyed();
        Ok(NewJob { due, if_taken: job.if_taken, now, job })
    }

    /// Returns the job that a store is to keep under `id`.
    #[must_use]
    pub fn stored(&self, id: JobId) -> StoredJob {
        StoredJob {
            id,
            kind: self.job.kind.clone(),
            key: self.job.key.clone(),
            due: self.due,
            version: 1,
            attempts: 0,
            state: State::Waiting,
            recurrence: self.recurrence(),
            failure: None,
            payload: self.job.payload.clone(),
        }
    }

    /// Returns the kind, and the key if there is one.
    #[must_use]
    pub fn name(&self) -> (&str, Option<&str>) {
        (&self.job.kind, self.job.key.as_deref())
    }

    pub(crate) fn recurrence(&self) -> Option<Recurrence> {
        self.job.recurrence(self.due)
    }
}

/// What becomes of a job after a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Then {
    /// It has ended.
    End,
    /// It is due again.
    Again {
        /// The next due time.
        due: WallTime,
        /// The message, if the run failed. If it did not, the attempts are forgotten.
        failure: Option<String>,
    },
    /// Its attempts are used up. If it recurs, the failed occurrence becomes a dead letter with
    /// an id of its own and without a recurrence, and the job goes on.
    Die {
        /// The message.
        failure: String,
        /// The time of death.
        at: WallTime,
        /// The next occurrence, if the job recurs.
        next: Option<WallTime>,
    },
}

/// The answer to a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The job waits for its due time.
    Placed(DueJob),
    /// The key was taken, and the stored job was kept.
    Kept(JobId),
    /// The key was taken, and nothing was stored.
    Taken(JobId),
    /// The job was removed. It was not running. After a [`Change::Finish`] its bytes may be missing.
    Removed(Box<StoredJob>),
    /// The job was removed while a handler ran it.
    RemovedRunning(JobId),
    /// The handler may run.
    Started {
        /// The job, as it is from now on.
        job: Box<StoredJob>,
        /// The number of the grant by which this lease has the job: higher than that of every
        /// earlier holder of the job. Where a lease is for all jobs, its fence.
        token: u64,
    },
    /// The job waits, until one of its kind has ended.
    Full,
    /// The job has another recurrence since it was started. It was left as it is: reckon again, and
    /// hand that in. Its bytes may be missing.
    Changed(Box<StoredJob>),
    /// The job has another version, which waits for its due time.
    Stale(DueJob),
    /// There is no such job.
    Gone,
    /// The lease is not the last one that was granted.
    Fenced,
    /// It is so.
    Set,
    /// The job cannot be read, and was left as it is. The text says why.
    Damaged(String),
}

/// The reason why a store did not do what it should.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file or schema belongs to another program.
    #[error(
        "not a store of tickwheel-durable ({0}): choose another path or schema; nothing was written"
    )]
    Foreign(String),
    /// The file or schema was written by a newer version of this crate.
    #[error(
        "the store has schema {found}, and this version knows {known}: update tickwheel-durable; nothing was written"
    )]
    Newer {
        /// Its schema.
        found: u64,
        /// The newest schema that this version knows.
        known: u64,
    },
    /// The file or a table is damaged.
    #[error("the store is damaged: restore a copy ({0})")]
    Damaged(String),
    /// Another process, or another handle in this one, has the file open.
    #[error("the file is open elsewhere: close it there first")]
    InUse,
    /// The disk is full.
    #[error("the disk is full: make room; writing resumes by itself")]
    Full,
    /// The database refused a statement, with this message.
    #[error("the database refused: change its settings or rights ({0})")]
    Refused(String),
    /// Reading or writing failed.
    #[error("the store could not be read or written: {0}")]
    Io(#[source] Arc<std::io::Error>),
    /// An earlier commit failed, and the store has not recovered since; or the node is closed.
    #[error(
        "the store accepts no changes, since one failed or the node is closed: try again later"
    )]
    NotWriting,
}
