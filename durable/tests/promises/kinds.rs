//! What holds for kinds: limits, pauses, lists; and what waits for what.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use super::*;

/// How many runs there are now, and were at most.
#[derive(Clone, Default)]
struct Runs(Arc<(AtomicUsize, AtomicUsize)>);

impl Runs {
    fn run(&self) {
        let (now, most) = &*self.0;
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(5));
        now.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

fn jobs(kind: &'static str, count: usize) -> impl Iterator<Item = Job> {
    (0..count).map(move |_| Job::new(kind, ""))
}

/// Eight workers have two limited kinds, and one without a limit.
#[test]
fn a_limit_holds_for_its_kind_alone() {
    let (sender, receiver) = channel();
    let builder = Durable::builder().workers(8).ahead(20);
    let builder = builder.limit_on_all_nodes("three", 9);
    let mut builder = builder.limit("one", 1).limit("three", 3);
    let runs = ["one", "three", "free"].map(|kind| (kind, Runs::default()));
    for (kind, runs) in runs.clone() {
        let sender = sender.clone();
        builder = builder.handler(kind, move |_| {
            runs.run();
            sender.send(()).unwrap();
        });
    }
    let node = builder.open(RedbStore::in_memory()).unwrap();
    let all = jobs("one", 20).chain(jobs("three", 60)).chain(jobs("free", 160));
    assert!(node.schedule_many(all).iter().all(Result::is_ok));
    for _ in 0..240 {
        receiver.recv_timeout(SECOND * 60).unwrap();
    }
    let most = runs.map(|(_, runs)| runs.most());
    assert_eq!((most[0], most[1]), (1, 3));
    assert!(most[2] > 3, "{most:?}");
}

/// More jobs of a limited kind are overdue than the window holds. Another kind runs in time.
#[test]
fn a_limited_kind_fills_nobody_elses_window() {
    let (leave, left) = channel::<()>();
    let left = Mutex::new(left);
    let (sender, receiver) = channel();
    let node = Durable::builder()
        .window_jobs(10)
        .limit("slow", 1)
        .handler("slow", move |_| left.lock().unwrap().recv().unwrap_or(()))
        .handler("note", move |_| sender.send(()).unwrap())
        .open(RedbStore::in_memory())
        .unwrap();
    node.schedule_many(jobs("slow", 100));
    node.schedule_many(jobs("note", 20));
    for _ in 0..20 {
        receiver.recv_timeout(SECOND * 60).unwrap();
    }
    drop(leave);
}

/// Nothing starts while a kind is paused, also after the end of the process; what runs goes on.
#[test]
fn a_paused_kind_waits() {
    let world = World::new();
    let (node, time) = world.node();
    node.schedule(note("early", 10)).unwrap();
    node.schedule(note("later", 20)).unwrap();
    time.run_until(at(15));
    assert_eq!(world.log.texts(), ["early"]);
    node.pause("note").unwrap();
    assert_eq!(node.paused().unwrap(), ["note"]);
    node.schedule(note("new", 16)).unwrap();
    time.run_until(at(25));
    drop((node, time));
    let (node, time) = world.node();
    time.run_until(at(200));
    assert_eq!(world.log.texts(), [""; 0]);
    node.resume("note").unwrap();
    time.run_until(at(200));
    assert_eq!(world.log.texts(), ["new", "later"]);
    assert_eq!(node.paused().unwrap(), [""; 0]);
}

/// Three dead letters of one kind, and one of another.
#[test]
fn dead_letters_are_listed_and_buried_by_kind() {
    let world = World::new();
    let fail = |_: &Attempt| Outcome::Never("no".to_owned());
    let builder = world.notes(fail).handler("mail", fail);
    let (node, time) = world.open(builder);
    for due in [1, 2, 3] {
        node.schedule(note("note", due)).unwrap();
    }
    node.schedule(Job::new("mail", "").at(at(2))).unwrap();
    node.schedule(Job::new("mail", "").at(at(99))).unwrap();
    time.run_until(at(9));
    let list = |list, kind| node.list_kind(list, kind, None, 9).unwrap().len();
    assert_eq!((list(List::Dead, "note"), list(List::Dead, "mail")), (3, 1));
    assert_eq!((list(List::Live, "note"), list(List::Live, "mail")), (0, 1));
    let first = node.list_kind(List::Dead, "note", None, 1).unwrap();
    let rest = node.list_kind(List::Dead, "note", first.first(), 9);
    assert_eq!(rest.unwrap().len(), 2);
    assert_eq!(node.bury_kind("note").unwrap(), 3);
    assert_eq!((world.count(List::Dead), world.count(List::Live)), (1, 1));

    // More than are read at once.
    node.schedule_many(jobs("note", 600));
    time.run_until(at(20));
    assert_eq!(node.bury_kind("note").unwrap(), 600);
    assert_eq!(world.count(List::Dead), 1);
}

#[test]
fn a_name_that_no_database_can_keep_is_refused() {
    let (node, _time) = World::new().node();
    for job in [Job::new("a\0b", ""), Job::new("note", "").key("\0", IfTaken::Keep)] {
        let refused = node.schedule(job.clone()).unwrap_err();
        assert!(matches!(refused.reason, Refusal::Nul), "{refused}");
        assert_eq!(*refused.job, job);
    }
}

/// All workers are busy. Asynchronous handlers need none, and a thousand start in few commits.
#[cfg(feature = "tokio")]
#[test]
fn asynchronous_handlers_wait_for_no_worker() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    let (leave, left) = std::sync::mpsc::sync_channel::<()>(0);
    let (leave, sleeping) = (Mutex::new(leave), Arc::new(AtomicUsize::new(0)));
    let (entered, inside) = channel();
    let sleepers = Arc::clone(&sleeping);
    let node = Durable::builder()
        .workers(1)
        .handler("busy", move |_| {
            entered.send(()).unwrap();
            leave.lock().unwrap().send(()).unwrap_or(());
        })
        .async_handler("sleep", move |_| {
            let sleepers = Arc::clone(&sleepers);
            async move {
                sleepers.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            }
        })
        .ends_within(Duration::from_millis(20))
        .open(RedbStore::in_memory())
        .unwrap();
    node.schedule(Job::new("busy", "")).unwrap();
    inside.recv().unwrap();
    node.schedule_many(jobs("sleep", 1_000));
    let end = std::time::Instant::now() + SECOND * 60;
    while sleeping.load(Ordering::SeqCst) < 1_000 {
        assert!(std::time::Instant::now() < end, "in vain");
        thread::yield_now();
    }
    let commits = node.status().counts.commits;
    assert!(commits < 100, "{commits} commits");
    drop(left);
}

/// The only thread of the runtime has the handler and the end of the node.
#[cfg(feature = "tokio")]
#[tokio::test]
async fn a_node_closes_while_its_handlers_go_on() {
    let store = RedbStore::in_memory();
    let (entered, mut inside) = tokio::sync::mpsc::unbounded_channel();
    let node = Durable::builder()
        .async_handler("sleep", move |_| {
            entered.send(()).unwrap();
            tokio::time::sleep(Duration::from_millis(50))
        })
        .open(store.clone())
        .unwrap();
    node.schedule(Job::new("sleep", "")).unwrap();
    inside.recv().await.unwrap();
    let begin = std::time::Instant::now();
    node.close().await;
    assert!(begin.elapsed() < SECOND * 20, "waits for the limit");
    assert_eq!(store.count(List::Live).unwrap(), 0, "its outcome is stored");
}
