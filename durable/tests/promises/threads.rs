//! A node with its threads, on the system's clock.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use tickwheel_durable::store::{DueJob, NewJob};
use tickwheel_durable::{Health, RedbStore, SystemClock};

use super::support::failing::Failing;
use super::support::hooked::{Hooked, Hooks};
use super::*;

/// Jobs of many threads, each due within a tenth of a second: all run once, none early.
#[test]
fn durable_02_threads_schedule_and_every_job_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let (sender, receiver) = channel();
    let jobs = Durable::builder()
        .handler("note", move |attempt| {
            assert!(attempt.due() <= SystemClock.now(), "early");
            sender.send(attempt.id()).unwrap();
        })
        .open(RedbStore::open(folder.path().join("jobs.redb")).unwrap())
        .unwrap();
    let schedule = |thread: u64| -> Vec<JobId> {
        (0..25)
            .map(|n| {
                let delay = Duration::from_millis((thread * 7 + n * 13) % 100);
                jobs.schedule(Job::new("note", "").after(delay)).unwrap()
            })
            .collect()
    };
    let mut ids: Vec<JobId> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || schedule(n))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut ran: Vec<JobId> = receiver.iter().take(ids.len()).collect();
    ids.sort_unstable();
    ran.sort_unstable();
    assert_eq!(ids, ran);
    drop(jobs);
    assert!(receiver.recv().is_err(), "a job ran twice");
    let jobs = Durable::open(folder.path().join("jobs.redb")).unwrap();
    assert_eq!(jobs.count(List::Live).unwrap(), 0);
}

/// Dropping a node waits for the jobs that it has started, and for their outcomes.
#[test]
fn a_drop_waits_for_running_handlers() {
    let store = RedbStore::in_memory();
    let (entered, inside) = channel();
    let (leave, left) = channel();
    let left = Mutex::new(left);
    let jobs = Durable::builder()
        .handler("note", move |_| {
            entered.send(()).unwrap();
            left.lock().unwrap().recv().unwrap();
        })
        .open(store.clone())
        .unwrap();
    jobs.schedule(Job::new("note", "")).unwrap();
    inside.recv().unwrap();
    assert_eq!((jobs.status().running, jobs.status().late), (1, 0));
    let drop = thread::spawn(move || drop(jobs));
    leave.send(()).unwrap();
    drop.join().unwrap();
    assert_eq!(store.count(List::Live).unwrap(), 0);
}

/// Otherwise another node would start the job beside a handler for which the node still waits.
#[test]
fn durable_03_a_node_that_ends_keeps_its_lease_while_handlers_run() {
    let store = RedbStore::in_memory();
    let (entered, inside) = channel();
    let jobs = Durable::builder()
        .lease(SECOND)
        .handler("note", move |_| {
            entered.send(()).unwrap();
            thread::sleep(SECOND * 5 / 2);
        })
        .open(store.clone())
        .unwrap();
    jobs.schedule(Job::new("note", "")).unwrap();
    inside.recv().unwrap();
    let ends = thread::spawn(move || drop(jobs));
    while !ends.is_finished() {
        let taken = store.acquire("other", &kinds(), SECOND).unwrap();
        let left = store.count(List::Live).unwrap();
        assert!(taken.is_none() || left == 0, "the job may start on another node");
        thread::sleep(SECOND / 100);
    }
}

/// The only worker runs handlers that do not return.
#[test]
fn a_handler_that_does_not_return_is_seen_and_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.redb");
    let (sender, receiver) = channel();
    let (leave, left) = channel::<()>();
    let left = Arc::new(Mutex::new(left));
    // The end of a node does not wait for them. The next one has their jobs, which are interrupted.
    for attempt in 1..3 {
        let (left, sender) = (Arc::clone(&left), sender.clone());
        let jobs = Durable::builder()
            .workers(1)
            .ends_within(Duration::from_millis(20))
            .time_limit("hangs", Duration::from_millis(20))
            .handler("hangs", move |_| left.lock().unwrap().recv())
            .handler("note", move |attempt| sender.send(attempt.id()).unwrap())
            .open(RedbStore::open(&path).unwrap())
            .unwrap();
        let hang = |n| jobs.schedule(Job::new("hangs", "").key(n, IfTaken::Keep)).unwrap();
        let hangs = ["a", "b"].map(hang);
        let other = jobs.schedule(Job::new("note", "").after(Duration::from_millis(50)));
        assert_eq!(receiver.recv_timeout(SECOND * 60).unwrap(), other.unwrap());
        let health = jobs.status().health();
        assert!(matches!(health, Health::Stuck(2)), "{health:?}");
        let attempts = hangs.map(|id| jobs.get(id).unwrap().unwrap().attempts);
        assert_eq!(attempts, [attempt; 2], "no other run begins");
        let begin = Instant::now();
        drop(jobs);
        assert!(begin.elapsed() < SECOND * 20, "waits for longer than is set");
    }
    drop(leave);
}

