//! Power cuts, simulated: storage that keeps or loses each sector that was not synced.
//!
//! Batches of changes are committed to one file in memory; at a random write, length change or
//! sync the power is cut. What was answered must be there afterwards, and of the batch on the
//! way either everything or nothing. Storage that ignores syncs is the control: it must be
//! seen to lose something.
//!
//! `POWER_CUTS` sets the number of cuts.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use fastrand::Rng;
use redb::StorageBackend;
use tickwheel_durable::store::{Answer, Change, Lease, List, NewJob, Page, Store, Then};
use tickwheel_durable::{Job, JobId, RedbOptions, RedbStore, State, WallTime};

const SECTOR: usize = 512;

/// A disk in memory: what it shows, what is safe, and what lies between.
#[derive(Debug, Default)]
struct Disk {
    shown: Vec<u8>,
    safe: Vec<u8>,
    unsynced: Vec<Unsynced>,
    /// The operations that are left before the power is cut.
    left: Option<u32>,
    is_dead: bool,
    ignores_syncs: bool,
}

#[derive(Debug)]
enum Unsynced {
    Sector(usize, Vec<u8>),
    Length(usize),
}

impl Disk {
    /// Counts an operation that writes.
    fn count(&mut self) -> io::Result<()> {
        self.is_dead |= self.left == Some(0);
        self.left = self.left.map(|left| left.saturating_sub(1));
        self.check()
    }

    fn check(&self) -> io::Result<()> {
        if self.is_dead { Err(io::Error::other("the power is cut")) } else { Ok(()) }
    }

    fn write(&mut self, offset: usize, data: &[u8]) {
        put(&mut self.shown, offset, data);
        let mut at = offset;
        while at < offset + data.len() {
            let end = ((at / SECTOR + 1) * SECTOR).min(offset + data.len());
            let part = data[at - offset..end - offset].to_vec();
            self.unsynced.push(Unsynced::Sector(at, part));
            at = end;
        }
    }

    fn sync(&mut self) {
        if !self.ignores_syncs {
            self.safe = self.shown.clone();
            self.unsynced.clear();
        }
    }

    /// What a machine finds that is switched on again.
    fn after_cut(&mut self, random: &mut Rng) -> Vec<u8> {
        let mut found = std::mem::take(&mut self.safe);
        let likely = random.f64();
        for unsynced in self.unsynced.drain(..) {
            match unsynced {
                _ if random.f64() > likely => {}
                Unsynced::Sector(offset, data) => put(&mut found, offset, &data),
                Unsynced::Length(length) => found.resize(length, 0),
            }
        }
        found
    }
}

fn put(bytes: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if bytes.len() < offset + data.len() {
        bytes.resize(offset + data.len(), 0);
    }
    bytes[offset..offset + data.len()].copy_from_slice(data);
}

#[derive(Clone, Debug, Default)]
struct Storage(Arc<Mutex<Disk>>);

impl Storage {
    fn holding(bytes: Vec<u8>, ignores_syncs: bool) -> Storage {
        Storage(Arc::new(Mutex::new(Disk {
            shown: bytes.clone(),
            safe: bytes,
            ignores_syncs,
            ..Disk::default()
        })))
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(|error| error.into_inner())
    }
}

impl StorageBackend for Storage {
    fn len(&self) -> Result<u64, io::Error> {
        let disk = self.disk();
        disk.check()?;
        Ok(disk.shown.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        let disk = self.disk();
        disk.check()?;
        let from = offset as usize;
        let found = disk.shown.get(from..from + out.len());
        let found = found.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, length: u64) -> Result<(), io::Error> {
        let mut disk = self.disk();
        disk.count()?;
        disk.shown.resize(length as usize, 0);
        disk.unsynced.push(Unsynced::Length(length as usize));
        Ok(())
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        let mut disk = self.disk();
        disk.count()?;
        disk.sync();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        let mut disk = self.disk();
        disk.count()?;
        disk.write(offset as usize, data);
        Ok(())
    }
}

/// The jobs of a store by the number in their payload: id, due time, attempts, and whether a
/// job is dead.
type Contents = BTreeMap<u64, (JobId, WallTime, u32, bool)>;

fn contents(store: &RedbStore) -> Contents {
    let list = |list| store.list(Page::new(list, None, usize::MAX)).unwrap();
    let jobs = list(List::Live).into_iter().chain(list(List::Dead));
    jobs.map(|job| {
        let number = u64::from_le_bytes(job.payload.try_into().unwrap());
        let is_dead = job.state == State::Dead;
        (number, (job.id, job.due, job.attempts, is_dead))
    })
    .collect()
}

struct Program {
    random: Rng,
    next: u64,
    fence: u64,
}

impl Program {
    fn time(&mut self) -> WallTime {
        WallTime::from_unix_micros(self.random.u64(1..1_000_000))
    }

    /// Changes of different jobs, so that all or none of them can be told apart.
    fn batch(&mut self, before: &Contents) -> Vec<Change> {
        let mut ids: Vec<_> = before.values().copied().collect();
        self.random.shuffle(&mut ids);
        let most = self.random.usize(..6);
        let mut batch: Vec<Change> = ids
            .into_iter()
            .take(most)
            .map(|(id, _, _, is_dead)| self.change(id, is_dead))
            .collect();
        for _ in 0..self.random.usize(1..8) {
            self.next += 1;
            let job = Job::new("job", self.next.to_le_bytes()).at(self.time());
            batch.push(Change::Insert(NewJob::new(job, WallTime::default()).unwrap()));
        }
        batch
    }

