//! One look at a store.

use std::time::Duration;

use tickwheel_durable::store::List;
use tickwheel_durable::{Jobs, StoreError, StoredJob, WallTime};

use crate::look::for_each;
use crate::output::{plain, state};
use crate::time::from_now;

/// The largest number of jobs in each list.
const MOST_LISTED: usize = 500;
/// The largest number of overdue jobs that are counted. A backlog may have millions.
const MOST_OVERDUE: usize = 10_000;

/// What a look at a store shows: no payload, and a bounded number of jobs.
pub(super) struct Seen {
    pub(super) now: WallTime,
    pub(super) live: u64,
    pub(super) dead: u64,
    /// The number of overdue jobs, up to a bound.
    pub(super) overdue: usize,
    /// The time for which the first job has been due.
    pub(super) behind: Duration,
    /// The first jobs in the order of due times: when, state, kind, key, attempts.
    pub(super) next: Vec<[String; 5]>,
    /// The first dead letters: id, kind, key, attempts, reason.
    pub(super) letters: Vec<[String; 5]>,
}

impl Seen {
    /// Looks at a store. Reads overdue jobs and the first ones of each list.
    pub(super) fn of(jobs: &Jobs, now: WallTime) -> Result<Seen, StoreError> {
        let mut seen = Seen {
            now,
            live: jobs.count(List::Live)?,
            dead: jobs.count(List::Dead)?,
            overdue: 0,
            behind: Duration::ZERO,
            next: Vec::new(),
            letters: Vec::new(),
        };
        for_each(jobs, List::Live, None, |job| Ok::<_, StoreError>(seen.add(job)))?;
        for_each(jobs, List::Dead, None, |letter| {
            seen.letters.push(letter_row(letter));
            Ok::<_, StoreError>(seen.letters.len() < MOST_LISTED)
        })?;
        Ok(seen)
    }

    /// Adds a waiting or running job. Returns whether more are of interest.
    fn add(&mut self, job: &StoredJob) -> bool {
        self.behind = self.behind.max(self.now.since(job.due));
        let is_overdue = job.due <= self.now && self.overdue < MOST_OVERDUE;
        self.overdue += usize::from(is_overdue);
        let has_room = self.next.len() < MOST_LISTED;
        if has_room {
            self.next.push(row(job, self.now));
        }
        is_overdue || has_room
    }

    /// Returns the number of overdue jobs for people.
    pub(super) fn overdue_text(&self) -> String {
        match self.overdue {
            MOST_OVERDUE.. => format!("{MOST_OVERDUE}+"),
            jobs => jobs.to_string(),
        }
    }
}

fn row(job: &StoredJob, now: WallTime) -> [String; 5] {
    [
        from_now(job.due, now),
        state(job).to_owned(),
        plain(&job.kind),
        plain(job.key.as_deref().unwrap_or("-")),
        job.attempts.to_string(),
    ]
}

fn letter_row(job: &StoredJob) -> [String; 5] {
    [
        job.id.to_string(),
        plain(&job.kind),
        plain(job.key.as_deref().unwrap_or("-")),
        job.attempts.to_string(),
        plain(job.failure.as_deref().unwrap_or("-")),
    ]
}
