//! Whole nodes beside each other in one process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use tokio_postgres::{Config, NoTls};

use super::*;

/// A node's connections, which can be cut.
#[derive(Clone)]
struct Cable {
    config: Config,
    is_cut: Arc<AtomicBool>,
}

impl Cable {
    fn new(schema: &Schema, name: &str) -> Cable {
        let mut config: Config = schema.server.parse().unwrap();
        config.application_name(format!("{}_{name}", schema.name));
        let is_cut = Arc::default();
        Cable { config, is_cut }
    }

    fn connect(&self, schema: &Schema) -> PostgresStore {
        let this = self.clone();
        let connect = move || {
            let config = if this.is_cut.load(Ordering::SeqCst) {
                "host=/nowhere user=nobody".parse().unwrap()
            } else {
                this.config.clone()
            };
            async move { config.connect(NoTls).await }
        };
        schema.options().connect_by(connect).unwrap()
    }

    /// Ends the connections that there are.
    fn tear(&self, schema: &Schema) {
        let name = self.config.get_application_name().unwrap();
        let end =
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        schema.client().query(end, &[&name]).unwrap();
    }

    /// Ends them, and lets no others begin.
    fn cut(&self, schema: &Schema) {
        self.is_cut.store(true, Ordering::SeqCst);
        self.tear(schema);
    }
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("job {number:03}")).collect()
}

/// Schedules a job now and then, which is due a little later.
fn schedule(jobs: &Durable, names: &[String]) {
    for name in names {
        let delay = millis(fastrand::u64(..300));
        jobs.schedule(note(name).after(delay)).unwrap();
    }
}

#[test]
fn three_nodes_share_the_jobs() {
    let Some(schema) = Schema::new() else { return };
    let ledger = Ledger::default();
    let lease = SECOND * 60;
    let open = |name| ledger.builder(name).lease(lease).open(schema.open()).unwrap();
    let nodes = ["one", "two", "three"].map(open);
    until("equal shares", || {
        let shares = shares(&schema);
        shares.len() == 3 && shares.values().all(|share| *share >= 5)
    });
    let names = names(200);
    for (node, names) in nodes.iter().zip(names.chunks(70)) {
        schedule(node, names);
    }
    until("the end of all jobs", || nodes[0].count(List::Live).unwrap() == 0);
    let jobs = ledger.jobs();
    assert_eq!(jobs.len(), 200);
    assert!(jobs.values().all(|runs| *runs == 1), "{jobs:?}");
    for name in ["one", "two", "three"] {
        assert!(ledger.of(name) > 20, "{name}: {}", ledger.of(name));
    }
}

/// A node is cut off from the database for good, as by the end of its machine.
#[test]
fn a_node_that_dies_is_replaced() {
    let Some(schema) = Schema::new() else { return };
    let ledger = Ledger::default();
    let cable = Cable::new(&schema, "dies");
    let dies = ledger.builder("dies").lease(SECOND).open(cable.connect(&schema)).unwrap();
    let stays = ledger.builder("stays").lease(SECOND).open(schema.open()).unwrap();
    let _third = ledger.builder("third").lease(SECOND).open(schema.open()).unwrap();
    until("equal shares", || {
        let shares = shares(&schema);
        shares.len() == 3 && shares.values().all(|share| *share >= 5)
    });
    let names = names(120);
    schedule(&stays, &names[..60]);
    until("half of the jobs", || ledger.jobs().len() == 60);
    cable.cut(&schema);
    schedule(&stays, &names[60..]);
    until("the end of all jobs", || stays.count(List::Live).unwrap() == 0);
    assert_eq!(ledger.jobs().len(), 120);
    until("equal shares of what it had", || shares(&schema).values().eq(&[8, 8]));
    assert!(dies.schedule(note("late")).is_err(), "the job comes back");
}

/// All connections of a node end again and again, and the node goes on.
#[test]
fn connections_that_end_lose_nothing() {
    let Some(schema) = Schema::new() else { return };
    let ledger = Ledger::default();
    let cable = Cable::new(&schema, "torn");
    let node = ledger.builder("torn").open(cable.connect(&schema)).unwrap();
    let names = names(60);
    for (number, name) in names.iter().enumerate() {
        let again = || note(name).key(name, tickwheel_durable::IfTaken::Keep).after(millis(20));
        until("the answer", || node.schedule(again()).is_ok());
        if number % 15 == 7 {
            cable.tear(&schema);
        }
    }
    until("the end of all jobs", || node.count(List::Live).is_ok_and(|count| count == 0));
    assert_eq!(ledger.jobs().len(), 60);
    assert_eq!(ledger.jobs().keys().cloned().collect::<Vec<_>>(), names);
}

