//! A store that fails, before or after it has carried out a commit.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use redb::ReadableTable as _;
use tickwheel_durable::{Health, RedbStore};

use super::support::failing::{Failing, Mode};
use super::support::hooked::{Hooked, Hooks};
use super::*;

/// A store that has failed takes no job; what it holds runs once it works again.
#[test]
fn durable_14_a_full_disk_loses_nothing() {
    for how in [Mode::FailsBefore, Mode::FailsAfter] {
        let world = World::new();
        let store = Failing::new(world.store.clone());
        let builder = world.notes(|_| ());
        let (jobs, node) = builder.open_virtual(store.clone(), world.clock.clone()).unwrap();
        jobs.schedule(note("first", 10)).unwrap();
        node.run_until(at(5));
        store.set(how);
        node.run_until(at(20));
        assert_eq!(world.log.texts(), [""; 0], "no start is durable");
        assert!(jobs.status().failure.is_some());
        assert!(!jobs.status().holds_lease, "set aside while the store is closed");
        let refused = jobs.schedule(note("second", 30)).unwrap_err();
        assert!(matches!(refused.reason, Refusal::Store(StoreError::Full)));
        assert_eq!(refused.job.into_payload(), b"second");

        store.set(Mode::Works);
        node.run_until(at(21));
        assert_eq!(world.log.take(), [said("first", 20_000)]);
        assert_eq!((world.count(List::Live), jobs.status().running), (0, 0));
        assert!(jobs.status().holds_lease);
        jobs.schedule(note("third", 30)).unwrap();
        node.run_until(at(31));
        assert_eq!(world.log.take(), [said("third", 30_000)]);
    }
}

/// What fails to load the window while it is set.
#[derive(Default)]
struct Unread(AtomicBool);

impl Hooks for Unread {
    fn before_load(&self, _: &[String]) -> Result<(), StoreError> {
        if self.0.load(Ordering::SeqCst) {
            Err(StoreError::Damaged("a page".to_owned()))
        } else {
            Ok(())
        }
    }
}

/// Otherwise a node that runs nothing, because its store cannot be read, would count as working.
#[test]
fn durable_14_a_window_that_cannot_be_loaded_is_a_failure() {
    let world = World::new();
    let store = Hooked::with(world.store.clone(), Unread::default());
    let builder = world.notes(|_| ());
    let (jobs, node) = builder.open_virtual(store.clone(), world.clock.clone()).unwrap();
    jobs.schedule(note("job", 80)).unwrap();
    node.run_until(at(5));
    store.hooks.0.store(true, Ordering::SeqCst);
    node.run_until(at(90));
    let health = jobs.status().health();
    assert!(matches!(&health, Health::Failing(StoreError::Damaged(_))), "{health:?}");
    assert!(jobs.status().counts.store_failures > 0);
    store.hooks.0.store(false, Ordering::SeqCst);
    node.run_until(at(92));
    assert_eq!(world.log.texts(), ["job"]);
    assert!(matches!(jobs.status().health(), Health::Working));
}

