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

use super::row::{Failure, Place, decode, encode, head, head_of_any};
use crate::job::{JobId, StoredJob};
use crate::store::{Due, DueJob, List, PAGE_BYTES, Page, StoreError};
use crate::wall::WallTime;

type At = (u64, u64);
type Listed = TableDefinition<'static, At, &'static [u8]>;
type Result<T> = std::result::Result<T, Failure>;

const LIVE: Listed = TableDefinition::new("live");
const DEAD: Listed = TableDefinition::new("dead");
const PLACES: TableDefinition<u64, (bool, u64)> = TableDefinition::new("places");
const KEYS: TableDefinition<(&str, &str), At> = TableDefinition::new("keys");
const PAUSED: TableDefinition<&str, ()> = TableDefinition::new("paused");
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
    pub(super) fn check_place(&self, path: &Path) -> Result<()> {
        if place_of_file(path) == self.place {
            return Ok(());
        }
        let how = "the file is gone, or another has its name";
        Err(Error::Corrupted(how.to_owned()).into())
    }

    pub(super) fn load(database: &Database, path: Option<&Path>) -> Result<Session> {
        let meta = database.begin_read()?.open_table(META)?;
        let read = |name| Ok::<_, Failure>(meta.get(name)?.map_or(0, |value| value.value()));
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
pub(super) fn create_tables(database: &Database, schema: u64) -> Result<()> {
    let transaction = database.begin_write()?;
    transaction.open_table(LIVE)?;
    transaction.open_table(DEAD)?;
    transaction.open_table(PLACES)?;
    transaction.open_table(KEYS)?;
    transaction.open_table(PAUSED)?;
    transaction.open_table(META)?.insert(SCHEMA, schema)?;
    Ok(transaction.commit()?)
}

/// The tables in a transaction that writes.
pub(super) struct Writing<'t> {
    live: Table<'t, At, &'static [u8]>,
    dead: Table<'t, At, &'static [u8]>,
    places: Table<'t, u64, (bool, u64)>,
    keys: Table<'t, (&'static str, &'static str), At>,
    paused: Table<'t, &'static str, ()>,
    meta: Table<'t, &'static str, u64>,
    session: &'t mut Session,
    pub(super) kinds: &'t [String],
}

impl<'t> Writing<'t> {
    pub(super) fn new(
        transaction: &'t WriteTransaction,
        session: &'t mut Session,
        kinds: &'t [String],
    ) -> Result<Writing<'t>> {
        Ok(Writing {
            live: transaction.open_table(LIVE)?,
            dead: transaction.open_table(DEAD)?,
            places: transaction.open_table(PLACES)?,
            keys: transaction.open_table(KEYS)?,
            paused: transaction.open_table(PAUSED)?,
            meta: transaction.open_table(META)?,
            session,
            kinds,
        })
    }

    pub(super) fn raise_fence(&mut self) -> Result<u64> {
        self.session.fence += 1;
        self.session.is_granted = true;
        self.meta.insert(FENCE, self.session.fence)?;
        Ok(self.session.fence)
    }

    /// Returns the fence of the last lease: zero, which no job has, before the first grant in this
    /// opening.
    pub(super) fn fence(&self) -> u64 {
        if self.session.is_granted { self.session.fence } else { 0 }
    }

    /// Returns a number that no job had before.
    pub(super) fn next_number(&mut self) -> Result<u64> {
        if self.session.next_number == self.session.reserved {
            self.session.reserved += NUMBERS_PER_BLOCK;
            self.meta.insert(NUMBERS, self.session.reserved)?;
        }
        self.session.next_number += 1;
        Ok(self.session.next_number)
    }

    pub(super) fn get(&self, id: JobId) -> Result<Option<StoredJob>> {
        let place = place_of(&self.places, id)?;
        match place {
            Place::Live(_) => row(&self.live, place, id),
            Place::Dead(_) => row(&self.dead, place, id),
        }
    }

    /// Writes a row where the job belongs. An older row of the job must lie there or nowhere.
    pub(super) fn put(&mut self, job: &StoredJob) -> Result<()> {
        let (place, row) = (Place::of(job), encode(job)?);
        self.set_place(job.id, place)?;
        let (table, at) = self.table(place, job.id);
        table.insert(at, &*row)?;
        Ok(())
    }

    /// Removes the row of a job from where it lies.
    pub(super) fn remove(&mut self, job: &StoredJob) -> Result<()> {
        self.set_place(job.id, Place::Live(job.id.born))?;
        let (table, at) = self.table(Place::of(job), job.id);
        table.remove(at)?;
        Ok(())
    }

    fn table(&mut self, place: Place, id: JobId) -> (&mut Table<'t, At, &'static [u8]>, At) {
        match place {
            Place::Live(due) => (&mut self.live, at(due, id.number)),
            Place::Dead(died) => (&mut self.dead, at(died, id.number)),
        }
    }

    /// The id alone leads to a job that lies where it was born.
    fn set_place(&mut self, id: JobId, place: Place) -> Result<()> {
        match place {
            Place::Live(due) if due == id.born => self.places.remove(id.number)?,
            Place::Live(due) => self.places.insert(id.number, (false, due.as_unix_micros()))?,
            Place::Dead(died) => self.places.insert(id.number, (true, died.as_unix_micros()))?,
        };
        Ok(())
    }

    pub(super) fn holder(&self, kind: &str, key: &str) -> Result<Option<JobId>> {
        holder(&self.keys, kind, key)
    }

    /// Sets or clears the job that has a key, if there is one.
    pub(super) fn set_key(
        &mut self,
        kind: &str,
        key: Option<&str>,
        id: Option<JobId>,
    ) -> Result<()> {
        match (key, id) {
            (Some(key), Some(id)) => drop(self.keys.insert((kind, key), at(id.born, id.number))?),
            (Some(key), None) => drop(self.keys.remove((kind, key))?),
            (None, _) => {}
        }
        Ok(())
    }

    pub(super) fn is_paused(&self, kind: &str) -> Result<bool> {
        Ok(self.paused.get(kind)?.is_some())
    }

    pub(super) fn set_paused(&mut self, kind: &str, is_paused: bool) -> Result<()> {
        if is_paused {
            drop(self.paused.insert(kind, ())?)
        } else {
            drop(self.paused.remove(kind)?)
        }
        Ok(())
    }
}

