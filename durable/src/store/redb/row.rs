//! A stored job as bytes.
//!
//! ```text
//! row = format:u8, a head in the format of postcard, payload:bytes
//! ```
//! The job's number, the due time and whether the job is a dead letter are in the key of the row. A
//! fence of zero means that the job was not started.

use serde::{Deserialize, Serialize};

use crate::job::{JobId, State, StoredJob};
use crate::wall::WallTime;

const FORMAT: u8 = 1;

/// Where a job's row lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Among the waiting and running jobs, by due time.
    Live(WallTime),
    /// Among the dead letters, by the time of death.
    Dead(WallTime),
}

impl Place {
    pub(super) fn of(job: &StoredJob) -> Place {
        match job.state {
            State::Dead => Place::Dead(job.due),
            State::Waiting | State::Started { .. } => Place::Live(job.due),
        }
    }
}

/// Everything but the payload, which is long and needs no copy to be passed over.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Head<'a> {
    pub(super) version: u64,
    pub(super) fence: u64,
    pub(super) born: u64,
    attempts: u32,
    pub(super) kind: &'a str,
    key: Option<&'a str>,
    failure: Option<&'a str>,
    recurrence: Option<&'a str>,
    /// The length of the payload.
    length: u64,
}

/// What cannot be read.
#[derive(Debug)]
pub(super) enum Failure {
    /// The row of a job.
    Row(String),
    /// The file.
    File(redb::Error),
}

impl<E: Into<redb::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::File(error.into())
    }
}

pub(super) fn encode(job: &StoredJob) -> Result<Vec<u8>, Failure> {
    let recurrence = job.recurrence.as_ref().map(ToString::to_string);
    let head = Head {
        version: job.version,
        fence: match job.state {
            State::Started { fence } => fence,
            State::Waiting | State::Dead => 0,
        },
        born: job.id.born.as_unix_micros(),
        attempts: job.attempts,
        kind: &job.kind,
        key: job.key.as_deref(),
        failure: job.failure.as_deref(),
        recurrence: recurrence.as_deref(),
        length: job.payload.len() as u64,
    };
    let mut row = Vec::with_capacity(64 + job.kind.len() + job.payload.len());
    row.push(FORMAT);
    let mut row = postcard::to_extend(&head, row).map_err(|_| unreadable(job.id.number))?;
    row.extend(&job.payload);
    Ok(row)
}

/// Reads all but the payload, and returns that.
pub(super) fn head(number: u64, row: &[u8]) -> Result<(Head<'_>, &[u8]), Failure> {
    let (&FORMAT, head) = row.split_first().ok_or_else(|| unreadable(number))? else {
        return Err(unreadable(number));
    };
    postcard::take_from_bytes(head).map_err(|_| unreadable(number))
}

/// The same, of a row that cannot be read with the version zero, which no job has.
pub(super) fn head_of_any(number: u64, born: u64, row: &[u8]) -> Head<'_> {
    let unknown = Head { born, ..Head::default() };
    head(number, row).map_or(unknown, |(head, _)| head)
}

pub(super) fn decode(number: u64, place: Place, row: &[u8]) -> Result<StoredJob, Failure> {
    let (head, payload) = head(number, row)?;
    let recurrence = head.recurrence.map(str::parse).transpose();
    if payload.len() as u64 != head.length {
        return Err(unreadable(number));
    }
    let (due, state) = match (place, head.fence) {
        (Place::Live(due), 0) => (due, State::Waiting),
        (Place::Live(due), fence) => (due, State::Started { fence }),
        (Place::Dead(at), _) => (at, State::Dead),
    };
    Ok(StoredJob {
        id: JobId::new(WallTime::from_unix_micros(head.born), number),
        kind: head.kind.to_owned(),
        key: head.key.map(str::to_owned),
        due,
        version: head.version,
        attempts: head.attempts,
        state,
        recurrence: recurrence.map_err(|_| unreadable(number))?,
        failure: head.failure.map(str::to_owned),
        payload: payload.to_owned(),
    })
}

fn unreadable(number: u64) -> Failure {
    Failure::Row(format!("the row of job {number} cannot be read"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::recurrence::Recurrence;

    fn job(recurrence: Option<Recurrence>) -> StoredJob {
        StoredJob {
            id: JobId::new(WallTime::from_unix_micros(5), 7),
            kind: "reminder".to_owned(),
            key: Some("ada".to_owned()),
            due: WallTime::from_unix_micros(9),
            version: 3,
            attempts: 2,
            state: State::Started { fence: 4 },
            recurrence,
            failure: Some("no line".to_owned()),
            payload: vec![1, 2, 3],
        }
    }

    fn recurrences() -> [Option<Recurrence>; 3] {
        let every = Recurrence::Every { period: Duration::from_secs(1), first: WallTime::MAX };
        [None, Some(every), Some(Recurrence::Cron("* * * * * UTC".to_owned()))]
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        for job in recurrences().map(job) {
            let row = encode(&job).unwrap();
            assert_eq!(decode(7, Place::Live(job.due), &row).unwrap(), job);
        }
    }

    /// A row that was cut off, or of another format, is an error and never a panic.
    #[test]
    fn a_torn_row_is_unreadable() {
        for job in recurrences().map(job) {
            let row = encode(&job).unwrap();
            for length in 0..row.len() {
                assert!(decode(7, Place::Live(job.due), &row[..length]).is_err());
            }
            let mut newer = row;
            newer[0] = FORMAT + 1;
            assert!(decode(7, Place::Live(job.due), &newer).is_err());
        }
    }
}
