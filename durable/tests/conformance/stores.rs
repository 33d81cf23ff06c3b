//! What one store does beyond the others: leases that run out, and files.

use std::fs;
use std::path::Path;

use tickwheel_durable::ManualClock;

use super::*;

#[test]
fn a_lease_in_memory_runs_out_or_is_given_back() {
    let clock = ManualClock::new(at(0));
    let store = RedbStore::in_memory_by(clock.clone());
    let lease = store.acquire("first", &kinds(), HOUR).unwrap().unwrap();
    assert_eq!(store.acquire("second", &kinds(), HOUR).unwrap(), None);
    clock.set(at(0) + HOUR / 2);
    assert!(store.renew(lease, HOUR).unwrap());
    clock.set(at(0) + HOUR * 2);
    assert!(!store.renew(lease, HOUR).unwrap());
    let next = store.acquire("second", &kinds(), HOUR).unwrap().unwrap();
    assert!(next.fence > lease.fence);
    store.give_back(lease);
    assert_eq!(store.acquire("first", &kinds(), HOUR).unwrap(), None, "it was lost");
    store.give_back(next);
    assert!(store.acquire("first", &kinds(), HOUR).unwrap().is_some());
}

/// What is in a file and beside it.
fn contents(path: &Path) -> (Vec<u8>, usize) {
    let beside = fs::read_dir(path.parent().unwrap()).unwrap().count();
    (fs::read(path).unwrap(), beside)
}

/// Opens a file that is no store, and checks that it is left as it was.
fn refused(path: &Path) -> StoreError {
    let before = contents(path);
    let Err(error) = RedbStore::open(path) else {
        panic!("was opened");
    };
    let after = contents(path);
    assert_eq!(before.1, after.1, "a file appeared");
    assert!(before.0 == after.0, "the file was changed");
    error
}

#[test]
fn durable_13_a_file_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    for text in ["x", "a longer text than the first bytes of a file of redb"] {
        fs::write(&path, text).unwrap();
        assert!(matches!(refused(&path), StoreError::Foreign(_)));
    }
    fs::remove_file(&path).unwrap();

    let table = redb::TableDefinition::<u64, u64>::new("theirs");
    let database = redb::Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(table).unwrap().insert(1, 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = refused(&path);
    assert!(error.to_string().contains("theirs"), "{error}");
}

#[test]
fn durable_13_a_file_of_a_newer_schema_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    drop(RedbStore::open(&path).unwrap());
    let meta = redb::TableDefinition::<&str, u64>::new("tickwheel-durable");
    let database = redb::Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(meta).unwrap().insert("schema", 7).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = refused(&path);
    assert!(matches!(error, StoreError::Newer { found: 7, known: 1 }));
}

#[test]
fn durable_13_a_torn_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    let bench = Bench::new(RedbStore::open(&path).unwrap());
    for due in 0..2_000 {
        bench.insert(mail(due));
        if due == 20 {
            break;
        }
    }
    drop(bench);
    let whole = fs::read(&path).unwrap();
    for part in [10, 100, 1_000, 4_096, whole.len() / 2] {
        fs::write(&path, &whole[..part]).unwrap();
        let error = refused(&path);
        assert!(
            matches!(error, StoreError::Damaged(_) | StoreError::Foreign(_) | StoreError::Io(_)),
            "{part}: {error}"
        );
    }
}

#[test]
fn a_file_is_open_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    let store = RedbStore::open(&path).unwrap();
    assert!(matches!(RedbStore::open(&path), Err(StoreError::InUse)));
    drop(store);
    RedbStore::open(&path).unwrap();
}

#[test]
fn a_file_keeps_jobs_and_fences() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    let bench = Bench::new(RedbStore::open(&path).unwrap());
    let (job, fence) = (bench.insert(mail(5)), bench.lease.fence);
    drop(bench);
    let bench = Bench::new(RedbStore::open(&path).unwrap());
    assert!(bench.lease.fence > fence);
    assert_eq!(bench.due(), [5]);
    assert_ne!(bench.insert(mail(5)).id, job.id);
}