/// Five jobs one after the other, each due at once. A node looks every five seconds.
#[test]
fn an_earlier_job_of_another_node_is_armed_at_once() {
    let Some(schema) = Schema::new() else { return };
    let ledger = Ledger::default();
    let node = ledger.builder("node").lease(SECOND * 60).open(schema.open()).unwrap();
    until_ready(&node);
    let other = Durable::builder().open(schema.open()).unwrap();
    // What is announced before the node listens is found by its load.
    other.schedule(note("first")).unwrap();
    until("the first job", || ledger.jobs().len() == 1);
    let begin = Instant::now();
    for number in 2..=6 {
        let far = other.schedule(note(format!("{number}")).after(HOUR)).unwrap();
        other.reschedule(far, SystemClock.now()).unwrap();
        until("the job", || ledger.jobs().len() == number);
    }
    assert!(begin.elapsed() < SECOND * 12, "{:?}", begin.elapsed());
}

/// The run that goes on meanwhile knows the old one. Announcements come in order.
#[test]
fn durable_11_a_schedule_that_another_node_changes_holds_after_the_run() {
    let Some(schema) = Schema::new() else { return };
    let (leave, left) = channel::<()>();
    let (ledger, left) = (Ledger::default(), Mutex::new(left));
    let builder = ledger.builder("node").lease(SECOND * 60);
    let builder = builder.handler("slow", move |_| left.lock().unwrap().recv());
    let node = builder.open(schema.open()).unwrap();
    until_ready(&node);
    let other = Durable::builder().open(schema.open()).unwrap();
    let slow = |hours| Job::new("slow", "").every(HOUR * hours);
    let id = node.schedule(slow(1)).unwrap();
    let job = || node.get(id).unwrap().unwrap();
    until("its run", || job().attempts == 1);
    other.schedule(slow(9)).unwrap();
    other.schedule(note("heard")).unwrap();
    until("what was announced", || ledger.jobs().len() == 1);
    leave.send(()).unwrap();
    until("the end of its run", || job().attempts == 0);
    assert!(job().due > SystemClock.now() + HOUR * 8, "{:?}", job());
}

/// A clock that is wrong by so many seconds.
struct Wrong(i64);

impl WallClock for Wrong {
    fn now(&self) -> WallTime {
        let micros = SystemClock.now().as_unix_micros();
        WallTime::from_unix_micros(micros.saturating_add_signed(self.0 * 1_000_000))
    }
}

/// The clocks of two nodes differ by twenty minutes. Shards move while jobs of theirs run.
#[test]
fn durable_03_the_clock_of_the_database_decides() {
    let Some(schema) = Schema::new() else { return };
    let (ledger, early) = (Ledger::default(), Arc::new(AtomicBool::new(false)));
    let open = |name, wrong| {
        let (early, runs) = (Arc::clone(&early), ledger.clone());
        let builder = ledger.builder(name).lease(SECOND).wall_clock(Wrong(wrong));
        let builder = builder.handler("slow", move |attempt| {
            early.fetch_or(SystemClock.now() < attempt.due(), Ordering::SeqCst);
            runs.note(name, &String::from_utf8_lossy(attempt.payload()));
            thread::sleep(millis(400));
        });
        builder.workers(8).open(schema.open()).unwrap()
    };
    let first = open("ahead", 600);
    until_ready(&first);
    let differs = first.status().clock_differs;
    assert!(differs > SECOND * 599 && differs < SECOND * 660, "{differs:?}");
    let slow = |name: String| Job::new("slow", name).after(millis(200));
    let jobs = names(16).into_iter().map(slow);
    assert!(first.schedule_many(jobs).iter().all(Result::is_ok));
    until("the first runs", || !ledger.runs().is_empty());
    let _second = open("behind", -600);
    until("the end of all jobs", || first.count(List::Live).unwrap() == 0);
    assert!(ledger.jobs().values().all(|runs| *runs == 1), "{:?}", ledger.jobs());
    assert!(!early.load(Ordering::SeqCst), "a job began before its time");
}