/// The tables in a transaction that reads.
pub(super) struct Reading(pub(super) ReadTransaction);

impl Reading {
    pub(super) fn due_before(
        &self,
        kinds: &[String],
        all: &[String],
        before: WallTime,
        most: usize,
        fence: u64,
    ) -> Result<Due> {
        let (mut jobs, paused) = (Vec::new(), self.paused()?);
        self.each(all, at(before, 0), fence, |job, kind| {
            let is_one = |kinds: &[String]| kinds.iter().any(|one| one == kind);
            let is_unknown = job.version == 0 && kinds.first() == all.first();
            if is_unknown || is_one(kinds) && !is_one(&paused) {
                jobs.push(job);
            }
            jobs.len() < most
        })?;
        Ok(Due::first(jobs, most))
    }

    /// Returns the kinds that are not handled, and when the first job of each is due.
    pub(super) fn unhandled(&self, kinds: &[String]) -> Result<Vec<(String, WallTime)>> {
        let mut found = BTreeMap::new();
        self.each(kinds, at(WallTime::MAX, u64::MAX), 0, |job, kind| {
            if job.kind.is_none() && !found.contains_key(kind) {
                found.insert(kind.to_owned(), job.due);
            }
            true
        })?;
        Ok(found.into_iter().collect())
    }

    pub(super) fn paused(&self) -> Result<Vec<String>> {
        let paused = self.0.open_table(PAUSED)?;
        let kinds = paused.iter()?.map(|entry| Ok(entry?.0.value().to_owned()));
        kinds.collect()
    }

