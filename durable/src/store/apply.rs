//! The changes, carried out on rows: what all stores that are ordered maps share.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::job::{IfTaken, JobId, State, StoredJob};
use crate::recurrence::Recurrence;
use crate::store::{Answer, Change, DueJob, NewJob, StoreError, Target, Then};
use crate::wall::WallTime;

/// Where a job's row lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Place {
    /// Among the waiting and running jobs, by due time.
    Live(WallTime),
    /// Among the dead letters, by the time of death.
    Dead(WallTime),
}

impl Place {
    pub(crate) fn of(job: &StoredJob) -> Place {
        match job.state {
            State::Dead => Place::Dead(job.due),
            State::Waiting | State::Started { .. } => Place::Live(job.due),
        }
    }

    /// Returns whether the id alone leads to a job in this place.
    pub(crate) fn is_birthplace(self, id: JobId) -> bool {
        self == Place::Live(id.born)
    }
}

/// Rows within a transaction.
pub(crate) trait Rows {
    /// Returns the fence of the last lease, or zero if that cannot hold any more.
    fn fence(&mut self) -> Result<u64, StoreError>;
    /// Returns a number that no job had before.
    fn next_number(&mut self) -> Result<u64, StoreError>;
    /// Returns whether the node with the lease has a handler for a kind.
    fn handles(&self, kind: &str) -> bool;
    fn get(&mut self, id: JobId) -> Result<Option<StoredJob>, StoreError>;
    /// Writes a row where the job belongs. An older row of the job must lie there or nowhere.
    fn put(&mut self, job: &StoredJob) -> Result<(), StoreError>;
    /// Removes the row of a job from where it lies.
    fn remove(&mut self, job: &StoredJob) -> Result<(), StoreError>;
    fn holder(&mut self, kind: &str, key: &str) -> Result<Option<JobId>, StoreError>;
    /// Sets or clears the job that has a key.
    fn set_holder(&mut self, kind: &str, key: &str, id: Option<JobId>) -> Result<(), StoreError>;
}

/// Carries out one change.
pub(crate) fn apply(rows: &mut impl Rows, change: &Change) -> Result<Answer, StoreError> {
    let fence = rows.fence()?;
    if change.fence().is_some_and(|needed| needed != fence) {
        return Ok(Answer::Fenced);
    }
    match change {
        Change::Insert(new) => insert(rows, new),
        Change::Cancel(target) => with_live(rows, target, |rows, job| cancel(rows, job, fence)),
        Change::Move { target, due } => with_live(rows, target, |rows, job| moved(rows, job, *due)),
        Change::Start { id, version, .. } => start(rows, fence, *id, *version),
        Change::Finish {
            id, version, then, ..
        } => finish(rows, *id, *version, then),
        Change::Revive { id, due } => with_dead(rows, *id, |rows, job| revive(rows, job, *due)),
        Change::Bury(id) => with_dead(rows, *id, |rows, job| {
            rows.remove(&job)?;
            Ok(Answer::Removed(Box::new(job)))
        }),
    }
}

fn insert(rows: &mut impl Rows, new: &NewJob) -> Result<Answer, StoreError> {
    let (kind, key) = new.name();
    let Some(key) = key else {
        return add(rows, new);
    };
    let Some(id) = rows.holder(kind, key)? else {
        let answer = add(rows, new)?;
        if let Answer::Placed(due) = answer {
            rows.set_holder(kind, key, Some(due.id))?;
        }
        return Ok(answer);
    };
    match new.if_taken() {
        IfTaken::Refuse => Ok(Answer::Taken(id)),
        IfTaken::Keep => Ok(Answer::Kept(id)),
        IfTaken::Replace => replace(rows, id, new, |_, job| job),
        IfTaken::Update => replace(rows, id, new, updated),
    }
}

fn add(rows: &mut impl Rows, new: &NewJob) -> Result<Answer, StoreError> {
    let id = JobId::new(new.due(), rows.next_number()?);
    place(rows, new.stored(id))
}