/// As in a deploy: one node knows a kind that the other does not, and nobody knows the third.
#[test]
fn nodes_take_the_kinds_that_they_handle() {
    let Some(schema) = Schema::new() else { return };
    let ledger = Ledger::default();
    let old = ledger.builder("old").lease(HOUR).open(schema.open()).unwrap();
    let runs = ledger.clone();
    let builder = ledger.builder("new").lease(HOUR);
    let builder = builder.handler("mail", move |attempt| {
        assert_eq!(attempt.number(), 1);
        runs.note("new", &String::from_utf8_lossy(attempt.payload()));
    });
    let jobs = |kind: &'static str| {
        names(100).into_iter().map(move |name| Job::new(kind, format!("{kind} {name}")))
    };
    for kind in ["note", "mail", "other"] {
        assert!(old.schedule_many(jobs(kind)).iter().all(Result::is_ok));
    }
    until("the kind of the old node", || ledger.jobs().len() == 100);
    let kinds = |node: &Durable| -> Vec<String> {
        let kinds = node.unhandled().unwrap().into_iter();
        kinds.map(|(kind, _)| kind).collect()
    };
    assert_eq!(kinds(&old), ["mail", "other"]);
    let new = builder.open(schema.open()).unwrap();
    until("the kind of the new node", || ledger.jobs().len() == 200);
    assert_eq!(kinds(&new), ["other"]);
    until("their outcomes", || new.count(List::Live).unwrap() == 100);
    assert_eq!(new.count(List::Dead).unwrap(), 0);
    assert!(ledger.jobs().values().all(|runs| *runs == 1));
    let mails = |name| {
        ledger.runs().iter().filter(|run| run.0 == name && run.1.starts_with("mail")).count()
    };
    assert_eq!((mails("old"), mails("new")), (0, 100));
}

/// Two nodes replace the same jobs at once, in opposite orders.
#[test]
fn batches_of_the_same_keys_do_not_wait_in_a_circle() {
    let Some(schema) = Schema::new() else { return };
    let stores = [schema.open(), schema.open()];
    let count = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let deadlocks = || schema.client().query_one(count, &[]).unwrap().get::<_, i64>(0);
    let before = deadlocks();
    let replace = |name: &String| {
        let job = note(name).key(name, tickwheel_durable::IfTaken::Replace);
        Change::Insert(NewJob::new(job, WallTime::default()).unwrap())
    };
    thread::scope(|scope| {
        for (index, store) in stores.iter().enumerate() {
            let mut names = names(300);
            if index == 1 {
                names.reverse();
            }
            let changes: Vec<Change> = names.iter().map(replace).collect();
            scope.spawn(move || (0..10).for_each(|_| drop(store.commit(&changes).unwrap())));
        }
    });
    assert_eq!(stores[0].count(List::Live).unwrap(), 300);
    assert_eq!(deadlocks(), before);
}

/// The second node comes and goes, and the first one has the lowest fence of all leases.
#[test]
fn durable_08_the_fence_of_a_handler_rises() {
    let Some(schema) = Schema::new() else { return };
    type Runs = Arc<Mutex<Vec<(String, &'static str, u64)>>>;
    let runs: Runs = Arc::default();
    let open = |node: &'static str| {
        let runs = Arc::clone(&runs);
        let builder = Durable::builder().owner(node).lease(HOUR);
        let builder = builder.handler("again", move |attempt| {
            let job = String::from_utf8_lossy(attempt.payload()).into_owned();
            runs.lock().unwrap().push((job, node, attempt.fence()));
            tickwheel_durable::Outcome::AgainAfter(millis(5))
        });
        builder.open(schema.open()).unwrap()
    };
    let of = |node| {
        let runs = runs.lock().unwrap();
        runs.iter().filter(|run| run.1 == node).count()
    };
    let stays = open("stays");
    let jobs: Vec<_> = (names(32).into_iter())
        .map(|name| stays.schedule(Job::new("again", name)).unwrap())
        .collect();
    for _ in 0..3 {
        let (comes, before) = (open("comes"), of("comes"));
        until("runs on the other node", || of("comes") > before + 50);
        drop(comes);
        let before = of("stays");
        until("runs on the first node", || of("stays") > before + 200);
    }
    for job in jobs {
        stays.cancel(job).unwrap();
    }
    drop(stays);
    let mut changes = 0;
    let mut last: BTreeMap<String, (&str, u64)> = BTreeMap::new();
    for (job, node, fence) in runs.lock().unwrap().drain(..) {
        let (before, highest) = last.insert(job, (node, fence)).unwrap_or((node, fence));
        let is_higher = fence > highest || (fence == highest && node == before);
        assert!(is_higher, "{node} has {fence} after {before} had {highest}");
        changes += usize::from(node != before);
    }
    assert!(changes >= 6, "{changes}");
}

/// The shards of a node that is closed are taken at once, and not after its lease.
#[test]
fn a_node_that_is_closed_gives_back_its_lease() {
    let Some(schema) = Schema::new() else { return };
    let ledger = Ledger::default();
    let open = |name| ledger.builder(name).lease(HOUR).open(schema.open()).unwrap();
    let (goes, stays) = (open("goes"), open("stays"));
    until("equal shares", || shares(&schema).values().eq(&[8, 8]));
    drop(goes);
    schedule(&stays, &names(40));
    until("the end of all jobs", || stays.count(List::Live).unwrap() == 0);
    assert_eq!(shares(&schema).into_iter().collect::<Vec<_>>(), [("stays".to_owned(), 16)]);
}