    /// Passes the jobs that stand before `before`, and their kinds, until `each` returns `false`. One
    /// of which nothing but its place can be read keeps no others from being loaded: its version is
    /// zero, and starting it says what is wrong.
    fn each(
        &self,
        kinds: &[String],
        before: At,
        fence: u64,
        mut each: impl FnMut(DueJob, &str) -> bool,
    ) -> Result<()> {
        for entry in self.0.open_table(LIVE)?.range(..before)? {
            let (key, row) = entry?;
            let (due, number) = key.value();
            let head = head_of_any(number, due, row.value());
            let unknown = Some(0).filter(|_| head.version == 0);
            let job = DueJob {
                id: JobId::new(WallTime::from_unix_micros(head.born), number),
                version: head.version,
                due: WallTime::from_unix_micros(due),
                is_interrupted: ![0, fence].contains(&head.fence),
                kind: unknown.or(place_in(kinds, head.kind)),
            };
            if !each(job, head.kind) {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, id: JobId) -> Result<Option<StoredJob>> {
        let place = place_of(&self.0.open_table(PLACES)?, id)?;
        let table = match place {
            Place::Live(_) => LIVE,
            Place::Dead(_) => DEAD,
        };
        row(&self.0.open_table(table)?, place, id)
    }

    pub(super) fn find(&self, kind: &str, key: &str) -> Result<Option<StoredJob>> {
        let holder = holder(&self.0.open_table(KEYS)?, kind, key)?;
        holder.map_or(Ok(None), |id| self.get(id))
    }

    pub(super) fn list(&self, page: Page<'_>) -> Result<Vec<StoredJob>> {
        let first =
            page.after.map_or(Bound::Unbounded, |job| Bound::Excluded(at(job.due, job.id.number)));
        let table = self.0.open_table(table_of(page.list))?;
        let (mut jobs, mut bytes) = (Vec::new(), 0);
        for entry in table.range::<At>((first, Bound::Unbounded))? {
            let (key, row) = entry?;
            let (time, number) = key.value();
            let time = WallTime::from_unix_micros(time);
            let place = match page.list {
                List::Live => Place::Live(time),
                List::Dead => Place::Dead(time),
            };
            let is_other =
                |kind| head(number, row.value()).is_ok_and(|(head, _)| head.kind != kind);
            if jobs.len() == page.most || bytes >= PAGE_BYTES {
                break;
            }
            if !page.kind.is_some_and(is_other) {
                let job = decode(number, place, row.value())?;
                bytes += job.payload.len();
                jobs.push(job);
            }
        }
        Ok(jobs)
    }

    pub(super) fn count(&self, list: List) -> Result<u64> {
        Ok(self.0.open_table(table_of(list))?.len()?)
    }
}

fn table_of(list: List) -> Listed {
    match list {
        List::Live => LIVE,
        List::Dead => DEAD,
    }
}

fn at(time: WallTime, number: u64) -> At {
    (time.as_unix_micros(), number)
}

fn place_of(places: &impl ReadableTable<u64, (bool, u64)>, id: JobId) -> Result<Place> {
    let moved = places.get(id.number)?.map(|place| place.value());
    let time = WallTime::from_unix_micros;
    Ok(match moved {
        None => Place::Live(id.born),
        Some((false, due)) => Place::Live(time(due)),
        Some((true, died)) => Place::Dead(time(died)),
    })
}

/// Returns the row of a job. A forged id, with the number of one job and the due time of
/// another, leads to none.
fn row(
    table: &impl ReadableTable<At, &'static [u8]>,
    place: Place,
    id: JobId,
) -> Result<Option<StoredJob>> {
    let (Place::Live(time) | Place::Dead(time)) = place;
    let row = table.get(at(time, id.number))?;
    let job = row.map(|row| decode(id.number, place, row.value())).transpose()?;
    Ok(job.filter(|job| job.id == id))
}

fn holder(
    keys: &impl ReadableTable<(&'static str, &'static str), At>,
    kind: &str,
    key: &str,
) -> Result<Option<JobId>> {
    let holder = keys.get((kind, key))?.map(|id| id.value());
    Ok(holder.map(|(born, number)| JobId::new(WallTime::from_unix_micros(born), number)))
}

/// The kinds of the node that has the lease.
pub(super) type Kinds = Arc<[String]>;

pub(super) fn place_in(kinds: &[String], kind: &str) -> Option<usize> {
    kinds.iter().position(|one| one == kind)
}

/// Says what a failure means.
pub(super) fn fail(failure: impl Into<Failure>) -> StoreError {
    let error = match failure.into() {
        Failure::Row(how) => return StoreError::Damaged(how),
        Failure::File(error) => error,
    };
    match error {
        Error::Io(error) => io(error),
        Error::PreviousIo | Error::DatabaseClosed => StoreError::NotWriting,
        Error::DatabaseAlreadyOpen => StoreError::InUse,
        Error::UpgradeRequired(format) => {
            StoreError::Foreign(format!("redb's file format {format}"))
        }
        Error::Corrupted(how) => StoreError::Damaged(how),
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