/// The process that started a job has ended, and this one has no lease.
#[test]
fn durable_05_a_job_of_a_process_that_has_ended_is_not_running() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    let bench = Bench::new(RedbStore::open(&path).unwrap());
    let due = bench.insert(mail(5));
    let job = bench.started(due);
    drop(bench);
    let store = RedbStore::open(&path).unwrap();
    let finish = Change::finish(&job, 1, Then::End);
    assert_eq!(store.commit(&[finish]).unwrap(), [Answer::Fenced]);
    let cancelled = store.commit(&[Change::Cancel(job.id.into())]).unwrap();
    assert_eq!(cancelled, [Answer::Removed(Box::new(job))]);
}

/// A store that lost its file does not begin anew.
#[test]
fn durable_13_a_recovery_creates_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    let bench = Bench::new(RedbStore::open(&path).unwrap());
    let job = bench.started(bench.insert(mail(5)));
    let aside = folder.path().join("aside");
    fs::rename(&path, &aside).unwrap();
    assert!(matches!(bench.store.recover(), Err(StoreError::Io(_))));
    assert!(!path.exists());
    fs::write(&path, "").unwrap();
    assert!(matches!(bench.store.recover(), Err(StoreError::Damaged(_))));
    fs::rename(&aside, &path).unwrap();
    bench.store.recover().unwrap();
    assert!(matches!(bench.finish(&job, Then::End), Answer::Removed(_)), "the lease goes on");
}

/// What has happened since is a job in one case, and a lease in the other.
#[test]
fn durable_13_a_recovery_takes_no_older_file() {
    for is_leased in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (path, older) = (folder.path().join("jobs.redb"), folder.path().join("older"));
        drop(RedbStore::open(&path).unwrap());
        fs::copy(&path, &older).unwrap();
        let store = RedbStore::open(&path).unwrap();
        let insert = Change::Insert(NewJob::new(mail(6), at(0)).unwrap());
        if is_leased {
            store.acquire("node", &kinds(), HOUR).unwrap();
        } else {
            drop(store.commit(&[insert]).unwrap())
        }
        fs::rename(&older, &path).unwrap();
        let error = store.recover().unwrap_err();
        assert!(error.to_string().contains("older"), "{error}");
    }
}

/// What is committed to a file without a name is gone with the process.
#[cfg(unix)]
#[test]
fn durable_01_a_file_that_was_deleted_takes_no_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    let bench = Bench::new(RedbStore::open(&path).unwrap());
    bench.insert(mail(5));
    let aside = folder.path().join("aside");
    fs::rename(&path, &aside).unwrap();
    let insert = || [Change::Insert(NewJob::new(mail(6), at(0)).unwrap())];
    let refused = bench.store.commit(&insert()).unwrap_err();
    assert!(matches!(&refused, StoreError::Damaged(how) if how.contains("gone")), "{refused}");
    assert!(bench.store.recover().is_err());
    fs::rename(&aside, &path).unwrap();
    bench.store.recover().unwrap();
    bench.store.commit(&insert()).unwrap();
    assert_eq!(bench.due(), [5, 6]);
}

/// A service that goes to the background may change its folder. Only this test has a path that depends
/// on it.
#[test]
fn a_file_stays_where_it_was_opened() {
    let (folder, before) = (tempfile::tempdir().unwrap(), std::env::current_dir().unwrap());
    std::env::set_current_dir(folder.path()).unwrap();
    let store = RedbStore::open("jobs.redb");
    std::env::set_current_dir(before).unwrap();
    let job = NewJob::new(mail(5), at(0)).unwrap();
    store.unwrap().commit(&[Change::Insert(job)]).unwrap();
}

/// As a crash of the system may leave it.
#[test]
fn durable_13_a_stub_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    drop(RedbStore::open(&path).unwrap());
    let whole = fs::read(&path).unwrap();
    for length in [10, 100, 1_000, 5_000] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = refused(&path);
        assert!(matches!(error, StoreError::Damaged(_)), "{length} bytes: {error}");
    }
}