/// What fails to load the window of this kind, and how often it did.
struct UnreadKind(&'static str, AtomicUsize);

impl Hooks for UnreadKind {
    fn before_load(&self, kinds: &[String]) -> Result<(), StoreError> {
        if kinds.iter().any(|kind| kind == self.0) {
            self.1.fetch_add(1, Ordering::SeqCst);
            Err(StoreError::Damaged("a page".to_owned()))
        } else {
            Ok(())
        }
    }
}

/// A kind with a limit has a window of its own.
#[test]
fn durable_14_a_kind_that_cannot_be_loaded_keeps_no_other() {
    for unread in ["first", "last"] {
        let world = World::new();
        let store = Hooked::with(world.store.clone(), UnreadKind(unread, AtomicUsize::new(0)));
        let loads = Arc::clone(&store.hooks);
        let builder = Durable::builder().handler("first", |_| ()).limit("first", 1);
        let builder = builder.handler("last", |_| ()).limit("last", 1);
        let (jobs, node) = builder.open_virtual(store, world.clock.clone()).unwrap();
        let kinds = ["first", "last"].map(|kind| jobs.schedule(Job::new(kind, "").at(at(80))));
        assert!(kinds.iter().all(Result::is_ok));
        node.run_until(at(90));
        let left = jobs.list(List::Live, None, 9).unwrap();
        let left: Vec<_> = left.iter().map(|job| job.kind.as_str()).collect();
        assert_eq!(left, [unread]);
        let is_failing =
            || matches!(jobs.status().health(), Health::Failing(StoreError::Damaged(_)));
        assert!(is_failing());

        // It is read again once a second, and not with each commit of other kinds.
        let before = loads.1.load(Ordering::SeqCst);
        let read = if unread == "first" { "last" } else { "first" };
        for millis in 1..=100 {
            jobs.schedule(Job::new(read, "")).unwrap();
            node.run_until(at(90) + Duration::from_millis(20 * millis));
            assert!(is_failing());
        }
        assert_eq!(world.count(List::Live), 1);
        let loads = loads.1.load(Ordering::SeqCst) - before;
        assert!((1..=3).contains(&loads), "{loads} loads");
    }
}

/// The outcome of a run is kept until the store takes it.
#[test]
fn durable_14_an_outcome_outlives_the_failure() {
    for how in [Mode::FailsBefore, Mode::FailsAfter] {
        let world = World::new();
        let store = Failing::new(world.store.clone());
        let switch = store.clone();
        let builder = world.notes(move |_| switch.set(how));
        let (jobs, node) = builder.open_virtual(store.clone(), world.clock.clone()).unwrap();
        jobs.schedule(note("once", 10)).unwrap();
        node.run_until(at(20));
        assert_eq!(jobs.status().running, 1);
        store.set(Mode::Works);
        node.run_until(at(30));
        assert_eq!(world.log.take(), [said("once", 10_000)]);
        assert_eq!((world.count(List::Live), jobs.status().running), (0, 0));
    }
}

/// What becomes of a row.
type Damage = fn(&[u8]) -> Vec<u8>;

/// Overwrites the row of the job that is due first.
fn damage(path: &Path, how: Damage) {
    let live = redb::TableDefinition::<(u64, u64), &[u8]>::new("live");
    let database = redb::Database::open(path).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut table = transaction.open_table(live).unwrap();
    let (first, row) = {
        let (first, row) = table.first().unwrap().unwrap();
        (first.value(), how(row.value()))
    };
    table.insert(first, &*row).unwrap();
    drop(table);
    transaction.commit().unwrap();
}

/// A row of which nothing can be read, and one whose beginning can be read.
#[test]
fn durable_14_a_damaged_row_stops_no_other_job() {
    let damages: [Damage; 3] =
        [|_| Vec::new(), |_| vec![9; 40], |row| row[..row.len() - 1].to_vec()];
    for how in damages {
        let folder = tempfile::tempdir().unwrap();
        let (world, path) = (World::new(), folder.path().join("jobs.redb"));
        let jobs = Durable::open(&path).unwrap();
        jobs.schedule(note("damaged", 10)).unwrap();
        jobs.schedule(note("whole", 11)).unwrap();
        drop(jobs);
        damage(&path, how);
        let store = RedbStore::open(&path).unwrap();
        let builder = world.notes(|_| ());
        let (jobs, node) = builder.open_virtual(store, world.clock.clone()).unwrap();
        node.run_until(at(20));
        assert_eq!(world.log.texts(), ["whole"]);
        assert_eq!((jobs.status().set_aside, jobs.status().running), (1, 0));
        assert!(jobs.status().failure.is_none());
        jobs.schedule(note("next", 30)).unwrap();
        node.run_until(at(4_000));
        assert_eq!(world.log.texts(), ["next"]);
        assert_eq!(jobs.status().set_aside, 1, "it was tried again");
    }
}

/// A store that panics while the node keeps its lease ends no thread.
#[test]
fn durable_02_a_panic_of_the_store_does_not_end_the_keeper() {
    let world = World::new();
    let store = Failing::new(world.store.clone());
    let mut panics = 1;
    store.on_commit(move |changes| {
        if changes.is_empty() && panics > 0 {
            panics -= 1;
            panic!("out of luck");
        }
        Ok(())
    });
    let (sender, receiver) = std::sync::mpsc::channel();
    let jobs =
        Durable::builder().handler("note", move |_| sender.send(()).unwrap()).open(store).unwrap();
    jobs.schedule(Job::new("note", "")).unwrap();
    receiver.recv().unwrap();
}