/// It keeps the one shard of which a job runs, and its handler has its outcome.
#[test]
fn durable_03_a_node_that_ends_leaves_the_shards_of_which_nothing_runs() {
    let Some(schema) = Schema::new() else { return };
    let ledger = Ledger::default();
    let (enter, entered) = std::sync::mpsc::channel();
    let (leave, left) = std::sync::mpsc::channel::<()>();
    let left = Mutex::new(left);
    let builder = Durable::builder().owner("goes").lease(HOUR).ends_within(HOUR);
    let builder = builder.handler("note", move |_| {
        enter.send(()).unwrap();
        left.lock().unwrap().recv().unwrap();
    });
    let goes = builder.open(schema.open()).unwrap();
    goes.schedule(note("long")).unwrap();
    entered.recv_timeout(SECOND * 60).unwrap();
    let stays = ledger.builder("stays").lease(HOUR).open(schema.open()).unwrap();
    let end = thread::spawn(move || drop(goes));
    until("all shards but one", || shares(&schema).values().eq(&[1, 15]));
    schedule(&stays, &names(40));
    until("the end of the jobs of its shards", || ledger.jobs().len() >= 37);
    assert!(!end.is_finished());
    leave.send(()).unwrap();
    end.join().unwrap();
    until("the end of all jobs", || stays.count(List::Live).unwrap() == 0);
    assert_eq!(ledger.jobs().len(), 40);
    until("the last shard", || shares(&schema).values().eq(&[16]));
}

/// Without its lease, the outcome of the handler would be refused.
#[test]
fn durable_02_a_handler_that_drops_its_own_node_is_done() {
    let Some(schema) = Schema::new() else { return };
    let node: Arc<Mutex<Option<Durable>>> = Arc::default();
    let own = Arc::clone(&node);
    // The handler waits until the node is there.
    let mut place = node.lock().unwrap();
    let builder = Durable::builder().handler("note", move |_| drop(own.lock().unwrap().take()));
    let jobs = builder.open(schema.open()).unwrap();
    jobs.schedule(note("job")).unwrap();
    *place = Some(jobs);
    drop(place);
    let reader = schema.open();
    until("the end of the job", || reader.count(List::Live).unwrap() == 0);
}

/// Of 40 jobs on three nodes, no more than two run at a time; and each runs once.
#[test]
fn a_limit_holds_on_all_nodes_together() {
    let Some(schema) = Schema::new() else { return };
    let (ledger, now, most) = (Ledger::default(), Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let open = |name: &'static str| {
        let (ledger, now, most) = (ledger.clone(), Arc::clone(&now), Arc::clone(&most));
        let builder = Durable::builder().owner(name).lease(HOUR);
        let builder = builder.limit_on_all_nodes("call", 2);
        let builder = builder.handler("call", move |attempt| {
            let running = {
                let mut now = now.lock().unwrap();
                *now += 1;
                *now
            };
            let mut most = most.lock().unwrap();
            *most = running.max(*most);
            drop(most);
            thread::sleep(millis(10));
            ledger.note(name, &String::from_utf8_lossy(attempt.payload()));
            *now.lock().unwrap() -= 1;
        });
        builder.open(schema.open()).unwrap()
    };
    let nodes = ["one", "two", "three"].map(open);
    until("equal shares", || shares(&schema).values().all(|share| *share >= 5));
    let calls = names(40).into_iter().map(|name| Job::new("call", name));
    assert!(nodes[0].schedule_many(calls).iter().all(Result::is_ok));
    until("the end of all jobs", || nodes[0].count(List::Live).unwrap() == 0);
    assert_eq!(*most.lock().unwrap(), 2);
    assert_eq!(ledger.jobs().len(), 40);
    assert!(ledger.jobs().values().all(|runs| *runs == 1));
}

/// One node pauses a kind, and the other has it in its window.
#[test]
fn a_pause_holds_on_all_nodes() {
    let Some(schema) = Schema::new() else { return };
    let ledger = Ledger::default();
    let node = ledger.builder("node").open(schema.open()).unwrap();
    until_ready(&node);
    let other = Durable::builder().open(schema.open()).unwrap();
    let due = SystemClock.now() + SECOND * 2;
    let soon = names(5).into_iter().map(|name| note(name).at(due));
    assert!(node.schedule_many(soon).iter().all(Result::is_ok));
    other.pause("note").unwrap();
    other.schedule(note("new")).unwrap();
    until("their due time", || SystemClock.now() > due + SECOND);
    assert_eq!(ledger.jobs().len(), 0);
    assert_eq!(node.paused().unwrap(), ["note"]);
    other.resume("note").unwrap();
    until("all jobs", || ledger.jobs().len() == 6);
}