#[test]
fn durable_13_an_empty_file_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    fs::write(&path, "").unwrap();
    assert!(matches!(refused(&path), StoreError::Damaged(_)));
}

#[test]
fn durable_13_files_beside_the_store_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    let beside = |suffix| folder.path().join(format!("jobs.redb.{suffix}"));
    fs::write(beside("new"), "theirs").unwrap();
    fs::write(beside("reserve"), "theirs, too").unwrap();
    let Err(StoreError::Foreign(which)) = RedbStore::open(&path) else {
        panic!("was opened");
    };
    assert!(which.contains("jobs.redb.reserve"), "{which}");
    assert!(!path.exists());
    assert_eq!(fs::read(beside("reserve")).unwrap(), b"theirs, too");
    fs::write(beside("reserve"), [0; 9]).unwrap();
    drop(RedbStore::open(&path).unwrap());
    assert_eq!(fs::read(beside("new")).unwrap(), b"theirs");
    assert_eq!(fs::metadata(beside("reserve")).unwrap().len(), 4 << 20, "a part is no reserve");
}

/// The disk that it leads to is not there yet, say.
#[cfg(unix)]
#[test]
fn durable_13_a_link_to_no_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    std::os::unix::fs::symlink("away/jobs.redb", &path).unwrap();
    assert!(matches!(RedbStore::open(&path), Err(StoreError::Io(_))));
    assert!(path.is_symlink());
}

/// A pipe has no end before somebody has written to it.
#[cfg(unix)]
#[test]
fn durable_13_what_is_no_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let (store, reserve) =
        (folder.path().join("jobs.redb"), folder.path().join("jobs.redb.reserve"));
    let made = std::process::Command::new("mkfifo").args([&pipe, &reserve]).status().unwrap();
    assert!(made.success());
    for path in [pipe, folder.path().to_owned(), store] {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(RedbStore::open(path).map(drop)));
        let opened = receiver.recv_timeout(HOUR / 60).expect("hangs");
        assert!(matches!(opened, Err(StoreError::Foreign(_))), "{opened:?}");
    }
}

/// Only a full disk costs the reserve.
#[test]
fn a_recovery_keeps_the_reserve() {
    let folder = tempfile::tempdir().unwrap();
    let store = RedbStore::open(folder.path().join("jobs.redb")).unwrap();
    store.recover().unwrap();
    assert!(store.has_room());
    assert!(folder.path().join("jobs.redb.reserve").exists());
}

/// The number of a forged id is as large as it can be.
#[test]
fn a_list_goes_on_behind_every_number() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new(RedbStore::open(folder.path().join("jobs.redb")).unwrap());
    let job = bench.insert(mail(5));
    let mut stored = bench.store.get(job.id).unwrap().unwrap();
    bench.insert(mail(6));
    stored.id = format!("{:x}-{:x}", 5, u64::MAX).parse().unwrap();
    let behind = bench.store.list(Page::new(List::Live, Some(&stored), 9)).unwrap();
    assert_eq!(behind.len(), 1);
}

/// Memory that ends, as a limit of the process on the sizes of files ends a file.
#[derive(Debug)]
struct Limited(redb::backends::InMemoryBackend);

impl redb::StorageBackend for Limited {
    fn len(&self) -> std::io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, length: u64) -> std::io::Result<()> {
        if length > 1 << 20 {
            Err(std::io::ErrorKind::FileTooLarge.into())
        } else {
            self.0.set_len(length)
        }
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.0.write(offset, data)
    }
}

#[test]
fn durable_14_a_file_that_may_not_grow_is_full() {
    let memory = Limited(redb::backends::InMemoryBackend::new());
    let store = tickwheel_durable::RedbOptions::new().open_backend(memory);
    let bench = Bench::new(store.unwrap());
    let insert = |due| {
        let job = Job::new("mail", vec![7; 100_000]).at(at(due));
        let new = NewJob::new(job, at(0)).unwrap();
        bench.store.commit(&[Change::Insert(new)])
    };
    let refused = (0..99).find_map(|due| insert(due).err());
    assert!(matches!(refused, Some(StoreError::Full)), "{refused:?}");
}
