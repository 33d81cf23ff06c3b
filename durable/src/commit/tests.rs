//! Commits on a store that fails by a hook.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use super::*;
use crate::job::{Job, JobId};
use crate::node::{Lanes, Settings};
use crate::outcome::Bomb;
use crate::store::{NewJob, RedbStore, Then};
use crate::support::failing::Failing;
use crate::wall::{ManualClock, WallTime};

fn at(secs: u64) -> WallTime {
    WallTime::from_unix_micros((1_800_000_000 + secs) * 1_000_000)
}

fn node(store: &Failing) -> Node {
    let clock = ManualClock::new(at(0));
    let (engine, _) = tickwheel::Engine::builder().start_virtual().unwrap();
    let mut lanes = Lanes::default();
    lanes.add("job".into(), None, true);
    let settings = Settings {
        owner: "node".to_owned(),
        window: Duration::from_secs(60),
        window_jobs: 100,
        running: 100,
        workers: 4,
        ahead: 0,
        lease: Duration::from_secs(10),
        keeps_dead: None,
        lanes,
    };
    Node::new(Box::new(store.clone()), Arc::new(clock), engine, settings)
}

fn insert() -> Vec<Change> {
    let job = Job::new("job", "bytes").at(at(10));
    vec![Change::Insert(NewJob::new(job, at(0)).unwrap())]
}

fn finish(number: u64) -> Change {
    let id = JobId::new(at(0), number);
    Change::Finish { id, version: 1, fence: 0, recurrence: None, then: Then::End }
}

/// Returns the payload that came back, and the error.
fn refused(reply: &Receiver<Reply>) -> (Vec<Change>, StoreError) {
    let (answers, changes) = reply.try_recv().expect("no answer");
    (changes, answers.unwrap_err())
}

fn of_bytes(bytes: usize) -> Request {
    let job = Job::new("job", vec![0; bytes]);
    Request {
        changes: vec![Change::Insert(NewJob::new(job, at(0)).unwrap())],
        answered: Box::new(|_| None),
    }
}

/// Returns the bytes of the requests that a commit takes.
fn take(queue: &mut Queue, most: usize) -> Vec<usize> {
    queue.take(most).iter().map(Request::bytes).collect()
}

/// A database would refuse all large ones together.
#[test]
fn a_commit_has_a_bound_of_bytes() {
    let mut queue = Queue::default();
    for bytes in [9, 3, 4, 20, 1] {
        queue.push(of_bytes(bytes));
    }
    let takes = [(); 4].map(|()| take(&mut queue, 12));
    assert_eq!(takes, [vec![9, 3], vec![4, 1], vec![20], vec![]]);
    assert!(queue.requests.is_empty() && !queue.has_caller);
}

/// Small jobs wait for one large one at most, and large ones for no more than one commit of small ones.
#[test]
fn small_and_large_requests_take_turns() {
    let mut queue = Queue::default();
    for bytes in [9, 9, 9, 0] {
        queue.push(of_bytes(bytes));
    }
    let takes = [(); 5].map(|()| {
        let taken = take(&mut queue, 12);
        queue.push(of_bytes(0));
        taken
    });
    assert_eq!(takes, [vec![0], vec![9, 0], vec![0], vec![9, 0], vec![9, 0]]);
}

#[test]
fn the_pauses_grow_until_a_commit_succeeds() {
    let mut pauses = Pauses::default();
    let millis = [(); 9].map(|()| pauses.next().as_millis());
    assert_eq!(millis, [0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
}

/// On a full disk the file can be opened, and the next commit fails again.
#[test]
fn durable_14_a_store_that_recovers_in_vain_is_left_in_peace() {
    let store = Failing::new(RedbStore::in_memory());
    let (node, commits) = (node(&store), Arc::new(Commits::default()));
    let (calls, closing) = (AtomicU32::new(0), Arc::clone(&commits));
    store.on_commit(move |_| match calls.fetch_add(1, Ordering::SeqCst) {
        0..3 => Err(StoreError::Full),
        _ => {
            closing.close();
            Ok(())
        }
    });
    commits.post(vec![finish(1)]);
    let begin = Instant::now();
    commits.work(&node, || ());
    assert!(begin.elapsed() >= FIRST_PAUSE * 3, "no pauses");
}

#[test]
fn a_pause_lasts_whatever_is_handed_in() {
    let commits = Commits::default();
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            while begin.elapsed() < FIRST_PAUSE / 2 {
                commits.post(vec![finish(1)]);
                thread::yield_now();
            }
        });
        assert!(commits.rest(FIRST_PAUSE));
        assert!(begin.elapsed() >= FIRST_PAUSE);
    });
}

/// What is handed in while a commit fails gets its answer at once.
#[test]
fn durable_12_an_insert_beside_a_failing_commit_comes_back() {
    let store = Failing::new(RedbStore::in_memory());
    let (node, commits) = (node(&store), Arc::new(Commits::default()));
    let (other, beside) = (Arc::clone(&commits), Arc::new(Mutex::new(None)));
    let reply = Arc::clone(&beside);
    store.on_commit(move |_| {
        *reply.lock() = Some(other.request(insert()));
        other.post(vec![finish(1)]);
        Err(StoreError::Full)
    });
    let first = commits.request(insert());
    commits.commit_all(&node);
    let beside = beside.lock().take().unwrap();
    for reply in [first, beside] {
        let (changes, error) = refused(&reply);
        assert_eq!(changes, insert());
        assert!(matches!(error, StoreError::Full));
    }
    assert_eq!(commits.queue.lock().requests.len(), 1, "the outcome is kept");
}

