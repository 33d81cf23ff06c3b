//! The changes, carried out on the tables.

use super::row::Failure;
use super::tables::{Writing, place_in};
use crate::job::{IfTaken, JobId, State, StoredJob};
use crate::recurrence::Recurrence;
use crate::store::{Answer, Change, DueJob, NewJob, Target, Then};
use crate::wall::WallTime;

type Result<T = Answer> = std::result::Result<T, Failure>;

impl Writing<'_> {
    /// Carries out a change. It reads all rows that it needs before it writes any.
    pub(super) fn apply(&mut self, change: &Change) -> Result {
        match self.try_apply(change) {
            Err(Failure::Row(how)) => Ok(Answer::Damaged(how)),
            answer => answer,
        }
    }

    fn try_apply(&mut self, change: &Change) -> Result {
        let fence = self.fence();
        if change.fence().is_some_and(|needed| needed != fence) {
            return Ok(Answer::Fenced);
        }
        let (found, is_dead) = match change {
            Change::Insert(new) => return self.insert(new),
            Change::Cancel(target) | Change::Move { target, .. } => (self.find(target)?, false),
            Change::Start { id, .. } | Change::Finish { id, .. } => (self.get(*id)?, false),
            Change::Revive { id, .. } | Change::Bury(id) => (self.get(*id)?, true),
            Change::Pause { kind, is_paused } => {
                self.set_paused(kind, *is_paused)?;
                return Ok(Answer::Set);
            }
        };
        match found {
            Some(job) if (job.state == State::Dead) == is_dead => self.change(job, change),
            _ => Ok(Answer::Gone),
        }
    }

    fn find(&mut self, target: &Target) -> Result<Option<StoredJob>> {
        let id = match target {
            Target::Id(id) => Some(*id),
            Target::Key { kind, key } => self.holder(kind, key)?,
        };
        id.map_or(Ok(None), |id| self.get(id))
    }

    fn change(&mut self, job: StoredJob, change: &Change) -> Result {
        match change {
            Change::Insert(_) | Change::Pause { .. } => unreachable!("{change:?} needs no job"),
            Change::Cancel(_) => self.cancel(job),
            Change::Move { due, .. } => {
                let version = job.version + 1;
                self.remove(&job)?;
                self.place(StoredJob { due: *due, version, ..job })
            }
            Change::Start { version, .. } => self.start(job, *version),
            Change::Finish { version, recurrence, .. }
                if job.version == *version && job.recurrence != *recurrence =>
            {
                Ok(Answer::Changed(Box::new(job)))
            }
            Change::Finish { version, then, .. } => self.finish(job, *version, then),
            Change::Revive { due, .. } => self.revive(job, *due),
            Change::Bury(_) => self.end(job),
        }
    }

    fn insert(&mut self, new: &NewJob) -> Result {
        let (kind, key) = new.name();
        let holder = match key {
            Some(key) => self.holder(kind, key)?,
            None => None,
        };
        let Some(id) = holder else {
            let id = JobId::new(new.due, self.next_number()?);
            self.set_key(kind, key, Some(id))?;
            return self.place(new.stored(id));
        };
        match new.if_taken {
            IfTaken::Refuse => Ok(Answer::Taken(id)),
            IfTaken::Keep => Ok(Answer::Kept(id)),
            IfTaken::Replace | IfTaken::Update => self.replace(id, new),
        }
    }

    /// Gives a stored job everything of a new one, or most in an update. If it is running, it stays
    /// so: its outcome will be stale.
    fn replace(&mut self, id: JobId, new: &NewJob) -> Result {
        let Some(old) = self.get(id)? else {
            return Err(Failure::Row(format!("job {id} has a key and no row")));
        };
        self.remove(&old)?;
        let job = StoredJob { version: old.version + 1, state: old.state, ..new.stored(id) };
        self.place(match new.if_taken {
            IfTaken::Update => updated(old, job, new.now),
            _ => job,
        })
    }

    /// A job that was started under an earlier lease is not running: its node has lost it.
    fn cancel(&mut self, job: StoredJob) -> Result {
        let fence = self.fence();
        let (id, is_running) = (job.id, job.state == State::Started { fence });
        let removed = self.end(job)?;
        Ok(if is_running { Answer::RemovedRunning(id) } else { removed })
    }

    fn start(&mut self, mut job: StoredJob, version: u64) -> Result {
        let fence = self.fence();
        let started = State::Started { fence };
        let is_moved = job.version != version;
        if is_moved && job.state == started {
            // An earlier try of this change, whose answer was lost, has started it.
            job.state = State::Waiting;
            self.put(&job)?;
        }
        if job.state != started {
            if self.is_paused(&job.kind)? {
                return Ok(Answer::Gone);
            }
            if is_moved {
                return Ok(Answer::Stale(self.due(&job)));
            }
            job.state = started;
            job.attempts += 1;
            self.put(&job)?;
        }
        let (job, token) = (Box::new(job), fence);
        Ok(Answer::Started { job, token })
    }

    fn finish(&mut self, mut job: StoredJob, version: u64, then: &Then) -> Result {
        if job.version != version {
            // A repeated outcome finds no run, and must not forget a failure.
            if let State::Started { .. } = job.state {
                job.attempts = 0;
            }
            job.state = State::Waiting;
            self.put(&job)?;
            return Ok(Answer::Stale(self.due(&job)));
        }
        match then {
            Then::End => self.end(job),
            Then::Again { due, failure } => self.again(job, *due, failure.clone()),
            Then::Die { failure, at, next } => self.die(job, failure, *at, *next),
        }
    }

    fn end(&mut self, job: StoredJob) -> Result {
        self.remove(&job)?;
        if job.state != State::Dead {
            self.set_key(&job.kind, job.key.as_deref(), None)?;
        }
        Ok(Answer::Removed(Box::new(job)))
    }

    fn again(&mut self, job: StoredJob, due: WallTime, failure: Option<String>) -> Result {
        self.remove(&job)?;
        self.place(StoredJob {
            due,
            attempts: if failure.is_some() { job.attempts } else { 0 },
            failure,
            version: job.version + 1,
            state: State::Waiting,
            ..job
        })
    }

    fn die(
        &mut self,
        job: StoredJob,
        failure: &str,
        at: WallTime,
        next: Option<WallTime>,
    ) -> Result {
        let dead = StoredJob {
            due: at,
            version: job.version + 1,
            state: State::Dead,
            failure: Some(failure.to_owned()),
            ..job.clone()
        };
        let Some(next) = next else {
            self.end(job)?;
            self.put(&dead)?;
            return Ok(Answer::Removed(Box::new(dead)));
        };
        let id = JobId::new(job.due, self.next_number()?);
        self.put(&StoredJob { id, key: None, recurrence: None, ..dead })?;
        self.again(job, next, None)
    }

    fn revive(&mut self, job: StoredJob, due: WallTime) -> Result {
        if let Some(key) = &job.key
            && let Some(holder) = self.holder(&job.kind, key)?
        {
            return Ok(Answer::Taken(holder));
        }
        self.set_key(&job.kind, job.key.as_deref(), Some(job.id))?;
        self.again(job, due, None)
    }

    fn place(&mut self, job: StoredJob) -> Result {
        self.put(&job)?;
        Ok(Answer::Placed(self.due(&job)))
    }

    fn due(&self, job: &StoredJob) -> DueJob {
        DueJob::of(job, self.fence(), place_in(self.kinds, &job.kind))
    }
}

/// Returns a job that replaces `old`, with what an update keeps of that.
fn updated(old: StoredJob, job: StoredJob, now: WallTime) -> StoredJob {
    let period = |job: &StoredJob| match job.recurrence {
        Some(Recurrence::Every { period, .. }) => Some(period),
        _ => None,
    };
    let is_same =
        old.recurrence == job.recurrence || period(&old).is_some() && period(&old) == period(&job);
    // The outcome of a run that knows the old payload must not end the job.
    let is_last_run = old.recurrence.is_none() && old.state != State::Waiting;
    let version = old.version + u64::from(is_last_run);
    if is_same {
        StoredJob { payload: job.payload, version, ..old }
    } else if old.attempts > 0 && job.recurrence.is_some() {
        // An occurrence that has begun ends with its own run and attempts.
        StoredJob { payload: job.payload, recurrence: job.recurrence, version, ..old }
    } else if old.due <= now && job.recurrence.is_some() {
        StoredJob { due: old.due, ..job }
    } else {
        job
    }
}
