//! A job as its caller describes it, and as a store keeps it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::recurrence::{InvalidCron, Recurrence, check_cron};
use crate::wall::WallTime;

/// A job to schedule: the handler's name, bytes for it, and the time at which it is due.
///
/// A job is due at once unless [`at`](Job::at) or [`after`](Job::after) says otherwise.
///
/// ```
/// use std::time::Duration;
/// use tickwheel_durable::{IfTaken, Job};
///
/// let reminder = Job::new("reminder", b"call Ada".to_vec())
///     .after(Duration::from_secs(7 * 24 * 3_600))
///     .key("ada", IfTaken::Replace);
/// let report = Job::new("report", Vec::new()).cron("0 6 * * MON Europe/Berlin")?;
/// # Ok::<(), tickwheel_durable::InvalidCron>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    pub(crate) kind: String,
    pub(crate) key: Option<String>,
    pub(crate) if_taken: IfTaken,
    pub(crate) due: Due,
    /// Whose phase is known once a clock was read.
    pub(crate) repeat: Option<Recurrence>,
    pub(crate) payload: Vec<u8>,
}

/// The due time of a job before a clock was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    /// At once, or at the first occurrence of the recurrence.
    Unset,
    After(Duration),
    At(WallTime),
}

/// Decides what happens if a waiting or running job of the same kind has the key already.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IfTaken {
    /// Refuses the new job.
    #[default]
    Refuse,
    /// Keeps the stored job, and drops the new one.
    Keep,
    /// Gives the stored job the payload, due time and recurrence of the new one. It keeps its
    /// id. If it is running, it runs again when it is due.
    Replace,
    /// Gives the stored job the payload and the recurrence of the new one. If the recurrence is the
    /// same, it stays due when it was. If not, it is due when the new one says; but if that recurs, an
    /// occurrence that is overdue stays so, and runs, and one that has begun ends with its own run and
    /// attempts. A job that does not recur and is running runs again, with the new payload.
    Update,
}

impl Job {
    /// Returns a job for the handler of `kind`, due at once.
    #[must_use]
    pub fn new(kind: impl Into<String>, payload: impl Into<Vec<u8>>) -> Job {
        Job {
            kind: kind.into(),
            key: None,
            if_taken: IfTaken::Refuse,
            due: Due::Unset,
            repeat: None,
            payload: payload.into(),
        }
    }

    /// Returns a job whose payload is a value as JSON; see [`Attempt::json`](crate::Attempt::json).
    ///
    /// # Errors
    /// Returns an error if the value cannot be written as JSON.
    ///
    /// ```
    /// use tickwheel_durable::{Durable, Job, RedbStore};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Mail {
    ///     to: String,
    /// }
    ///
    /// let builder = Durable::builder()
    ///     .handler("mail", |attempt| attempt.json().map(|mail: Mail| println!("{}", mail.to)));
    /// let mail = Mail { to: "ada@example.org".to_owned() };
    /// builder.open(RedbStore::in_memory())?.schedule(Job::json("mail", &mail)?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "serde")]
    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    pub fn json(
        kind: impl Into<String>,
        payload: &impl serde::Serialize,
    ) -> Result<Job, serde_json::Error> {
        serde_json::to_vec(payload).map(|payload| Job::new(kind, payload))
    }

    /// Sets the due time.
    #[must_use]
    pub fn at(mut self, due: impl Into<WallTime>) -> Job {
        self.due = Due::At(due.into());
        self
    }

