//! The tables of a file, read and written.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use redb::{
    Database, Error, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata,
    Table, TableDefinition, WriteTransaction,
};

use crate::job::{JobId, StoredJob};
use crate::store::apply::{Kinds, Place, Rows};
use crate::store::row::{decode, encode, head};
use crate::store::{Due, DueJob, List, StoreError};
use crate::wall::WallTime;

type At = (u64, u64);
type Listed = TableDefinition<'static, At, &'static [u8]>;

const LIVE: Listed = TableDefinition::new("live");
const DEAD: Listed = TableDefinition::new("dead");
const PLACES: TableDefinition<u64, (u8, u64)> = TableDefinition::new("places");
const KEYS: TableDefinition<&[u8], At> = TableDefinition::new("keys");
pub(super) const META: TableDefinition<&str, u64> = TableDefinition::new("tickwheel-durable");

pub(super) const SCHEMA: &str = "schema";
const FENCE: &str = "fence";
const NUMBERS: &str = "numbers";
/// Numbers are reserved so many at a time, so that few commits touch the table `meta`. A
/// crash leaves a gap.
const NUMBERS_PER_BLOCK: u64 = 1_000;

/// What a commit knows without reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    pub(super) fence: u64,
    /// Whether the fence was granted in this opening, and not by a process that has ended.
    pub(super) is_granted: bool,
    /// Which file it is, where the system says so.
    place: Option<(u64, u64)>,
    next_number: u64,
    /// The first number that is not reserved.
    reserved: u64,
}

impl Session {
    /// Returns whether a file with these numbers is an older one than that of `self`.
    pub(super) fn is_ahead_of(&self, other: &Session) -> bool {
        self.fence > other.fence || self.reserved > other.reserved
    }

    /// Checks that the file still has its name. What is written to one that was deleted is lost.
    pub(super) fn check_place(&self, path: &Path) -> Result<(), StoreError> {
        match place_of_file(path) == self.place {
            true => Ok(()),
            false => Err(StoreError::Damaged(
                "the file is gone, or another has its name".to_owned(),
            )),
        }
    }

    pub(super) fn load(database: &Database, path: Option<&Path>) -> Result<Session, StoreError> {
        let transaction = database.begin_read().map_err(fail)?;
        let meta = transaction.open_table(META).map_err(fail)?;
        let read = |name| match meta.get(name) {
            Ok(value) => Ok(value.map_or(0, |value| value.value())),
            Err(error) => Err(fail(error)),
        };
        let reserved = read(NUMBERS)?;
        Ok(Session {
            fence: read(FENCE)?,
            is_granted: false,
            place: path.and_then(place_of_file),
            next_number: reserved,
            reserved,
        })
    }
}

#[cfg(unix)]
fn place_of_file(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    let file = std::fs::metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

/// Elsewhere a file that is open cannot be deleted.
#[cfg(not(unix))]
fn place_of_file(_: &Path) -> Option<(u64, u64)> {
    None
}

/// Creates the tables in an empty file.
pub(super) fn create_tables(database: &Database, schema: u64) -> Result<(), StoreError> {
    let transaction = database.begin_write().map_err(fail)?;
    transaction.open_table(LIVE).map_err(fail)?;
    transaction.open_table(DEAD).map_err(fail)?;
    transaction.open_table(PLACES).map_err(fail)?;
    transaction.open_table(KEYS).map_err(fail)?;
    let mut meta = transaction.open_table(META).map_err(fail)?;
    meta.insert(SCHEMA, schema).map_err(fail)?;
    drop(meta);
    transaction.commit().map_err(fail)
}

/// The tables in a transaction that writes.
pub(super) struct Writing<'t> {
    live: Table<'t, At, &'static [u8]>,
    places: Table<'t, u64, (u8, u64)>,
    transaction: &'t WriteTransaction,
    session: &'t mut Session,
    kinds: &'t Kinds,
}

impl<'t> Writing<'t> {
    pub(super) fn new(
        transaction: &'t WriteTransaction,
        session: &'t mut Session,
        kinds: &'t Kinds,
    ) -> Result<Writing<'t>, StoreError> {
        Ok(Writing {
            live: transaction.open_table(LIVE).map_err(fail)?,
            places: transaction.open_table(PLACES).map_err(fail)?,
            transaction,
            session,
            kinds,
        })
    }

    pub(super) fn raise_fence(&mut self) -> Result<u64, StoreError> {
        self.session.fence += 1;
        self.session.is_granted = true;
        self.set_meta(FENCE, self.session.fence)?;
        Ok(self.session.fence)
    }

    fn set_meta(&self, name: &str, value: u64) -> Result<(), StoreError> {
        let mut meta = self.transaction.open_table(META).map_err(fail)?;
        meta.insert(name, value).map_err(fail)?;
        Ok(())
    }

    fn set_place(&mut self, id: JobId, place: Place) -> Result<(), StoreError> {
        match place.is_birthplace(id) {
            true => self.places.remove(id.number),
            false => self.places.insert(id.number, place_row(place)),
        }
        .map_err(fail)?;
        Ok(())
    }

    fn write_row(&mut self, place: Place, number: u64, row: &[u8]) -> Result<(), StoreError> {
        match place {
            Place::Live(due) => {
                self.live.insert(at(due, number), row).map_err(fail)?;
            }
            Place::Dead(died) => {
                let mut dead = self.transaction.open_table(DEAD).map_err(fail)?;
                dead.insert(at(died, number), row).map_err(fail)?;
            }
        }
        Ok(())
    }
}

