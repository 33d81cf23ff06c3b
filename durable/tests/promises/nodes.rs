//! Several nodes on one store, one after the other and beside each other.

use super::support::failing::Failing;
use super::*;

/// Runs two nodes beside each other on one wall clock, a second at a time.
fn run_both(world: &World, nodes: [&VirtualNode; 2], until: u64) {
    while world.clock.now() < at(until) {
        let next = world.clock.now() + SECOND;
        for node in nodes {
            node.run_until(world.clock.now());
        }
        nodes[0].run_until(next);
    }
}

#[test]
fn a_second_node_waits_until_the_lease_of_the_first_runs_out() {
    let world = World::new();
    let named = |name: &'static str| {
        let log = world.log.clone();
        let clock = world.clock.clone();
        Durable::builder().owner(name).handler("note", move |_| log.note(name, clock.now()))
    };
    let (jobs, first) = world.open(named("first"));
    let (_other, second) = world.open(named("second"));
    for due in [5, 15, 25] {
        jobs.schedule(note("job", due)).unwrap();
    }
    first.run_until(at(0));
    run_both(&world, [&first, &second], 12);
    assert_eq!(world.log.texts(), ["first"]);
    // The first node dies. Its lease of ten seconds ends.
    second.run_until(at(40));
    let ran = world.log.take();
    assert_eq!(ran.len(), 2);
    assert!(ran.iter().all(|(name, _)| name == "second"), "{ran:?}");
    assert!(ran[0].1 <= 24_000, "taken over within the lease: {ran:?}");
}

/// A node that was paused for longer than its lease comes back with an outcome.
#[test]
fn durable_08_a_late_outcome_is_refused() {
    let world = World::new();
    let (store, clock) = (world.store.clone(), world.clock.clone());
    let builder = world.notes(move |attempt| {
        if attempt.number() == 1 {
            // Pauses: another node takes the lease and starts the job.
            clock.set(clock.now() + SECOND * 11);
            let fence = store.acquire("other", &kinds(), SECOND).unwrap().unwrap().fence;
            assert!(fence > attempt.fence());
            let start = Change::Start { id: attempt.id(), version: attempt.job().version, fence };
            assert!(matches!(store.commit(&[start]).unwrap()[0], Answer::Started { .. }));
        }
    });
    let (jobs, node) = world.open(builder);
    let id = jobs.schedule(note("job", 5)).unwrap();
    node.run_until(at(6));
    let found = jobs.get(id).unwrap();
    assert!(found.is_some_and(|job| job.attempts == 2), "not completed");
    // The other node does nothing, and its lease ends: the job runs once more.
    node.run_until(at(60));
    assert_eq!(world.log.texts(), ["job", "job"]);
    assert_eq!((world.count(List::Live), jobs.status().running), (0, 0));
}

#[test]
fn durable_08_a_move_outlives_the_outcome() {
    let world = World::new();
    let builder = world.notes(|attempt| {
        if attempt.due() == at(5) {
            assert!(attempt.jobs().reschedule(attempt.id(), at(50)).unwrap());
        }
    });
    let (jobs, node) = world.open(builder);
    jobs.schedule(note("job", 5)).unwrap();
    node.run_until(at(100));
    assert_eq!(world.log.take(), [said("job", 5_000), said("job", 50_000)]);
    assert_eq!(world.count(List::Live), 0);
}

/// Otherwise a job with one attempt that moves itself would be dead before its second run.
#[test]
fn durable_08_a_move_forgets_the_attempts() {
    let world = World::new();
    let builder = world.notes(|attempt| {
        if attempt.due() < at(30) {
            let next = attempt.due() + SECOND * 10;
            assert!(attempt.jobs().reschedule(attempt.id(), next).unwrap());
        }
        Err::<(), _>("no line")
    });
    let (jobs, node) = world.open(builder.retry("note", Retry::attempts(1)));
    jobs.schedule(note("job", 10)).unwrap();
    node.run_until(at(100));
    assert_eq!(world.log.texts(), ["job"; 3]);
    assert_eq!(world.count(List::Dead), 1);
}