#[test]
fn durable_07_interrupted_jobs_run_alone() {
    interrupted_jobs_run_alone(|builder| builder);
}

/// They ask whether there is room.
#[test]
fn durable_07_interrupted_jobs_of_a_limited_kind_run_alone() {
    interrupted_jobs_run_alone(|builder| builder.limit("note", 3));
}

/// Four jobs were running when their process died.
fn interrupted_jobs_run_alone(set: impl Fn(Builder) -> Builder) {
    let store = RedbStore::in_memory();
    let kinds = kinds();
    let fence = store.acquire("node", &kinds, HOUR).unwrap().unwrap().fence;
    let insert = |_| Change::Insert(NewJob::new(Job::new("note", ""), SystemClock.now()).unwrap());
    let placed = store.commit(&(0..40).map(insert).collect::<Vec<_>>()).unwrap();
    for answer in &placed[8..12] {
        let Answer::Placed(DueJob { id, version, .. }) = *answer else { panic!("{answer:?}") };
        store.commit(&[Change::Start { id, version, fence }]).unwrap();
    }
    let (running, beside) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (sender, receiver) = channel();
    let (now, most) = (Arc::clone(&running), Arc::clone(&beside));
    let handler = move |attempt: &Attempt| {
        let others = now.fetch_add(1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(5));
        let others = others.max(now.fetch_sub(1, Ordering::SeqCst) - 1);
        if attempt.number() == 2 {
            most.fetch_max(others, Ordering::SeqCst);
        }
        sender.send(()).unwrap();
    };
    let builder = set(Durable::builder().owner("node").workers(4));
    let _jobs = builder.handler("note", handler).open(store).unwrap();
    (0..40).for_each(|_| receiver.recv_timeout(SECOND * 60).unwrap());
    assert_eq!(beside.load(Ordering::SeqCst), 0);
}

/// Far more than the workers, on one thread of the caller's.
#[cfg(feature = "tokio")]
#[test]
fn asynchronous_handlers_run_side_by_side() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    let all = Arc::new(tokio::sync::Barrier::new(1_000));
    let builder = Durable::builder()
        .workers(1)
        .running(2_000)
        .retry("note", Retry::attempts(1))
        .time_limit("slow", Duration::from_millis(20))
        .retry("slow", Retry::attempts(1))
        .async_handler("note", move |attempt| {
            let all = Arc::clone(&all);
            async move {
                all.wait().await;
                assert_ne!(attempt.payload(), b"panics", "at the disco");
            }
        })
        .async_handler("slow", |_| tokio::time::sleep(HOUR));
    let jobs = builder.open(RedbStore::in_memory()).unwrap();
    let texts = (0..1_000).map(|number| if number == 500 { "panics" } else { "" });
    let ids = jobs.schedule_many(texts.map(|text| Job::new("note", text)));
    assert!(ids.iter().all(Result::is_ok));
    let slow = jobs.schedule(Job::new("slow", "")).unwrap();
    let end = Instant::now() + SECOND * 60;
    while jobs.count(List::Dead).unwrap() < 2 || jobs.count(List::Live).unwrap() > 0 {
        assert!(Instant::now() < end, "{:?}", jobs.status());
        thread::sleep(Duration::from_millis(5));
    }
    let failure = |id| jobs.get(id).unwrap().unwrap().failure.unwrap();
    assert!(failure(slow).contains("its limit of 20ms"), "{}", failure(slow));
    assert!(failure(*ids[500].as_ref().unwrap()).contains("at the disco"));
}