    fn change(&mut self, id: JobId, is_dead: bool) -> Change {
        let due = self.time();
        match self.random.u32(..4) {
            _ if is_dead => Change::Revive { id, due },
            0 => Change::Cancel(id.into()),
            1 => Change::Move { target: id.into(), due },
            _ => Change::Start { id, version: 1, fence: self.fence },
        }
    }

    /// The ends of the runs that a batch has begun.
    fn finish(&mut self, answers: &[Answer]) -> Vec<Change> {
        let started = answers.iter().filter_map(|answer| match answer {
            Answer::Started { job, .. } => {
                let then = Then::Die { failure: "no".to_owned(), at: job.due, next: None };
                Some(Change::finish(job, self.fence, then))
            }
            _ => None,
        });
        started.collect()
    }
}

/// Contents without ids, because a store that is opened again skips numbers.
fn values(contents: &Contents) -> Vec<(u64, WallTime, u32, bool)> {
    let jobs = contents.iter();
    let values =
        jobs.map(|(number, (_, due, attempts, is_dead))| (*number, *due, *attempts, *is_dead));
    values.collect()
}

/// The change with the fence of this lease, if it needs one.
fn under(lease: Lease, mut change: Change) -> Change {
    if let Change::Start { fence, .. } | Change::Finish { fence, .. } = &mut change {
        *fence = lease.fence;
    }
    change
}

/// A batch on its way when the power was cut.
struct Cut {
    before: Contents,
    batch: Vec<Change>,
    /// The disk before the batch.
    disk: Vec<u8>,
}

/// Commits batches until the power is cut.
fn run(store: &RedbStore, storage: &Storage, program: &mut Program) -> Cut {
    let mut answers: Vec<Answer> = Vec::new();
    loop {
        let (before, disk) = (contents(store), storage.disk().safe.clone());
        let mut batch = program.finish(&answers);
        if batch.is_empty() {
            batch = program.batch(&before);
        }
        match store.commit(&batch) {
            Ok(given) => answers = given,
            Err(_) => {
                return Cut { before, batch, disk };
            }
        }
    }
}

fn open(storage: &Storage, quick_repair: bool) -> RedbStore {
    let options = RedbOptions::new().cache_bytes(1 << 20);
    let options = options.quick_repair(quick_repair);
    options.open_backend(storage.clone()).expect("cannot be opened")
}

/// A machine whose disk outlives the cuts.
struct Machine {
    program: Program,
    bytes: Vec<u8>,
    ignores_syncs: bool,
    quick_repair: bool,
}

impl Machine {
    fn new(seed: u64, ignores_syncs: bool) -> Machine {
        let storage = Storage::default();
        drop(open(&storage, false));
        let bytes = storage.disk().safe.clone();
        Machine {
            program: Program { random: Rng::with_seed(seed), next: 0, fence: 0 },
            bytes,
            ignores_syncs,
            quick_repair: seed % 2 == 1,
        }
    }

    /// Switches the machine on, cuts the power at some moment, and checks what is left.
    fn cut(&mut self) {
        let storage = Storage::holding(std::mem::take(&mut self.bytes), self.ignores_syncs);
        let store = open(&storage, self.quick_repair);
        let lease = store.acquire("node", &["job".into()], Duration::ZERO).unwrap().unwrap();
        self.program.fence = lease.fence;
        storage.disk().left = Some(self.program.random.u32(1..150));
        let cut = run(&store, &storage, &mut self.program);
        drop(store);
        self.bytes = storage.disk().after_cut(&mut self.program.random);
        self.check(cut);
    }

    fn check(&self, cut: Cut) {
        let read = |bytes: &Vec<u8>| open(&Storage::holding(bytes.clone(), false), false);
        let found = contents(&read(&self.bytes));
        if found == cut.before {
            return;
        }
        let twin = read(&cut.disk);
        let lease = twin.acquire("node", &["job".into()], Duration::ZERO).unwrap().unwrap();
        let batch: Vec<Change> = cut.batch.into_iter().map(|it| under(lease, it)).collect();
        twin.commit(&batch).unwrap();
        let after = contents(&twin);
        assert_eq!(values(&found), values(&after), "neither all of the batch nor nothing");
    }
}

fn cuts() -> u64 {
    let set = std::env::var("POWER_CUTS").ok();
    set.map_or(1_000, |cuts| cuts.parse().expect("POWER_CUTS is a number"))
}

/// Each machine loses its power twenty times.
#[test]
fn durable_01_a_power_cut_loses_nothing_that_was_answered() {
    for seed in 0..cuts() / 20 {
        let mut machine = Machine::new(seed, false);
        for _ in 0..20 {
            machine.cut();
        }
    }
}

/// The harness sees a loss where there is one.
#[test]
fn a_disk_that_ignores_syncs_is_seen() {
    let loses = |seed: &u64| {
        let mut machine = Machine::new(*seed, true);
        catch_unwind(AssertUnwindSafe(|| (0..5).for_each(|_| machine.cut()))).is_err()
    };
    let seen = (0..10).filter(loses).count();
    assert!(seen >= 5, "{seen} of 10");
}