/// Gives a stored job everything of a new one. If it is running, it stays so: its outcome will
/// be stale.
fn replace(
    rows: &mut impl Rows,
    id: JobId,
    new: &NewJob,
    amend: impl FnOnce((&StoredJob, WallTime), StoredJob) -> StoredJob,
) -> Result<Answer, StoreError> {
    let Some(old) = rows.get(id)? else {
        return Err(StoreError::Damaged(format!(
            "job {id} has a key and no row"
        )));
    };
    rows.remove(&old)?;
    let job = StoredJob {
        version: old.version + 1,
        state: old.state,
        ..new.stored(id)
    };
    place(rows, amend((&old, new.now), job))
}

/// Returns a job that replaces `old`, with what an update keeps of that.
fn updated((old, now): (&StoredJob, WallTime), job: StoredJob) -> StoredJob {
    let period = |job: &StoredJob| match job.recurrence {
        Some(Recurrence::Every { period, .. }) => Some(period),
        _ => None,
    };
    let is_same =
        old.recurrence == job.recurrence || period(old).is_some() && period(old) == period(&job);
    match is_same {
        true => StoredJob {
            payload: job.payload,
            ..old.clone()
        },
        false if old.due <= now => StoredJob {
            due: old.due,
            ..job
        },
        false => job,
    }
}

/// A job that was started under an earlier lease is not running: its node has lost it.
fn cancel(rows: &mut impl Rows, job: StoredJob, fence: u64) -> Result<Answer, StoreError> {
    rows.remove(&job)?;
    free_key(rows, &job)?;
    Ok(match job.state == (State::Started { fence }) {
        true => Answer::RemovedRunning(job.id),
        false => Answer::Removed(Box::new(job)),
    })
}

fn moved(rows: &mut impl Rows, job: StoredJob, due: WallTime) -> Result<Answer, StoreError> {
    rows.remove(&job)?;
    let version = job.version + 1;
    place(
        rows,
        StoredJob {
            due,
            version,
            ..job
        },
    )
}

fn start(rows: &mut impl Rows, fence: u64, id: JobId, version: u64) -> Result<Answer, StoreError> {
    with_live(rows, &Target::Id(id), |rows, mut job| {
        let started = State::Started { fence };
        if job.version != version {
            // An earlier try of this change, whose answer was lost, may have started it.
            if job.state == started {
                job.state = State::Waiting;
                rows.put(&job)?;
            }
            return Ok(Answer::Stale(due(rows, &job)?));
        }
        if job.state != started {
            job.state = started;
            job.attempts += 1;
            rows.put(&job)?;
        }
        Ok(Answer::Started {
            job: Box::new(job),
            token: fence,
        })
    })
}

fn finish(
    rows: &mut impl Rows,
    id: JobId,
    version: u64,
    then: &Then,
) -> Result<Answer, StoreError> {
    with_live(rows, &Target::Id(id), |rows, mut job| {
        if job.version != version {
            // A repeated outcome finds no run, and must not forget a failure.
            if let State::Started { .. } = job.state {
                job.attempts = 0;
            }
            job.state = State::Waiting;
            rows.put(&job)?;
            return Ok(Answer::Stale(due(rows, &job)?));
        }
        rows.remove(&job)?;
        match then {
            Then::End => end(rows, job),
            Then::Again { due, failure } => again(rows, job, *due, failure.clone()),
            Then::Die { failure, at, next } => die(rows, job, failure, *at, *next),
        }
    })
}

fn end(rows: &mut impl Rows, job: StoredJob) -> Result<Answer, StoreError> {
    free_key(rows, &job)?;
    Ok(Answer::Removed(Box::new(job)))
}