impl Rows for Writing<'_> {
    fn handles(&self, kind: &str) -> bool {
        self.kinds.has(kind)
    }

    /// Zero, which no job has, before the first grant in this opening.
    fn fence(&mut self) -> Result<u64, StoreError> {
        Ok(match self.session.is_granted {
            true => self.session.fence,
            false => 0,
        })
    }

    fn next_number(&mut self) -> Result<u64, StoreError> {
        if self.session.next_number == self.session.reserved {
            self.session.reserved += NUMBERS_PER_BLOCK;
            self.set_meta(NUMBERS, self.session.reserved)?;
        }
        self.session.next_number += 1;
        Ok(self.session.next_number)
    }

    fn get(&mut self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        let place = place_of(&self.places, id)?;
        match place {
            Place::Live(_) => row(&self.live, place, id),
            Place::Dead(_) => {
                let dead = self.transaction.open_table(DEAD).map_err(fail)?;
                row(&dead, place, id)
            }
        }
    }

    fn put(&mut self, job: &StoredJob) -> Result<(), StoreError> {
        let place = Place::of(job);
        self.set_place(job.id, place)?;
        self.write_row(place, job.id.number, &encode(job))
    }

    fn remove(&mut self, job: &StoredJob) -> Result<(), StoreError> {
        let place = Place::of(job);
        self.set_place(job.id, Place::Live(job.id.born))?;
        match place {
            Place::Live(due) => {
                self.live.remove(at(due, job.id.number)).map_err(fail)?;
            }
            Place::Dead(died) => {
                let mut dead = self.transaction.open_table(DEAD).map_err(fail)?;
                dead.remove(at(died, job.id.number)).map_err(fail)?;
            }
        }
        Ok(())
    }

    fn holder(&mut self, kind: &str, key: &str) -> Result<Option<JobId>, StoreError> {
        let keys = self.transaction.open_table(KEYS).map_err(fail)?;
        holder(&keys, kind, key)
    }

    fn set_holder(&mut self, kind: &str, key: &str, id: Option<JobId>) -> Result<(), StoreError> {
        let mut keys = self.transaction.open_table(KEYS).map_err(fail)?;
        let name = name(kind, key);
        match id {
            Some(id) => keys.insert(name.as_slice(), at(id.born, id.number)),
            None => keys.remove(name.as_slice()),
        }
        .map_err(fail)?;
        Ok(())
    }
}

/// The tables in a transaction that reads.
pub(super) struct Reading(ReadTransaction);

impl Reading {
    pub(super) fn new(transaction: ReadTransaction) -> Result<Reading, StoreError> {
        Ok(Reading(transaction))
    }

    pub(super) fn due_before(
        &self,
        before: WallTime,
        most: usize,
        kinds: &Kinds,
        fence: u64,
    ) -> Result<Due, StoreError> {
        let mut jobs = Vec::new();
        self.each_head(before, fence, |job, kind| {
            if kind.is_none_or(|kind| kinds.has(kind)) {
                jobs.push(job);
            }
            jobs.len() < most
        })?;
        Ok(Due::first(jobs, most))
    }

    pub(super) fn unhandled(&self, kinds: &Kinds) -> Result<Vec<(String, WallTime)>, StoreError> {
        let mut found = BTreeMap::new();
        self.each_head(WallTime::MAX, 0, |job, kind| {
            kinds.note_unhandled(&mut found, kind.unwrap_or_default(), job.due);
            true
        })?;
        Ok(found.into_iter().collect())
    }