    /// Sets the due time to a delay after the call that schedules the job.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Job {
        self.due = Due::After(delay);
        self
    }

    /// Gives the job a key, which at most one waiting or running job of a kind has.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>, if_taken: IfTaken) -> Job {
        self.key = Some(key.into());
        self.if_taken = if_taken;
        self
    }

    /// Repeats the job every `period`, in whole microseconds and at least one, from its due time on.
    /// Occurrences that are missed, because no node runs, are made up for by one run.
    ///
    /// A recurring job has a [key](Job::key): if none is set, its kind, with [`IfTaken::Update`]. So
    /// a service may schedule it at each start. Give several of a kind keys of their own.
    #[must_use]
    pub fn every(mut self, period: Duration) -> Job {
        let micros = u64::try_from(period.as_micros()).unwrap_or(u64::MAX);
        let (period, first) = (Duration::from_micros(micros.max(1)), WallTime::default());
        self.repeat = Some(Recurrence::Every { period, first });
        self
    }

    /// Repeats the job at the times of a cron expression: five fields and a time zone. The
    /// first run is at the first such time after the call that schedules the job, unless a due
    /// time is set. As to its key and to missed occurrences, see [`every`](Job::every).
    ///
    /// On days on which the clocks change, a fixed local time counts once: one that is left out
    /// comes right after the change, and one that comes twice counts the first time. A pattern
    /// with a wildcard, a step, a list or a range for the minute or the hour counts each time that
    /// passes: one that is left out has no run, and one that comes twice has two. In the place of a
    /// list such as `0 2,14`, use a job for each time, with keys of their own.
    ///
    /// # Errors
    /// Returns [`InvalidCron`] if the expression cannot be understood, or is longer than 1,024
    /// bytes.
    pub fn cron(mut self, expression: impl Into<String>) -> Result<Job, InvalidCron> {
        let expression = expression.into();
        check_cron(&expression)?;
        self.repeat = Some(Recurrence::Cron(expression));
        Ok(self)
    }

    /// Returns the bytes, for a job that was refused.
    #[must_use]
    pub fn into_payload(self) -> Vec<u8> {
        self.payload
    }

    /// Gives a recurring job a key, unless it has one.
    pub(crate) fn keyed(self) -> Job {
        let kind = self.kind.clone();
        if self.repeat.is_some() && self.key.is_none() {
            self.key(kind, IfTaken::Update)
        } else {
            self
        }
    }

    /// Returns the delay after which it is due, if it names no point of time.
    #[cfg(feature = "postgres")]
    pub(crate) fn delay(&self) -> Option<Duration> {
        match (&self.due, &self.repeat) {
            (Due::Unset, None) => Some(Duration::ZERO),
            (Due::After(delay), None) => Some(*delay),
            _ => None,
        }
    }

    /// Returns the due time as of `now`, or `None` if the recurrence has no occurrence.
    pub(crate) fn resolve(&self, now: WallTime) -> Option<WallTime> {
        let first = match &self.repeat {
            Some(cron @ Recurrence::Cron(_)) => cron.next_after(now)?,
            _ => now,
        };
        Some(match self.due {
            Due::At(due) => due,
            Due::After(delay) => now + delay,
            Due::Unset => first,
        })
    }

    pub(crate) fn recurrence(&self, due: WallTime) -> Option<Recurrence> {
        let mut recurrence = self.repeat.clone();
        if let Some(Recurrence::Every { first, .. }) = &mut recurrence {
            *first = due;
        }
        recurrence
    }
}

/// The id of a job: the due time with which it was created, and its number. It never reaches a
/// later job.
///
/// ```
/// use tickwheel_durable::JobId;
///
/// let id: JobId = "6460a7c1bd000-2a".parse()?;
/// assert_eq!((id.number(), id.to_string().as_str()), (42, "6460a7c1bd000-2a"));
/// # Ok::<(), tickwheel_durable::InvalidJobId>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// The due time with which the job was created, where most jobs are found.
    pub(crate) born: WallTime,
    pub(crate) number: u64,
}

impl JobId {
    /// Returns the id of the job with this number that was created with this due time, for
    /// stores.
    #[must_use]
    pub fn new(born: WallTime, number: u64) -> JobId {
        JobId { born, number }
    }

    /// Returns the due time with which the job was created.
    #[must_use]
    pub fn born(self) -> WallTime {
        self.born
    }

    /// Returns the number, which is unique in its store.
    #[must_use]
    pub fn number(self) -> u64 {
        self.number
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.born.as_unix_micros(), self.number)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not an id.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not an id: pass the text of a `JobId`, such as 6460a7c1bd000-2a")]
pub struct InvalidJobId;

impl FromStr for JobId {
    type Err = InvalidJobId;

    fn from_str(text: &str) -> Result<JobId, InvalidJobId> {
        let hex = |digits| u64::from_str_radix(digits, 16).map_err(|_| InvalidJobId);
        // `from_str_radix` takes signs.
        let parts = text.split_once('-').filter(|_| !text.contains('+'));
        let (born, number) = parts.ok_or(InvalidJobId)?;
        Ok(JobId::new(WallTime::from_unix_micros(hex(born)?), hex(number)?))
    }
}

/// A job as a store keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredJob {
    /// The id.
    pub id: JobId,
    /// The name of the handler.
    pub kind: String,
    /// The key, if the job has one.
    pub key: Option<String>,
    /// The time at which the job is due, or at which a dead letter died.
    pub due: WallTime,
    /// A number that rises with each change of the due time, and of what a run that goes on does
    /// not know.
    pub version: u64,
    /// The attempts that were started since the last success.
    pub attempts: u32,
    /// The state.
    pub state: State,
    /// The recurrence, if the job has one.
    pub recurrence: Option<Recurrence>,
    /// The message of the last failure.
    pub failure: Option<String>,
    /// The bytes for the handler.
    pub payload: Vec<u8>,
}

/// The state of a stored job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Waits for its due time.
    Waiting,
    /// Was started under the lease with this fence. If that lease is over, the job waits to be
    /// started again.
    Started {
        /// The fence of the lease.
        fence: u64,
    },
    /// A dead letter: the attempts are used up.
    Dead,
}
