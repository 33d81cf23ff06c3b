//! A store in one file of redb, without a server.
//!
//! ```text
//! live:   (due, number) -> row       in the order in which jobs are loaded
//! dead:   (died, number) -> row
//! places: number -> (list, time)     jobs that do not lie at the due time in their id
//! keys:   kind, key -> (born, number)
//! meta:   schema, fence, numbers     numbers are reserved by the thousand
//! ```
//! The types of redb appear in this folder alone.

mod apply;
mod file;
mod reserve;
mod row;
mod tables;

use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redb::backends::InMemoryBackend;
use ::redb::{Database, Error, ReadableDatabase, StorageBackend};
use parking_lot::{Mutex, RwLock};

use self::file::{open_file, open_or_create};
use self::reserve::Reserve;
use self::row::Failure;
use self::tables::{Kinds, Reading, Session, Writing, fail, io};
use crate::job::{JobId, StoredJob};
use crate::store::{Answer, Change, Due, Kind, Lease, List, Page, Result, Store, StoreError};
use crate::wall::{SystemClock, WallClock, WallTime};

/// Settings of a [`RedbStore`].
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("jobs.redb");
/// use tickwheel_durable::RedbOptions;
///
/// let store = RedbOptions::new().cache_bytes(16 << 20).open(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RedbOptions {
    cache_bytes: usize,
    quick_repair: bool,
    reserve_bytes: u64,
}

impl Default for RedbOptions {
    fn default() -> RedbOptions {
        RedbOptions::new()
    }
}

impl RedbOptions {
    /// Returns the default settings.
    #[must_use]
    pub fn new() -> RedbOptions {
        RedbOptions { cache_bytes: 32 << 20, quick_repair: false, reserve_bytes: 4 << 20 }
    }

    /// Sets the memory for pages of the file. Defaults to 32 MiB.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> RedbOptions {
        self.cache_bytes = bytes;
        self
    }

    /// Sets whether each commit saves what makes the file open at once after a crash. Otherwise
    /// opening reads the whole file then. Makes commits slower, the more the larger the file is.
    /// Defaults to false.
    #[must_use]
    pub fn quick_repair(mut self, quick: bool) -> RedbOptions {
        self.quick_repair = quick;
        self
    }

    /// Sets the size of the file beside the store that is deleted when the disk is full, so
    /// that running jobs can be completed. Defaults to 4 MiB; zero means none.
    #[must_use]
    pub fn reserve_bytes(mut self, bytes: u64) -> RedbOptions {
        self.reserve_bytes = bytes;
        self
    }

    /// Opens the file, or creates it. If it was not closed, because the process died, reads
    /// the whole file first unless [`quick_repair`](RedbOptions::quick_repair) is set.
    ///
    /// # Errors
    /// Returns [`StoreError::InUse`] if the file is open elsewhere. Returns
    /// [`StoreError::Foreign`], [`StoreError::Newer`] or [`StoreError::Damaged`] if it is not a
    /// file of this version, and leaves it as it is. (A file of redb that was not closed is
    /// repaired by redb before it can be refused.) Returns [`StoreError::Foreign`], too, if the
    /// file of the [reserve](RedbOptions::reserve_bytes), the path with `.reserve` behind it,
    /// holds anything but zeros.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<RedbStore> {
        // The process may change its folder, and a recovery opens the file again.
        let path = absolute(path).map_err(io)?;
        let reserve = Reserve::beside(&path, self.reserve_bytes);
        reserve.check()?;
        let database = open_or_create(&path, self.cache_bytes)?;
        reserve.fill();
        RedbStore::new(database, Some(path), reserve, self.clone(), None)
    }

    /// Opens a store on storage of the caller's, for tests of power cuts and of full disks.
    ///
    /// # Errors
    /// Returns an error if the storage fails, or holds something else.
    #[doc(hidden)]
    pub fn open_backend(&self, backend: impl StorageBackend) -> Result<RedbStore> {
        self.open_on(backend, None)
    }

    fn open_on(
        &self,
        backend: impl StorageBackend,
        lease: Option<EndingLease>,
    ) -> Result<RedbStore> {
        let database = file::open_backend(backend, self.cache_bytes)?;
        RedbStore::new(database, None, Reserve::none(), self.clone(), lease)
    }
}

