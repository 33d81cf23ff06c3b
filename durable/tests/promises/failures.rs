//! A store that fails, before or after it has carried out a commit.

use super::support::failing::{Failing, Mode};
use super::*;

/// A store that has failed takes no job; what it holds runs once it works again.
#[test]
fn durable_14_a_full_disk_loses_nothing() {
    for how in [Mode::FailsBefore, Mode::FailsAfter] {
        let world = World::new();
        let store = Failing::new(world.store.clone());
        let builder = world.notes(|_| ());
        let (jobs, node) = builder
            .open_virtual(store.clone(), world.clock.clone())
            .unwrap();
        jobs.schedule(note("first", 10)).unwrap();
        node.run_until(at(5));
        store.set(how);
        node.run_until(at(20));
        assert_eq!(world.log.texts(), [""; 0], "no start is durable");
        assert!(jobs.status().failure.is_some());
        assert!(
            !jobs.status().holds_lease,
            "set aside while the store is closed"
        );
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

/// The outcome of a run is kept until the store takes it.
#[test]
fn durable_14_an_outcome_outlives_the_failure() {
    for how in [Mode::FailsBefore, Mode::FailsAfter] {
        let world = World::new();
        let store = Failing::new(world.store.clone());
        let switch = store.clone();
        let builder = world.notes(move |_| switch.set(how));
        let (jobs, node) = builder
            .open_virtual(store.clone(), world.clock.clone())
            .unwrap();
        jobs.schedule(note("once", 10)).unwrap();
        node.run_until(at(20));
        assert_eq!(jobs.status().running, 1);
        store.set(Mode::Works);
        node.run_until(at(30));
        assert_eq!(world.log.take(), [said("once", 10_000)]);
        assert_eq!((world.count(List::Live), jobs.status().running), (0, 0));
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
    let jobs = Durable::builder()
        .handler("note", move |_| sender.send(()).unwrap())
        .open(store)
        .unwrap();
    jobs.schedule(Job::new("note", "")).unwrap();
    receiver.recv().unwrap();
}