/// The next load would try it again at once, and for ever.
#[test]
fn durable_14_a_job_that_cannot_be_started_is_left_alone() {
    let store = Failing::new(RedbStore::in_memory_by(ManualClock::new(at(0))));
    let (node, commits) = (node(&store), Commits::default());
    node.keep();
    let reply = commits.request(insert());
    commits.commit_all(&node);
    let Answer::Placed(job) = reply.try_recv().unwrap().0.unwrap()[0] else {
        panic!("not stored");
    };
    store.damage(|change| matches!(change, Change::Start { .. }));
    let start =
        Change::Start { id: job.id, version: job.version, fence: node.lease().unwrap().fence };
    let reply = commits.request(vec![start]);
    commits.commit_all(&node);
    let answers = reply.try_recv().unwrap().0.unwrap();
    assert!(matches!(answers[..], [Answer::Damaged(_)]));
    node.ask_for_load();
    node.keep();
    let window = &node.windows.lock()[0];
    assert_eq!((window.armed(), window.set_aside()), (0, 1));
}

/// A panic of the store is an answer to its callers, too.
#[test]
fn durable_12_a_panic_of_the_store_gives_the_job_back() {
    let store = Failing::new(RedbStore::in_memory());
    let (node, commits) = (node(&store), Commits::default());
    store.on_commit(|_| panic!("out of luck"));
    let reply = commits.request(insert());
    commits.commit_all(&node);
    let (changes, error) = refused(&reply);
    assert_eq!(changes, insert());
    assert!(matches!(error, StoreError::Damaged(_)));
    store.on_commit(|_| Ok(()));
    assert!(commits.try_recover(&node));
    let reply = commits.request(insert());
    commits.commit_all(&node);
    assert!(reply.try_recv().unwrap().0.is_ok());
}

/// A change that was refused may have happened: the window is loaded after the recovery.
#[test]
fn a_recovery_asks_for_a_load() {
    let store = Failing::new(RedbStore::in_memory());
    let (node, commits) = (node(&store), Commits::default());
    node.keep();
    assert!(!node.windows.lock()[0].wants_load(at(0)));
    store.set(crate::support::failing::Mode::FailsAfter);
    let reply = commits.request(insert());
    commits.commit_all(&node);
    assert!(matches!(refused(&reply).1, StoreError::Full));
    store.set(crate::support::failing::Mode::Works);
    assert!(commits.try_recover(&node));
    assert!(node.take_load_due() && node.windows.lock()[0].wants_load(at(0)));
    node.keep();
    assert_eq!(node.windows.lock()[0].armed(), 1, "the stored job is armed");
}

/// Nothing else ends the lingering of starts and outcomes before its time.
#[test]
fn starts_and_outcomes_linger_until_somebody_waits() {
    let commits = Commits::new(Duration::from_millis(5));
    let is_urgent = || commits.queue.lock().is_urgent();
    commits.post(vec![finish(1)]);
    assert!(!is_urgent());
    let caller = commits.request(insert());
    assert!(is_urgent());
    drop((commits.take_requests(), caller));
    assert!(!is_urgent());
    commits.hurried(|| assert!(is_urgent()));
    assert!(!is_urgent());
    commits.end();
    assert!(is_urgent());
}

/// Each commit begins no sooner than a set time after the last one began.
#[test]
fn outcomes_linger_after_a_commit() {
    const LINGER: Duration = Duration::from_millis(50);
    let (node, commits) = (node(&Failing::new(RedbStore::in_memory())), Commits::new(LINGER));
    let begin = Instant::now();
    for number in 1..=3 {
        commits.post(vec![finish(number)]);
        assert!(commits.wait());
        commits.commit_all(&node);
    }
    assert!(begin.elapsed() >= LINGER * 2, "{:?}", begin.elapsed());
}

/// The first outcome is committed at once. The second one lingers, until a caller's change takes
/// it along.
#[test]
fn a_callers_change_takes_along_what_lingers() {
    let store = Failing::new(RedbStore::in_memory());
    let commits = Arc::new(Commits::new(Duration::from_secs(3_600)));
    let (sender, committed) = sync_channel(9);
    store.on_commit(move |changes| {
        sender.send(changes.len()).unwrap();
        Ok(())
    });
    let (node, committing) = (node(&store), Arc::clone(&commits));
    let thread = thread::spawn(move || committing.work(&node, || ()));
    let next = || committed.recv_timeout(Duration::from_secs(60)).unwrap();
    commits.post(vec![finish(1)]);
    assert_eq!(next(), 1);
    commits.post(vec![finish(2)]);
    let caller = commits.request(insert());
    assert_eq!(next(), 2);
    assert!(caller.recv().unwrap().0.is_ok());
    commits.post(vec![finish(3)]);
    assert_eq!(commits.hurried(next), 1);
    commits.post(vec![finish(4)]);
    commits.end();
    assert_eq!(next(), 1);
    commits.close();
    thread.join().unwrap();
}

#[test]
fn a_closed_node_takes_nothing() {
    let commits = Commits::default();
    commits.close();
    let (changes, error) = refused(&commits.request(insert()));
    assert_eq!(changes, insert());
    assert!(matches!(error, StoreError::NotWriting));
}

/// Otherwise the thread that commits would end, and callers would wait for ever.
#[test]
fn durable_12_a_store_whose_panic_has_a_payload_that_panics_is_damaged() {
    let answer: Result<()> = guarded(|| std::panic::panic_any(Bomb));
    assert!(matches!(answer, Err(StoreError::Damaged(_))));
}