/// A store in one file, for one process, or in memory. Clones share the jobs, but only one node may
/// run those of a file: give it the handlers of all kinds. Schedule by its own [`Jobs`](crate::Jobs):
/// of what others do on clones, it hears with its next load, after half of its
/// [window](crate::Builder::window) at most.
///
/// A full disk does not damage it: the store gives up its reserve, so that running jobs can be
/// completed, and refuses new jobs until there is room.
#[derive(Clone)]
pub struct RedbStore(Arc<Shared>);

struct Shared {
    open: RwLock<Option<Database>>,
    /// The numbers that a commit uses; held while it works.
    session: Mutex<Session>,
    kinds: Mutex<Kinds>,
    path: Option<PathBuf>,
    reserve: Reserve,
    /// Whether the disk was full since the last recovery.
    is_full: AtomicBool,
    options: RedbOptions,
    lease: Option<EndingLease>,
}

/// The lease of a store in memory: when it runs out by which clock, and its owner.
struct EndingLease {
    clock: Box<dyn WallClock>,
    held: Mutex<(WallTime, String)>,
}

debug!(RedbStore, this, path: this.0.path, options: this.0.options);

impl RedbStore {
    /// Opens a file with the default settings, or creates it; see [`RedbOptions::open`].
    ///
    /// # Errors
    /// See [`RedbOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<RedbStore> {
        RedbOptions::new().open(path)
    }

    /// Returns an empty store in memory, for tests and for jobs that need not outlive the process. Its
    /// leases run out by the clock of the system, so that several nodes can work on its clones, one
    /// after the other.
    #[must_use]
    pub fn in_memory() -> RedbStore {
        RedbStore::in_memory_by(SystemClock)
    }

    /// Returns an empty store in memory, whose leases run out by `clock`.
    #[must_use]
    pub fn in_memory_by(clock: impl WallClock) -> RedbStore {
        let (clock, held) = (Box::new(clock), Mutex::default());
        let lease = EndingLease { clock, held };
        let store = RedbOptions::new().open_on(InMemoryBackend::new(), Some(lease));
        store.expect("memory can be written")
    }

    fn new(
        database: Database,
        path: Option<PathBuf>,
        reserve: Reserve,
        options: RedbOptions,
        lease: Option<EndingLease>,
    ) -> Result<RedbStore> {
        let session = Session::load(&database, path.as_deref()).map_err(fail)?;
        let shared = Shared {
            open: RwLock::new(Some(database)),
            session: Mutex::new(session),
            kinds: Mutex::default(),
            path,
            reserve,
            is_full: AtomicBool::new(false),
            options,
            lease,
        };
        Ok(RedbStore(Arc::new(shared)))
    }

    fn read<R>(&self, read: impl FnOnce(&Reading) -> Result<R, Failure>) -> Result<R> {
        let open = self.0.open.read();
        let database = open.as_ref().ok_or(StoreError::NotWriting)?;
        read(&Reading(database.begin_read().map_err(fail)?)).map_err(fail)
    }

    /// Runs `write` in a transaction, and commits it. A failure leaves no trace in the session.
    fn write<R>(&self, write: impl FnOnce(&mut Writing) -> Result<R, Failure>) -> Result<R> {
        self.note(self.try_write(write).map_err(fail))
    }

    /// Takes note of a full disk, for the next recovery.
    fn note<R>(&self, result: Result<R>) -> Result<R> {
        if let Err(StoreError::Full) = result {
            self.0.is_full.store(true, Ordering::SeqCst);
        }
        result
    }

    fn try_write<R>(
        &self,
        write: impl FnOnce(&mut Writing) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let mut session = self.0.session.lock();
        let open = self.0.open.read();
        let database = open.as_ref().ok_or(Error::DatabaseClosed)?;
        if let Some(path) = &self.0.path {
            session.check_place(path)?;
        }
        let mut transaction = database.begin_write()?;
        transaction.set_quick_repair(self.0.options.quick_repair);
        let mut changed = *session;
        let kinds = self.0.kinds.lock().clone();
        let result = write(&mut Writing::new(&transaction, &mut changed, &kinds)?)?;
        transaction.commit()?;
        *session = changed;
        Ok(result)
    }
}

