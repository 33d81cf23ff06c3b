//! Opening a file, creating it, and leaving those of others alone.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{
    Builder, Database, DatabaseError, ReadTransaction, ReadableDatabase, StorageBackend,
    TableError, TableHandle,
};

use super::tables::{META, SCHEMA, create_tables, fail, io};
use crate::store::{Result, StoreError};

/// The schema that this version writes and reads.
const KNOWN: u64 = 1;
/// The end of the name of a file that is being created.
const UNFINISHED: &str = ".new";
/// The first bytes of every file of redb.
const MAGIC: [u8; 9] = *b"redb\x1A\x0A\xA9\x0D\x0A";

/// Opens the file at `path`, or creates it.
pub(super) fn open_or_create(path: &Path, cache_bytes: usize) -> Result<Database> {
    if !path.try_exists().map_err(io)? {
        create_file(path, cache_bytes)?;
    }
    open_file(path, cache_bytes)
}

/// Opens the file at `path`. Its name may be younger than its bytes on the disk, if the process
/// that created it was killed, so the folder is synced, too.
pub(super) fn open_file(path: &Path, cache_bytes: usize) -> Result<Database> {
    check_magic(path)?;
    check_closed_file(path)?;
    sync_folder_of(path)?;
    let database = guarded(|| builder(cache_bytes).open(path))?;
    check_schema(&database.begin_read().map_err(fail)?)?;
    Ok(database)
}

pub(super) fn open_backend(backend: impl StorageBackend, cache_bytes: usize) -> Result<Database> {
    let database = guarded(|| builder(cache_bytes).create_with_backend(backend))?;
    let is_new = {
        let transaction = database.begin_read().map_err(fail)?;
        transaction.list_tables().map_err(fail)?.next().is_none()
    };
    if is_new {
        create_tables(&database, KNOWN).map_err(fail)?;
    }
    check_schema(&database.begin_read().map_err(fail)?)?;
    Ok(database)
}

fn builder(cache_bytes: usize) -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(cache_bytes);
    builder
}

/// Calls redb, which may panic if it meets a damaged file.
fn guarded<R>(open: impl FnOnce() -> Result<R, DatabaseError>) -> Result<R> {
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(opened) => opened.map_err(fail),
        Err(_) => Err(StoreError::Damaged("redb cannot read it".to_owned())),
    }
}

/// Creates the file under a name that nobody else uses, so that a crash leaves a whole one or
/// none, and perhaps an unfinished one beside it. If another process has created it meanwhile, that
/// one stays.
fn create_file(path: &Path, cache_bytes: usize) -> Result<()> {
    let unfinished = beside(path, &format!(".{:016x}{UNFINISHED}", fastrand::u64(..)));
    let created = create_at(&unfinished, cache_bytes).and_then(|()| name_file(&unfinished, path));
    let _ = fs::remove_file(&unfinished);
    created
}

fn create_at(path: &Path, cache_bytes: usize) -> Result<()> {
    let database = guarded(|| builder(cache_bytes).create(path))?;
    create_tables(&database, KNOWN).map_err(fail)?;
    guarded(|| database.close())
}

/// Gives a whole file its name, unless one has it, or a symbolic link whose target is missing. A
/// rename would replace that; where the file system has no links, it must do.
fn name_file(unfinished: &Path, path: &Path) -> Result<()> {
    if fs::hard_link(unfinished, path).is_ok() {
        return Ok(());
    }
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::rename(unfinished, path).map_err(io)
        }
        found => found.map(drop).map_err(io),
    }
}

pub(super) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().unwrap_or(Path::new(""));
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

#[cfg(unix)]
fn sync_folder_of(path: &Path) -> Result<()> {
    match File::open(folder_of(path)) {
        Ok(folder) => folder.sync_all().map_err(io),
        // A folder that may be passed through and not be read.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(io(error)),
    }
}

/// Other systems keep a rename once it has returned.
#[cfg(not(unix))]
fn sync_folder_of(_: &Path) -> Result<()> {
    Ok(())
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn check_magic(path: &Path) -> Result<()> {
    let mut begin = Vec::new();
    // To open a pipe is to wait for whoever writes to it.
    if !fs::metadata(path).map_err(io)?.is_file() {
        return Err(StoreError::Foreign("it is no regular file".to_owned()));
    }
    let file = File::open(path).map_err(io)?;
    let read = file.take(MAGIC.len() as u64).read_to_end(&mut begin);
    match read.map_err(io)? {
        // A store is never empty: such a file was cut off.
        0 => Err(StoreError::Damaged("it is empty; to create a store, remove it".to_owned())),
        _ if begin == MAGIC => Ok(()),
        _ => Err(StoreError::Foreign("it is no file of redb".to_owned())),
    }
}

/// Checks the schema of a file that was closed without writing to it. One that was not closed
/// must be repaired before it can be read.
fn check_closed_file(path: &Path) -> Result<()> {
    let open = || match builder(1 << 20).open_read_only(path) {
        Err(DatabaseError::RepairAborted) => Ok(None),
        opened => opened.map(Some),
    };
    match guarded(open)? {
        Some(database) => check_schema(&database.begin_read().map_err(fail)?),
        None => Ok(()),
    }
}

fn check_schema(transaction: &ReadTransaction) -> Result<()> {
    let meta = match transaction.open_table(META) {
        Err(TableError::TableDoesNotExist(_)) => return Err(other_program(transaction)),
        opened => opened.map_err(fail)?,
    };
    let schema = meta.get(SCHEMA).map_err(fail)?;
    match schema.map_or(0, |schema| schema.value()) {
        0 => Err(StoreError::Damaged("it names no schema".to_owned())),
        found if found > KNOWN => Err(StoreError::Newer { found, known: KNOWN }),
        _ => Ok(()),
    }
}

fn other_program(transaction: &ReadTransaction) -> StoreError {
    let tables = transaction.list_tables().into_iter().flatten();
    let names: Vec<String> = tables.map(|table| table.name().to_owned()).collect();
    StoreError::Foreign(format!("redb tables {names:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processes create a file at once: the second opens what the first has made.
    #[test]
    fn a_file_that_appeared_meanwhile_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (path, ours) = (folder.path().join("jobs"), folder.path().join("ours"));
        fs::write(&path, "theirs").unwrap();
        fs::write(&ours, "ours").unwrap();
        name_file(&ours, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
    }
}
