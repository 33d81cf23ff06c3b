//! The calls on stored jobs.

use std::sync::Arc;

use crate::commit::Reply;
use crate::inner::Inner;
use crate::job::{Job, JobId, StoredJob};
use crate::refusal::{Refused, check, scheduled};
use crate::status::Status;
use crate::store::{Answer, Change, List, Page, Result, StoreError, Target};
use crate::wall::WallTime;
use crate::window::Window;

/// The number of dead letters that are removed at once.
const BURIALS: usize = 256;

/// The stored jobs: what [`Durable`](crate::Durable) and a running
/// [`Attempt`](crate::Attempt) offer.
///
/// Every call that changes something returns once the change is durable. Threads that wait at
/// the same time share a commit.
#[derive(Clone)]
pub struct Jobs {
    pub(crate) inner: Arc<Inner>,
}

debug!(Jobs, this, status: this.status());

impl Jobs {
    /// Stores a job, and returns its id.
    ///
    /// # Errors
    /// Returns the job with the reason. Unless that is [`Refusal::Store`](crate::Refusal::Store),
    /// nothing has happened. With that reason the commit failed, and the job may be stored
    /// nevertheless: it then runs like every other. A key with [`IfTaken::Keep`](crate::IfTaken::Keep) lets
    /// the call be repeated.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel_durable::{Durable, IfTaken, Job, RedbStore};
    ///
    /// let jobs = Durable::builder().open(RedbStore::in_memory())?;
    /// let reminder = || Job::new("reminder", "call Ada").key("ada", IfTaken::Refuse);
    /// let id = jobs.schedule(reminder().after(Duration::from_secs(3_600)))?;
    /// let refused = jobs.schedule(reminder()).unwrap_err();
    /// assert_eq!(refused.job.into_payload(), b"call Ada");
    /// assert!(jobs.cancel(id)?.is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schedule(&self, job: Job) -> Result<JobId, Refused> {
        let mut answers = self.schedule_many([job]);
        answers.remove(0)
    }

    /// Stores jobs in one commit, and returns the answer of [`schedule`](Jobs::schedule) for
    /// each. A refused job does not affect the others.
    pub fn schedule_many(
        &self,
        jobs: impl IntoIterator<Item = Job>,
    ) -> Vec<Result<JobId, Refused>> {
        let now = self.inner.node.now();
        let has_room = self.inner.node.store.has_room();
        let mut changes = Vec::new();
        let checked: Vec<Option<Refused>> = jobs
            .into_iter()
            .map(|job| match check(job, now, has_room) {
                Ok(new) => {
                    changes.push(Change::Insert(new));
                    None
                }
                Err(refused) => Some(refused),
            })
            .collect();
        let mut answers = self.insert(changes).into_iter();
        let answer = |refused: Option<Refused>| match refused {
            Some(refused) => Some(Err(refused)),
            None => answers.next(),
        };
        checked.into_iter().filter_map(answer).collect()
    }

    fn insert(&self, changes: Vec<Change>) -> Vec<Result<JobId, Refused>> {
        if changes.is_empty() {
            return Vec::new();
        }
        let (answers, changes) = self.commit(changes);
        let answers: Vec<Result<Answer>> = match answers {
            Ok(answers) => answers.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error); changes.len()],
        };
        let each = answers.into_iter().zip(changes);
        each.map(|(answer, change)| scheduled(answer, change)).collect()
    }

    /// Cancels a waiting or running job, by its id or by its kind and key.
    ///
    /// # Errors
    /// Returns the reason why it is unknown whether the job is cancelled.
    ///
    /// ```
    /// # use tickwheel_durable::{Cancelled, Durable, IfTaken, Job, RedbStore};
    /// # let jobs = Durable::builder().open(RedbStore::in_memory())?;
    /// jobs.schedule(Job::new("reminder", "call Ada").key("ada", IfTaken::Refuse))?;
    /// assert!(jobs.cancel(("reminder", "ada"))?.is_cancelled());
    /// assert_eq!(jobs.cancel(("reminder", "ada"))?, Cancelled::Gone);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel(&self, target: impl Into<Target>) -> Result<Cancelled> {
        Ok(match self.change(Change::Cancel(target.into()))? {
            Answer::Removed(job) => Cancelled::Cancelled(job),
            Answer::RemovedRunning(id) => Cancelled::Running(id),
            _ => Cancelled::Gone,
        })
    }

    /// Sets the due time of a waiting or running job. A running job runs again then, whatever
    /// its handler returns. Returns `false` if there is no such job.
    ///
    /// A recurring job keeps the phase of its later occurrences.
    ///
    /// # Errors
    /// Returns the reason why it is unknown whether the job was moved.
    pub fn reschedule(&self, target: impl Into<Target>, due: impl Into<WallTime>) -> Result<bool> {
        let (target, due) = (target.into(), due.into());
        let answer = self.change(Change::Move { target, due })?;
        Ok(matches!(answer, Answer::Placed(_)))
    }

    /// Makes a dead letter due again, with all its attempts.
    ///
    /// # Errors
    /// Returns the reason why it is unknown whether the job was revived.
    pub fn revive(&self, id: JobId, due: impl Into<WallTime>) -> Result<Revived> {
        let due = due.into();
        Ok(match self.change(Change::Revive { id, due })? {
            Answer::Placed(_) => Revived::Revived,
            Answer::Taken(holder) => Revived::KeyTaken(holder),
            _ => Revived::Gone,
        })
    }

    /// Removes a dead letter, and returns it.
    ///
    /// # Errors
    /// Returns the reason why it is unknown whether the dead letter was removed.
    pub fn bury(&self, id: JobId) -> Result<Option<StoredJob>> {
        Ok(match self.change(Change::Bury(id))? {
            Answer::Removed(job) => Some(*job),
            _ => None,
        })
    }

    /// Removes all dead letters of a kind, and returns how many these were.
    ///
    /// # Errors
    /// Returns the reason why it is unknown whether all were removed.
    pub fn bury_kind(&self, kind: &str) -> Result<u64> {
        let (mut buried, mut last) = (0, None);
        loop {
            let dead = self.list_kind(List::Dead, kind, last.as_ref(), BURIALS)?;
            let changes = dead.iter().map(|job| Change::Bury(job.id)).collect();
            last = dead.into_iter().last();
            if last.is_none() {
                return Ok(buried);
            }
            for answer in self.commit(changes).0? {
                match answer {
                    Answer::Damaged(how) => return Err(StoreError::Damaged(how)),
                    answer => buried += u64::from(matches!(answer, Answer::Removed(_))),
                }
            }
        }
    }

    /// Lets no more jobs of a kind start, on all nodes, until it is [resumed](Jobs::resume). Those that
    /// run go on, and those that were started [ahead](crate::Builder::ahead) still run. Jobs may be
    /// scheduled meanwhile. The store keeps this.
    ///
    /// # Errors
    /// Returns the reason why it is unknown whether the kind is paused.
    ///
    /// ```
    /// # use tickwheel_durable::{Durable, RedbStore};
    /// # let jobs = Durable::builder().open(RedbStore::in_memory())?;
    /// jobs.pause("mail")?;
    /// assert_eq!(jobs.paused()?, ["mail"]);
    /// jobs.resume("mail")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pause(&self, kind: &str) -> Result<()> {
        self.set_paused(kind, true)
    }

    /// Lets jobs of a kind that was [paused](Jobs::pause) start again.
    ///
    /// # Errors
    /// Returns the reason why it is unknown whether the kind is paused.
    pub fn resume(&self, kind: &str) -> Result<()> {
        self.set_paused(kind, false)
    }

    fn set_paused(&self, kind: &str, is_paused: bool) -> Result<()> {
        let kind = kind.to_owned();
        self.change(Change::Pause { kind, is_paused }).map(drop)
    }

    /// Returns the kinds that are [paused](Jobs::pause).
    ///
    /// # Errors
    /// Returns the reason why the store could not be read.
    pub fn paused(&self) -> Result<Vec<String>> {
        self.inner.node.store.paused()
    }

    /// Returns a job, dead letters included.
    ///
    /// # Errors
    /// Returns the reason why the store could not be read.
    pub fn get(&self, id: JobId) -> Result<Option<StoredJob>> {
        self.inner.node.store.get(id)
    }

    /// Returns the waiting or running job of this kind that has this key.
    ///
    /// # Errors
    /// Returns the reason why the store could not be read.
    pub fn find(&self, kind: &str, key: &str) -> Result<Option<StoredJob>> {
        self.inner.node.store.find(kind, key)
    }

    /// Returns up to `most` jobs of a list that stand behind `after`, or the first ones. There are
    /// fewer if their payloads have 16 MiB together, so only an empty answer is the end.
    ///
    /// # Errors
    /// Returns the reason why the store could not be read.
    ///
    /// ```
    /// # use tickwheel_durable::store::List;
    /// # use tickwheel_durable::{Durable, Job, RedbStore};
    /// # let jobs = Durable::builder().open(RedbStore::in_memory())?;
    /// let mut last = None;
    /// loop {
    ///     let page = jobs.list(List::Dead, last.as_ref(), 100)?;
    ///     for dead in &page {
    ///         println!("{} {}: {:?}", dead.id, dead.kind, dead.failure);
    ///     }
    ///     last = page.last().cloned();
    ///     if last.is_none() {
    ///         break;
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list(
        &self,
        list: List,
        after: Option<&StoredJob>,
        most: usize,
    ) -> Result<Vec<StoredJob>> {
        let page = Page::new(list, after, most);
        self.inner.node.store.list(page)
    }

    /// Returns those of a kind, like [`list`](Jobs::list).
    ///
    /// # Errors
    /// Returns the reason why the store could not be read.
    pub fn list_kind(
        &self,
        list: List,
        kind: &str,
        after: Option<&StoredJob>,
        most: usize,
    ) -> Result<Vec<StoredJob>> {
        let (page, kind) = (Page::new(list, after, most), Some(kind));
        self.inner.node.store.list(Page { kind, ..page })
    }

    /// Returns the number of jobs in a list.
    ///
    /// # Errors
    /// Returns the reason why the store could not be read.
    pub fn count(&self, list: List) -> Result<u64> {
        self.inner.node.store.count(list)
    }

    /// Returns the kinds with waiting jobs that no node handles, and when the first job of each is
    /// due. On a file, those that this node does not handle: that reads all jobs, about half a second
    /// for a million. On a database it reads the first job of each shard.
    ///
    /// # Errors
    /// Returns the reason why the store could not be read.
    pub fn unhandled(&self) -> Result<Vec<(String, WallTime)>> {
        let mut unhandled = self.inner.node.store.unhandled()?;
        // The store knows those of this node once that has had a lease.
        unhandled.retain(|(kind, _)| !self.inner.node.handles(kind));
        Ok(unhandled)
    }

    /// Returns the state of the node.
    #[must_use]
    pub fn status(&self) -> Status {
        let node = &self.inner.node;
        let failure = self.inner.commits.failure().or_else(|| node.failure());
        let holds_lease = node.lease().is_some();
        let counts = node.observer.counts.lock().clone();
        let (now, windows) = (node.now(), node.windows.lock());
        let horizons = windows.iter().map(Window::horizon);
        let behind = windows.iter().map(|window| window.behind(now));
        Status {
            owner: node.observer.owner.to_owned(),
            delivers: node.delivers(),
            armed: windows.iter().map(Window::armed).sum(),
            running: windows.iter().map(Window::running).sum(),
            horizon: horizons.min().unwrap_or_default(),
            behind: behind.max().unwrap_or_default(),
            holds_lease,
            set_aside: windows.iter().map(Window::set_aside).sum(),
            late: node.late(),
            clock_differs: node.clock_differs(),
            failure,
            counts,
        }
    }

    /// Compares the window with the wall clock. The node does so by itself, at once on Linux
    /// and with the next load elsewhere; call this after a step of a clock of your own.
    pub fn clock_stepped(&self) {
        self.inner.call_keeper();
    }

    fn change(&self, change: Change) -> Result<Answer> {
        match self.commit(vec![change]).0?.remove(0) {
            Answer::Damaged(how) => Err(StoreError::Damaged(how)),
            answer => Ok(answer),
        }
    }

    /// The committer answers every request.
    fn commit(&self, changes: Vec<Change>) -> Reply {
        let reply = self.inner.request(changes).recv();
        reply.unwrap_or((Err(StoreError::NotWriting), Vec::new()))
    }
}

/// The answer of [`Jobs::cancel`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cancelled {
    /// The job was waiting, and no handler starts any more.
    Cancelled(Box<StoredJob>),
    /// The handler is running, or will, because the job was started [ahead](crate::Builder::ahead).
    /// It is not stopped, but the job does not run again. Its key is free, so a new job with the key
    /// may run beside it.
    Running(JobId),
    /// There is no such job: it has ended, or is a dead letter.
    Gone,
}

impl Cancelled {
    /// Returns whether the job was cancelled before it ran.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Cancelled::Cancelled(_))
    }
}

/// The answer of [`Jobs::revive`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Revived {
    /// The job waits for its new due time.
    Revived,
    /// This job has its key meanwhile.
    KeyTaken(JobId),
    /// There is no such dead letter.
    Gone,
}
