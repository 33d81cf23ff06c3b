//! A stored job as bytes.
//!
//! ```text
//! row = format:u8 version:u64 fence:u64 born:u64 attempts:u32
//!       kind:text key:text? failure:text? recurrence payload:bytes
//! recurrence = 0 | 1 period:u64 first:u64 | 2 expression:text
//! text = length:u32 bytes        text? = 0 | 1 text
//! ```
//! Numbers are little-endian. The job's number, the due time and whether the job is a dead letter are in
//! the key of the row. A fence of zero means that the job was not started.

use std::time::Duration;

use crate::job::{JobId, State, StoredJob};
use crate::recurrence::Recurrence;
use crate::store::DueJob;
use crate::store::apply::Place;
use crate::wall::WallTime;

const FORMAT: u8 = 1;

/// A row that cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable;

pub(crate) fn encode(job: &StoredJob) -> Vec<u8> {
    let mut row = Vec::with_capacity(48 + job.kind.len() + job.payload.len());
    row.push(FORMAT);
    row.extend(job.version.to_le_bytes());
    row.extend(fence(job.state).to_le_bytes());
    row.extend(job.id.born.as_unix_micros().to_le_bytes());
    row.extend(job.attempts.to_le_bytes());
    put_bytes(&mut row, job.kind.as_bytes());
    put_optional(&mut row, job.key.as_deref());
    put_optional(&mut row, job.failure.as_deref());
    put_recurrence(&mut row, job.recurrence.as_ref());
    put_bytes(&mut row, &job.payload);
    row
}

pub(crate) fn decode(number: u64, place: Place, row: &[u8]) -> Result<StoredJob, Unreadable> {
    let mut row = Reader(row);
    if row.byte()? != FORMAT {
        return Err(Unreadable);
    }
    let version = row.number()?;
    let (due, state) = state(place, row.number()?);
    let job = StoredJob {
        id: row.id(number)?,
        due,
        version,
        state,
        attempts: row.short()?,
        kind: row.text()?,
        key: row.optional()?,
        failure: row.optional()?,
        recurrence: row.recurrence()?,
        payload: row.bytes()?.to_vec(),
    };
    if row.0.is_empty() {
        Ok(job)
    } else {
        Err(Unreadable)
    }
}

/// Reads the beginning of a row, for a job that is due at `due`, and its kind. `lease` is the fence
/// of the present lease.
pub(crate) fn head(
    number: u64,
    due: WallTime,
    row: &[u8],
    lease: u64,
) -> Result<(DueJob, &str), Unreadable> {
    let mut row = Reader(row);
    if row.byte()? != FORMAT {
        return Err(Unreadable);
    }
    let job = DueJob {
        version: row.number()?,
        is_interrupted: ![0, lease].contains(&row.number()?),
        id: row.id(number)?,
        due,
        is_here: true,
    };
    row.short()?;
    let kind = str::from_utf8(row.bytes()?).map_err(|_| Unreadable)?;
    Ok((job, kind))
}

/// Returns a recurrence alone as bytes, for stores that keep it in a column.
#[cfg(feature = "postgres")]
pub(crate) fn recurrence_to_bytes(recurrence: Option<Recurrence>) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_recurrence(&mut bytes, recurrence.as_ref());
    bytes
}

/// Reads the bytes of a recurrence.
#[cfg(feature = "postgres")]
pub(crate) fn recurrence_from_bytes(bytes: &[u8]) -> Result<Option<Recurrence>, Unreadable> {
    Reader(bytes).recurrence()
}

fn fence(state: State) -> u64 {
    match state {
        State::Started { fence } => fence,
        State::Waiting | State::Dead => 0,
    }
}

fn state(place: Place, fence: u64) -> (WallTime, State) {
    match (place, fence) {
        (Place::Live(due), 0) => (due, State::Waiting),
        (Place::Live(due), fence) => (due, State::Started { fence }),
        (Place::Dead(at), _) => (at, State::Dead),
    }
}

fn put_bytes(row: &mut Vec<u8>, bytes: &[u8]) {
    row.extend((bytes.len() as u32).to_le_bytes());
    row.extend(bytes);
}

fn put_optional(row: &mut Vec<u8>, text: Option<&str>) {
    row.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put_bytes(row, text.as_bytes());
    }
}

fn put_recurrence(row: &mut Vec<u8>, recurrence: Option<&Recurrence>) {
    match recurrence {
        None => row.push(0),
        Some(Recurrence::Every { period, first }) => {
            row.push(1);
            let micros = u64::try_from(period.as_micros()).unwrap_or(u64::MAX);
            row.extend(micros.to_le_bytes());
            row.extend(first.as_unix_micros().to_le_bytes());
        }
        Some(Recurrence::Cron(expression)) => {
            row.push(2);
            put_bytes(row, expression.as_bytes());
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Unreadable> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Unreadable)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        self.take(N)?.try_into().map_err(|_| Unreadable)
    }

    fn byte(&mut self) -> Result<u8, Unreadable> {
        Ok(self.array::<1>()?[0])
    }

    fn short(&mut self) -> Result<u32, Unreadable> {
        self.array().map(u32::from_le_bytes)
    }

    fn number(&mut self) -> Result<u64, Unreadable> {
        self.array().map(u64::from_le_bytes)
    }

    fn id(&mut self, number: u64) -> Result<JobId, Unreadable> {
        let born = self.number()?;
        Ok(JobId::new(WallTime::from_unix_micros(born), number))
    }

    fn bytes(&mut self) -> Result<&'a [u8], Unreadable> {
        let length = self.short()?;
        self.take(length as usize)
    }

    fn text(&mut self) -> Result<String, Unreadable> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| Unreadable)
    }

    fn optional(&mut self) -> Result<Option<String>, Unreadable> {
        match self.byte()? {
            0 => Ok(None),
            1 => self.text().map(Some),
            _ => Err(Unreadable),
        }
    }

    fn recurrence(&mut self) -> Result<Option<Recurrence>, Unreadable> {
        match self.byte()? {
            0 => Ok(None),
            1 => Ok(Some(Recurrence::Every {
                period: Duration::from_micros(self.number()?),
                first: WallTime::from_unix_micros(self.number()?),
            })),
            2 => Ok(Some(Recurrence::Cron(self.text()?))),
            _ => Err(Unreadable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let every = Recurrence::Every {
            period: Duration::from_secs(1),
            first: WallTime::from_unix_micros(5),
        };
        [
            None,
            Some(every),
            Some(Recurrence::Cron("* * * * * UTC".to_owned())),
        ]
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        for job in recurrences().map(job) {
            let row = encode(&job);
            assert_eq!(
                head(7, job.due, &row, 4).unwrap(),
                (DueJob::of(&job, 4), "reminder")
            );
            assert_eq!(decode(7, Place::Live(job.due), &row).unwrap(), job);
        }
    }

    /// A row that was cut off, or of another format, is an error and never a panic.
    #[test]
    fn a_torn_row_is_unreadable() {
        for job in recurrences().map(job) {
            let row = encode(&job);
            for length in 0..row.len() {
                assert!(decode(7, Place::Live(job.due), &row[..length]).is_err());
            }
            let mut newer = row;
            newer[0] = FORMAT + 1;
            assert!(decode(7, Place::Live(job.due), &newer).is_err());
        }
    }
}