    /// Passes the jobs that are due before `before`, and their kinds if they can be read, until
    /// `each` returns `false`.
    fn each_head(
        &self,
        before: WallTime,
        fence: u64,
        mut each: impl FnMut(DueJob, Option<&str>) -> bool,
    ) -> Result<(), StoreError> {
        let live = self.0.open_table(LIVE).map_err(fail)?;
        for entry in live.range(..at(before, 0)).map_err(fail)? {
            let (key, row) = entry.map_err(fail)?;
            let (due, number) = key.value();
            let due = WallTime::from_unix_micros(due);
            let goes_on = match head(number, due, row.value(), fence) {
                Ok((job, kind)) => each(job, Some(kind)),
                Err(_) => each(unknown(number, due), None),
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        let places = self.0.open_table(PLACES).map_err(fail)?;
        let place = place_of(&places, id)?;
        let table = match place {
            Place::Live(_) => LIVE,
            Place::Dead(_) => DEAD,
        };
        row(&self.0.open_table(table).map_err(fail)?, place, id)
    }

    pub(super) fn find(&self, kind: &str, key: &str) -> Result<Option<StoredJob>, StoreError> {
        let keys = self.0.open_table(KEYS).map_err(fail)?;
        let holder = holder(&keys, kind, key)?;
        Ok(holder.map(|id| self.get(id)).transpose()?.flatten())
    }

    pub(super) fn list(
        &self,
        list: List,
        after: Option<&StoredJob>,
        most: usize,
    ) -> Result<Vec<StoredJob>, StoreError> {
        let table = self.0.open_table(table_of(list)).map_err(fail)?;
        let first = after.map_or(Bound::Unbounded, |job| {
            Bound::Excluded(at(job.due, job.id.number))
        });
        let rows = table.range::<At>((first, Bound::Unbounded)).map_err(fail)?;
        let rows = rows.take(most);
        rows.map(|entry| {
            let (key, row) = entry.map_err(fail)?;
            let (time, number) = key.value();
            let place = place_in(list, WallTime::from_unix_micros(time));
            decode(number, place, row.value()).map_err(|_| unreadable(number))
        })
        .collect()
    }

    pub(super) fn count(&self, list: List) -> Result<u64, StoreError> {
        let table = self.0.open_table(table_of(list)).map_err(fail)?;
        table.len().map_err(fail)
    }
}

fn table_of(list: List) -> Listed {
    match list {
        List::Live => LIVE,
        List::Dead => DEAD,
    }
}

fn place_in(list: List, time: WallTime) -> Place {
    match list {
        List::Live => Place::Live(time),
        List::Dead => Place::Dead(time),
    }
}

fn at(time: WallTime, number: u64) -> At {
    (time.as_unix_micros(), number)
}

fn place_row(place: Place) -> (u8, u64) {
    match place {
        Place::Live(due) => (0, due.as_unix_micros()),
        Place::Dead(died) => (1, died.as_unix_micros()),
    }
}

fn place_of(places: &impl ReadableTable<u64, (u8, u64)>, id: JobId) -> Result<Place, StoreError> {
    let moved = places.get(id.number).map_err(fail)?;
    Ok(match moved.map(|place| place.value()) {
        None => Place::Live(id.born),
        Some((0, due)) => Place::Live(WallTime::from_unix_micros(due)),
        Some((_, died)) => Place::Dead(WallTime::from_unix_micros(died)),
    })
}

/// Returns the row of a job. A forged id, with the number of one job and the due time of
/// another, leads to none.
fn row(
    table: &impl ReadableTable<At, &'static [u8]>,
    place: Place,
    id: JobId,
) -> Result<Option<StoredJob>, StoreError> {
    let (Place::Live(time) | Place::Dead(time)) = place;
    let Some(row) = table.get(at(time, id.number)).map_err(fail)? else {
        return Ok(None);
    };
    let job = decode(id.number, place, row.value()).map_err(|_| unreadable(id.number))?;
    Ok((job.id == id).then_some(job))
}

fn holder(
    keys: &impl ReadableTable<&'static [u8], At>,
    kind: &str,
    key: &str,
) -> Result<Option<JobId>, StoreError> {
    let holder = keys.get(name(kind, key).as_slice()).map_err(fail)?;
    Ok(holder.map(|id| {
        let (born, number) = id.value();
        JobId::new(WallTime::from_unix_micros(born), number)
    }))
}

/// The kind's length stands first, so that no two pairs give the same bytes.
fn name(kind: &str, key: &str) -> Vec<u8> {
    let length = kind.len() as u32;
    [&length.to_be_bytes(), kind.as_bytes(), key.as_bytes()].concat()
}

/// Returns a job of which nothing but its place can be read. One such row does not keep the
/// others from being loaded; starting it says what is wrong.
fn unknown(number: u64, due: WallTime) -> DueJob {
    DueJob {
        id: JobId::new(due, number),
        version: 0,
        due,
        is_interrupted: false,
        is_here: true,
    }
}

fn unreadable(number: u64) -> StoreError {
    StoreError::Damaged(format!("the row of job {number} cannot be read"))
}

/// Says what an error of redb means.
pub(super) fn fail(error: impl Into<Error>) -> StoreError {
    match error.into() {
        Error::Io(error) => io(error),
        Error::PreviousIo | Error::DatabaseClosed => StoreError::NotWriting,
        Error::DatabaseAlreadyOpen => StoreError::InUse,
        Error::UpgradeRequired(format) => {
            StoreError::Foreign(format!("redb's file format {format}"))
        }
        error => StoreError::Damaged(error.to_string()),
    }
}

pub(super) fn io(error: std::io::Error) -> StoreError {
    match error.kind() {
        // The last says that a limit of the process on the sizes of files is reached.
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            StoreError::Full
        }
        ErrorKind::UnexpectedEof => StoreError::Damaged("it was cut off".to_owned()),
        _ => StoreError::Io(Arc::new(error)),
    }
}