fn again(
    rows: &mut impl Rows,
    job: StoredJob,
    due: WallTime,
    failure: Option<String>,
) -> Result<Answer, StoreError> {
    let attempts = if failure.is_some() { job.attempts } else { 0 };
    let next = StoredJob {
        due,
        attempts,
        failure,
        version: job.version + 1,
        state: State::Waiting,
        ..job
    };
    place(rows, next)
}

fn die(
    rows: &mut impl Rows,
    job: StoredJob,
    failure: &str,
    at: WallTime,
    next: Option<WallTime>,
) -> Result<Answer, StoreError> {
    let dead = StoredJob {
        due: at,
        version: job.version + 1,
        state: State::Dead,
        failure: Some(failure.to_owned()),
        ..job.clone()
    };
    let Some(next) = next else {
        free_key(rows, &job)?;
        rows.put(&dead)?;
        return Ok(Answer::Removed(Box::new(dead)));
    };
    let id = JobId::new(job.due, rows.next_number()?);
    let occurrence = StoredJob {
        id,
        key: None,
        recurrence: None,
        ..dead
    };
    rows.put(&occurrence)?;
    again(rows, job, next, None)
}

fn revive(rows: &mut impl Rows, job: StoredJob, due: WallTime) -> Result<Answer, StoreError> {
    if let Some(key) = &job.key {
        if let Some(holder) = rows.holder(&job.kind, key)? {
            return Ok(Answer::Taken(holder));
        }
        rows.set_holder(&job.kind, key, Some(job.id))?;
    }
    rows.remove(&job)?;
    again(rows, job, due, None)
}

fn with_live<R: Rows>(
    rows: &mut R,
    target: &Target,
    then: impl FnOnce(&mut R, StoredJob) -> Result<Answer, StoreError>,
) -> Result<Answer, StoreError> {
    let id = match target {
        Target::Id(id) => Some(*id),
        Target::Key { kind, key } => rows.holder(kind, key)?,
    };
    let job = id.map(|id| rows.get(id)).transpose()?.flatten();
    match job {
        Some(job) if job.state != State::Dead => then(rows, job),
        _ => Ok(Answer::Gone),
    }
}

fn with_dead<R: Rows>(
    rows: &mut R,
    id: JobId,
    then: impl FnOnce(&mut R, StoredJob) -> Result<Answer, StoreError>,
) -> Result<Answer, StoreError> {
    match rows.get(id)? {
        Some(job) if job.state == State::Dead => then(rows, job),
        _ => Ok(Answer::Gone),
    }
}

fn place(rows: &mut impl Rows, job: StoredJob) -> Result<Answer, StoreError> {
    rows.put(&job)?;
    Ok(Answer::Placed(due(rows, &job)?))
}

fn due(rows: &mut impl Rows, job: &StoredJob) -> Result<DueJob, StoreError> {
    Ok(DueJob {
        is_here: rows.handles(&job.kind),
        ..DueJob::of(job, rows.fence()?)
    })
}

/// The kinds of the node that has the lease: all before the first lease is taken.
#[derive(Clone, Default)]
pub(crate) struct Kinds(Option<Arc<[String]>>);

impl Kinds {
    pub(crate) fn of(kinds: &[String]) -> Kinds {
        Kinds(Some(kinds.into()))
    }

    pub(crate) fn has(&self, kind: &str) -> bool {
        let is = |kinds: &Arc<[String]>| kinds.iter().any(|one| one == kind);
        self.0.as_ref().is_none_or(is)
    }

    /// Notes a job of a kind that is not handled, and when the first one of it is due.
    pub(crate) fn note_unhandled(
        &self,
        found: &mut BTreeMap<String, WallTime>,
        kind: &str,
        due: WallTime,
    ) {
        if !self.has(kind) && !found.contains_key(kind) {
            found.insert(kind.to_owned(), due);
        }
    }
}

fn free_key(rows: &mut impl Rows, job: &StoredJob) -> Result<(), StoreError> {
    match &job.key {
        Some(key) => rows.set_holder(&job.kind, key, None),
        None => Ok(()),
    }
}