/// It blocks a thread of its runtime, and may never end.
#[cfg(feature = "tokio")]
#[test]
fn durable_07_an_interrupted_asynchronous_handler_that_blocks_keeps_no_others() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_time().build().unwrap();
    let _entered = runtime.enter();
    let store = RedbStore::in_memory();
    let fence = store.acquire("node", &kinds(), HOUR).unwrap().unwrap().fence;
    let insert = Change::Insert(NewJob::new(Job::new("job", ""), SystemClock.now()).unwrap());
    let Answer::Placed(DueJob { id, version, .. }) = store.commit(&[insert]).unwrap()[0] else {
        panic!("not placed");
    };
    store.commit(&[Change::Start { id, version, fence }]).unwrap();
    let (entered, inside) = channel();
    let (leave, left) = channel::<()>();
    let left = Arc::new(Mutex::new(left));
    let (sender, receiver) = channel();
    let builder = Durable::builder()
        .owner("node")
        .time_limit("job", Duration::from_millis(20))
        .async_handler("job", move |_| {
            let (entered, left) = (entered.clone(), Arc::clone(&left));
            async move {
                entered.send(()).unwrap();
                left.lock().unwrap().recv()
            }
        })
        .handler("note", move |attempt| sender.send(attempt.id()));
    let jobs = builder.open(store).unwrap();
    inside.recv_timeout(SECOND * 60).unwrap();
    let other = jobs.schedule(Job::new("note", "")).unwrap();
    assert_eq!(receiver.recv_timeout(SECOND * 20), Ok(other));
    let health = jobs.status().health();
    assert!(matches!(health, Health::Stuck(1)), "{health:?}");
    leave.send(()).unwrap();
    let end = Instant::now() + SECOND * 60;
    while jobs.count(List::Live).unwrap() > 0 || jobs.status().late > 0 {
        assert!(Instant::now() < end, "{:?}", jobs.status());
        thread::sleep(Duration::from_millis(5));
    }
}

/// First because its lease is lost, and then because its node ends.
#[cfg(feature = "tokio")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn durable_08_an_asynchronous_handler_is_told_to_end() {
    let world = World::new();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |attempt: Attempt| {
        let sender = sender.clone();
        async move {
            sender.send("begun").unwrap();
            attempt.cancelled().await;
            sender.send("told").unwrap();
        }
    };
    let builder = Durable::builder().lease(HOUR).wall_clock(world.clock.clone());
    let jobs = builder.async_handler("note", handler).open(world.store.clone()).unwrap();
    jobs.schedule(note("job", 0)).unwrap();
    let mut next = async || {
        let next = tokio::time::timeout(SECOND * 60, receiver.recv()).await.expect("not told");
        // It goes on to wait.
        tokio::time::sleep(SECOND / 20).await;
        next.unwrap()
    };
    assert_eq!(next().await, "begun");
    world.clock.set(at(7_200));
    let other = world.store.acquire("other", &kinds(), HOUR).unwrap().unwrap();
    world.store.give_back(other);
    // The start of the next job shows that the lease is lost.
    jobs.schedule(note("next", 0)).unwrap();
    assert_eq!(next().await, "told");
    assert_eq!(next().await, "begun");
    jobs.close().await;
    assert_eq!(next().await, "told");
    assert_eq!(world.count(List::Live), 1, "the interrupted one ran alone");
}

/// What an asynchronous handler holds is dropped with it, and that panics.
#[cfg(feature = "tokio")]
#[test]
fn durable_02_a_panic_of_what_a_late_handler_holds_is_a_failure() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    let _entered = runtime.enter();
    let jobs = Durable::builder()
        .time_limit("slow", Duration::from_millis(20))
        .retry("slow", Retry::attempts(1))
        .async_handler("slow", |_| async {
            let _bomb = Bomb;
            std::future::pending::<()>().await;
        })
        .open(RedbStore::in_memory())
        .unwrap();
    let id = jobs.schedule(Job::new("slow", "")).unwrap();
    let end = Instant::now() + SECOND * 20;
    while jobs.count(List::Dead).unwrap() == 0 {
        assert!(Instant::now() < end, "{:?}", jobs.status());
        thread::sleep(Duration::from_millis(5));
    }
    let failure = jobs.get(id).unwrap().unwrap().failure;
    assert_eq!(failure.as_deref(), Some("panicked: dropped"));
}