impl Store for RedbStore {
    /// Whoever has a file open holds its lease.
    fn acquire(&self, owner: &str, kinds: &[Kind], length: Duration) -> Result<Option<Lease>> {
        if let Some(EndingLease { clock, held }) = &self.0.lease {
            let (mut held, now) = (held.lock(), clock.now());
            if held.0 > now && held.1 != owner {
                return Ok(None);
            }
            *held = (now + length, owner.to_owned());
        }
        *self.0.kinds.lock() = kinds.iter().map(|kind| kind.name.clone()).collect();
        let fence = self.write(|writing| writing.raise_fence())?;
        Ok(Some(Lease { fence }))
    }

    fn renew(&self, lease: Lease, length: Duration) -> Result<bool> {
        let is_last = self.0.session.lock().fence == lease.fence;
        let Some(EndingLease { clock, held }) = &self.0.lease else {
            return Ok(is_last);
        };
        let (mut held, now) = (held.lock(), clock.now());
        let is_held = is_last && held.0 > now;
        if is_held {
            held.0 = now + length;
        }
        Ok(is_held)
    }

    fn leases_end(&self) -> bool {
        self.0.lease.is_some()
    }

    /// Closes the file, so that another process may have it.
    fn give_back(&self, lease: Lease) {
        let Some(EndingLease { held, .. }) = &self.0.lease else {
            return *self.0.open.write() = None;
        };
        let mut held = held.lock();
        if self.0.session.lock().fence == lease.fence {
            held.0 = WallTime::default();
        }
    }

    fn commit(&self, changes: &[Change]) -> Result<Vec<Answer>> {
        self.write(|writing| {
            let apply = |change| writing.apply(change);
            changes.iter().map(apply).collect()
        })
    }

    fn recover(&self) -> Result<()> {
        let Some(path) = &self.0.path else {
            // Memory accepts changes at any time.
            let is_memory = self.0.lease.is_some();
            return is_memory.then_some(()).ok_or(StoreError::NotWriting);
        };
        let mut session = self.0.session.lock();
        let mut open = self.0.open.write();
        *open = None;
        if self.0.is_full.swap(false, Ordering::SeqCst) {
            self.0.reserve.give_up();
        }
        let database = self.note(open_file(path, self.0.options.cache_bytes))?;
        let mut found = Session::load(&database, Some(path)).map_err(fail)?;
        if session.is_ahead_of(&found) {
            let how = "an older file has taken its place";
            return Err(StoreError::Damaged(how.to_owned()));
        }
        // The grant holds if no other process had the file open meanwhile.
        found.is_granted = session.is_granted && found.fence == session.fence;
        *session = found;
        *open = Some(database);
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.0.reserve.is_there_again()
    }

    fn due_before(
        &self,
        lease: Lease,
        kinds: &[String],
        before: WallTime,
        most: usize,
    ) -> Result<Due> {
        let all = self.0.kinds.lock().clone();
        self.read(|reading| reading.due_before(kinds, &all, before, most, lease.fence))
    }

    fn unhandled(&self) -> Result<Vec<(String, WallTime)>> {
        self.read(|reading| reading.unhandled(&self.0.kinds.lock().clone()))
    }

    fn paused(&self) -> Result<Vec<String>> {
        self.read(|reading| reading.paused())
    }

    fn get(&self, id: JobId) -> Result<Option<StoredJob>> {
        self.read(|reading| reading.get(id))
    }

    fn find(&self, kind: &str, key: &str) -> Result<Option<StoredJob>> {
        self.read(|reading| reading.find(kind, key))
    }

    fn list(&self, page: Page<'_>) -> Result<Vec<StoredJob>> {
        self.read(|reading| reading.list(page))
    }

    fn count(&self, list: List) -> Result<u64> {
        self.read(|reading| reading.count(list))
    }
}
