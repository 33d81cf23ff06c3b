//! Whole nodes beside each other in one process.

use std::sync::atomic::{AtomicBool, Ordering};

use postgres::{Config, NoTls};

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
        config.application_name(&format!("{}_{name}", schema.name));
        let is_cut = Arc::default();
        Cable { config, is_cut }
    }

    fn connect(&self, schema: &Schema) -> PostgresStore {
        let this = self.clone();
        let connect = move || match this.is_cut.load(Ordering::SeqCst) {
            true => "host=/nowhere user=nobody"
                .parse::<Config>()
                .unwrap()
                .connect(NoTls),
            false => this.config.connect(NoTls),
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
    (0..count)
        .map(|number| format!("job {number:03}"))
        .collect()
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
    let open = |name| {
        ledger
            .builder(name)
            .lease(lease)
            .open(schema.open())
            .unwrap()
    };
    let nodes = ["one", "two", "three"].map(open);
    until("equal shares", || {
        let shares = shares(&schema);
        shares.len() == 3 && shares.values().all(|share| *share >= 5)
    });
    let names = names(200);
    for (node, names) in nodes.iter().zip(names.chunks(70)) {
        schedule(node, names);
    }
    until("the end of all jobs", || {
        nodes[0].count(List::Live).unwrap() == 0
    });
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
    let dies = ledger
        .builder("dies")
        .lease(SECOND)
        .open(cable.connect(&schema))
        .unwrap();
    let stays = ledger
        .builder("stays")
        .lease(SECOND)
        .open(schema.open())
        .unwrap();
    until("equal shares", || shares(&schema).values().eq(&[8, 8]));
    let names = names(120);
    schedule(&stays, &names[..60]);
    until("half of the jobs", || ledger.jobs().len() == 60);
    cable.cut(&schema);
    schedule(&stays, &names[60..]);
    until("the end of all jobs", || {
        stays.count(List::Live).unwrap() == 0
    });
    assert_eq!(ledger.jobs().len(), 120);
    assert_eq!(shares(&schema)["stays"], 16);
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
        let again = || {
            note(name)
                .key(name, tickwheel_durable::IfTaken::Keep)
                .after(millis(20))
        };
        until("the answer", || node.schedule(again()).is_ok());
        if number % 15 == 7 {
            cable.tear(&schema);
        }
    }
    until("the end of all jobs", || {
        node.count(List::Live).is_ok_and(|count| count == 0)
    });
    assert_eq!(ledger.jobs().len(), 60);
    assert_eq!(ledger.jobs().keys().cloned().collect::<Vec<_>>(), names);
}

/// Five jobs one after the other, each due at once. A node looks every five seconds.
#[test]
fn an_earlier_job_of_another_node_is_armed_at_once() {
    let Some(schema) = Schema::new() else { return };
    let ledger = Ledger::default();
    let node = ledger
        .builder("node")
        .lease(SECOND * 60)
        .open(schema.open())
        .unwrap();
    until_ready(&node);
    let other = Durable::builder().open(schema.open()).unwrap();
    // What is announced before the node listens is found by its load.
    other.schedule(note("first")).unwrap();
    until("the first job", || ledger.jobs().len() == 1);
    let begin = Instant::now();
    for number in 2..=6 {
        let far = other
            .schedule(note(format!("{number}")).after(HOUR))
            .unwrap();
        other.reschedule(far, SystemClock.now()).unwrap();
        until("the job", || ledger.jobs().len() == number);
    }
    assert!(begin.elapsed() < SECOND * 12, "{:?}", begin.elapsed());
}

/// A row that came without an announcement, as after a listener's connection was lost.
#[test]
fn a_job_that_nobody_announced_is_found() {
    let Some(schema) = Schema::new() else { return };
    let ledger = Ledger::default();
    let builder = ledger.builder("node").window(HOUR).lease(SECOND * 60);
    let node = builder.open(schema.open()).unwrap();
    until_ready(&node);
    let row = format!(
        "INSERT INTO {0}.jobs (number, born, shard, due, kind, recurrence, payload) \
         SELECT n, 5, n % 16, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 6000000, \
         'note', '\\x00', 'quiet' FROM (SELECT nextval('{0}.numbers') AS n) numbers",
        schema.name
    );
    schema.client().batch_execute(&row).unwrap();
    until("the job", || ledger.jobs().contains_key("quiet"));
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
    let open = |name| {
        ledger
            .builder(name)
            .lease(HOUR)
            .open(schema.open())
            .unwrap()
    };
    let (goes, stays) = (open("goes"), open("stays"));
    until("equal shares", || shares(&schema).values().eq(&[8, 8]));
    drop(goes);
    schedule(&stays, &names(40));
    until("the end of all jobs", || {
        stays.count(List::Live).unwrap() == 0
    });
    assert_eq!(
        shares(&schema).into_iter().collect::<Vec<_>>(),
        [("stays".to_owned(), 16)]
    );
}