/// Starts and outcomes linger for an hour.
struct Lingering;

impl Hooks for Lingering {
    fn linger(&self) -> Duration {
        HOUR
    }
}

/// A node may outlive the runtime of its handlers, which drops them. One that did not begin costs no
/// attempt.
#[cfg(feature = "tokio")]
#[test]
fn durable_02_a_run_whose_runtime_has_ended_has_failed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let entered = runtime.enter();
    let (sender, started) = channel();
    let handler = move |_| {
        sender.send(()).unwrap();
        std::future::pending::<()>()
    };
    let builder = Durable::builder().async_handler("note", handler);
    let jobs = builder.retry("note", Retry::attempts(1)).open(RedbStore::in_memory()).unwrap();
    drop(entered);
    let wait = |until: &dyn Fn() -> bool| {
        let end = Instant::now() + SECOND * 20;
        while !until() {
            assert!(Instant::now() < end, "{jobs:?}");
            thread::sleep(SECOND / 1_000);
        }
    };
    jobs.schedule(Job::new("note", "")).unwrap();
    started.recv().unwrap();
    runtime.shutdown_background();
    wait(&|| jobs.count(List::Dead).unwrap() == 1);
    jobs.schedule(Job::new("note", "")).unwrap();
    wait(&|| jobs.status().counts.again == 2);
    assert_eq!((jobs.count(List::Live).unwrap(), jobs.count(List::Dead).unwrap()), (1, 1));
}

/// What panics when the window is loaded.
struct Panics;

impl Hooks for Panics {
    fn before_load(&self, _: &[String]) -> Result<(), StoreError> {
        panic!("a page")
    }
}

#[test]
fn durable_14_a_store_that_panics_is_a_failure() {
    let store = Hooked::with(RedbStore::in_memory(), Panics);
    let jobs = Durable::builder().handler("note", |_| ()).open(store).unwrap();
    let end = Instant::now() + SECOND * 60;
    while !matches!(jobs.status().health(), Health::Failing(StoreError::Damaged(_))) {
        assert!(Instant::now() < end, "{jobs:?}");
        thread::sleep(SECOND / 100);
    }
}

/// The only worker would wait for each start, and the end for the last outcome.
#[test]
fn a_backlog_and_the_end_of_a_node_do_not_linger() {
    let store = RedbStore::in_memory();
    let (sender, receiver) = channel();
    let jobs = Durable::builder()
        .workers(1)
        .ahead(0)
        .lease(HOUR * 24)
        .handler("note", move |_| sender.send(()).unwrap())
        .open(Hooked::with(store.clone(), Lingering))
        .unwrap();
    let ten = (0..10).map(|_| Job::new("note", ""));
    assert!(jobs.schedule_many(ten).iter().all(Result::is_ok));
    (0..10).for_each(|_| receiver.recv_timeout(SECOND * 60).unwrap());
    drop(jobs);
    assert_eq!(store.count(List::Live).unwrap(), 0);
}

/// A new version of a service is there, with another schedule, before the old one has ended.
#[test]
fn durable_11_the_last_outcome_of_a_node_knows_a_schedule_that_has_changed() {
    let (inner, every) = (RedbStore::in_memory(), |period| Job::new("note", "").every(period));
    let (store, new) = (Failing::new(inner.clone()), inner.clone());
    store.on_commit(move |changes| {
        if let [Change::Finish { recurrence: Some(old), .. }] = changes
            && old.to_string().starts_with("every 3600000000 ")
        {
            // The workers end meanwhile.
            std::thread::sleep(SECOND / 10);
            let job = NewJob::new(every(HOUR * 9), SystemClock.now()).unwrap();
            new.commit(&[Change::Insert(job)]).unwrap();
        }
        Ok(())
    });
    let (sender, begun) = channel();
    let handler = move |attempt: &Attempt| {
        sender.send(()).unwrap();
        while !attempt.is_cancelled() {
            std::thread::yield_now();
        }
    };
    let jobs = Durable::builder().handler("note", handler).open(store).unwrap();
    let id = jobs.schedule(every(HOUR)).unwrap();
    begun.recv().unwrap();
    drop(jobs);
    let job = inner.get(id).unwrap().unwrap();
    assert_eq!((job.state, job.attempts), (State::Waiting, 0));
    assert!(job.due > SystemClock.now() + HOUR * 8, "{}", job.due);
}