/// While a job runs, nothing starts it again: neither a move into the past nor a replacement.
#[test]
fn durable_03_one_handler_at_a_time_for_each_job() {
    let world = World::new();
    let running = Arc::new(Mutex::new(0));
    let builder = world.notes(move |attempt| {
        let mut count = running.try_lock().expect("beside itself");
        *count += 1;
        if *count < 5 {
            let again = note("again", 0).key("k", IfTaken::Replace);
            attempt.jobs().schedule(again).unwrap();
            attempt.jobs().clock_stepped();
        }
    });
    let (jobs, node) = world.open(builder);
    jobs.schedule(note("job", 5).key("k", IfTaken::Refuse)).unwrap();
    node.run_until(at(100));
    assert_eq!(world.log.texts(), ["job", "again", "again", "again", "again"]);
    assert_eq!(world.count(List::Live), 0);
}

/// Two jobs are started in one commit. While the first one runs, another node takes the lease.
#[test]
fn durable_03_no_handler_starts_after_the_lease_is_lost() {
    let world = World::new();
    let (store, clock) = (world.store.clone(), world.clock.clone());
    let builder = world.notes(move |attempt| {
        if attempt.payload() == b"first" && attempt.number() == 1 {
            clock.set(clock.now() + SECOND * 11);
            store.acquire("other", &kinds(), SECOND * 30).unwrap().unwrap();
        }
    });
    let (jobs, node) = world.open(builder);
    jobs.schedule(note("first", 5)).unwrap();
    jobs.schedule(note("second", 5)).unwrap();
    node.run_until(at(40));
    assert_eq!(world.log.texts(), ["first"]);
    assert_eq!(jobs.status().running, 0);
    // The lease of the other node has ended.
    node.run_until(at(60));
    assert_eq!(world.log.texts(), ["first", "second"]);
    assert_eq!((world.count(List::Live), jobs.status().running), (0, 0));
}

/// Not even a lease was taken, and a handle lives.
#[test]
fn a_file_is_closed_with_its_node() {
    let (world, folder) = (World::new(), tempfile::tempdir().unwrap());
    let open = || RedbStore::open(folder.path().join("jobs.redb"));
    let opened = world.notes(|_| ()).open_virtual(open().unwrap(), world.clock.clone());
    let (durable, _node) = opened.unwrap();
    let jobs = Jobs::clone(&durable);
    drop(durable);
    open().unwrap();
    assert!(jobs.schedule(note("job", 5)).is_err());
}

#[test]
fn a_node_without_a_lease_asks_ten_times_in_its_length() {
    let world = World::new();
    world.store.acquire("other", &kinds(), HOUR).unwrap().unwrap();
    let store = Failing::new(world.store.clone());
    let builder = world.notes(|_| ());
    let (_jobs, node) = builder.open_virtual(store.clone(), world.clock.clone()).unwrap();
    node.run_until(at(100));
    assert!((100..=102).contains(&store.acquires()), "{}", store.acquires());
}

#[test]
fn extreme_settings_are_cut() {
    let world = World::new();
    let builder = world.notes(|_| ()).lease(Duration::MAX).ahead(usize::MAX);
    let builder = builder.window(Duration::MAX).window_jobs(usize::MAX);
    let (jobs, node) = world.open(builder.running(usize::MAX));
    jobs.schedule(note("job", 5)).unwrap();
    node.run_until(at(10));
    let horizon = jobs.status().horizon;
    assert!(horizon < at(10) + HOUR * 24 * 366, "{horizon}");
    jobs.schedule(note("job", 3_600)).unwrap();
    node.run_until(at(4_000));
    assert_eq!(world.log.texts(), ["job", "job"]);
}

/// Otherwise each would take the lease of the other.
#[test]
fn durable_03_nodes_have_different_names() {
    let world = World::new();
    let unnamed = || Durable::builder().handler("note", |_| ());
    let (first, one) = world.open(unnamed());
    let (second, other) = world.open(unnamed());
    one.run_until(at(0));
    other.run_until(at(0));
    assert!(first.status().holds_lease && !second.status().holds_lease);
}

/// The handler of a cancelled job is not waited for.
#[test]
fn durable_06_a_cancelled_run_has_no_key() {
    let world = World::new();
    let builder = world.notes(|attempt| {
        if attempt.payload() == b"first" {
            attempt.jobs().cancel(attempt.id()).unwrap();
            let second = note("second", 5).key("k", IfTaken::Refuse);
            attempt.jobs().schedule(second).unwrap();
        }
    });
    let (jobs, node) = world.open(builder);
    jobs.schedule(note("first", 5).key("k", IfTaken::Refuse)).unwrap();
    node.run_until(at(10));
    assert_eq!(world.log.texts(), ["first", "second"]);
}