/// The outcome of the handler is committed after the node is gone.
#[test]
fn durable_02_a_handler_may_drop_its_own_node() {
    let store = Failing::new(RedbStore::in_memory());
    let (sender, finished) = channel();
    store.on_commit(move |changes| {
        if let [Change::Finish { .. }] = changes {
            sender.send(()).unwrap();
        }
        Ok(())
    });
    let node = Arc::new(Mutex::new(None));
    let own: Arc<Mutex<Option<Durable>>> = Arc::clone(&node);
    // The handler waits until the node is there.
    let mut place = node.lock().unwrap();
    let jobs = Durable::builder()
        .handler("note", move |_| drop(own.lock().unwrap().take()))
        .open(store)
        .unwrap();
    jobs.schedule(Job::new("note", "")).unwrap();
    *place = Some(jobs);
    drop(place);
    // The sender is gone with the store.
    finished.recv().expect("the outcome was dropped");
}

/// Neither its drop nor its close waits for the handler that calls it.
#[cfg(feature = "tokio")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn durable_02_an_asynchronous_handler_may_end_its_own_node() {
    for closes in [false, true] {
        let store = Failing::new(RedbStore::in_memory());
        let (sender, mut finished) = tokio::sync::mpsc::unbounded_channel();
        store.on_commit(move |changes| {
            if let [Change::Finish { .. }] = changes {
                sender.send(()).unwrap();
            }
            Ok(())
        });
        let (node, own) = tokio::sync::oneshot::channel::<Durable>();
        let own = Arc::new(tokio::sync::Mutex::new(Some(own)));
        let end = move |_| {
            let own = Arc::clone(&own);
            async move {
                let node = own.lock().await.take().unwrap().await.unwrap();
                if closes { node.close().await } else { drop(node) }
            }
        };
        let builder = Durable::builder().ends_within(HOUR).async_handler("note", end);
        let jobs = builder.open(store).unwrap();
        jobs.schedule(Job::new("note", "")).unwrap();
        assert!(node.send(jobs).is_ok());
        let outcome = tokio::time::timeout(SECOND * 60, finished.recv()).await;
        outcome.expect("waits for itself").expect("the outcome was dropped");
    }
}

/// A clock of the caller's, which steps while threads sleep.
#[test]
fn durable_10_a_step_wakes_a_sleeping_node() {
    let world = World::new();
    let (sender, receiver) = channel();
    let jobs = Durable::builder()
        .wall_clock(world.clock.clone())
        .handler("note", move |_| sender.send(()).unwrap())
        .open(world.store.clone())
        .unwrap();
    jobs.schedule(note("in an hour", 3_600)).unwrap();
    world.clock.set(at(3_600));
    jobs.clock_stepped();
    receiver.recv().unwrap();
}

/// Nothing is committed, so only the request for a lease meets the failure.
#[test]
fn durable_14_a_lease_that_was_not_granted_is_recovered() {
    let world = World::new();
    let (idle, _node) = world.open(Durable::builder());
    idle.schedule(note("job", 0)).unwrap();
    let store = Failing::new(world.store.clone());
    let failing = store.clone();
    store.on_commit(move |_| match failing.recoveries() {
        0 => Err(StoreError::NotWriting),
        _ => Ok(()),
    });
    let (sender, receiver) = channel();
    let _jobs = Durable::builder()
        .lease(Duration::from_millis(100))
        .wall_clock(world.clock.clone())
        .handler("note", move |_| sender.send(()).unwrap())
        .open(store)
        .unwrap();
    receiver.recv_timeout(SECOND * 60).unwrap();
}
