//! Nodes in processes of their own, which are paused and killed.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::*;

/// The variables by which a child knows its part.
const NAME: &str = "DURABLE_POSTGRES_NODE";
const SCHEMA: &str = "DURABLE_POSTGRES_SCHEMA";
const FOLDER: &str = "DURABLE_POSTGRES_FOLDER";

/// The part of a child: a test that does nothing unless it is started as one. Its node runs jobs
/// until the parent closes its input.
#[test]
fn child() {
    let Ok(name) = std::env::var(NAME) else {
        return;
    };
    let schema = std::env::var(SCHEMA).unwrap();
    let folder = std::env::var(FOLDER).unwrap();
    let insert = format!("INSERT INTO {schema}_effects VALUES ($1)");
    let options = tickwheel_durable::PostgresOptions::new().schema(schema);
    let store = options.connect(&std::env::var(server::SERVER).unwrap()).unwrap();
    let node = Durable::builder()
        .owner(name)
        .lease(SECOND * 2)
        .handler_in_transaction("effect", async move |attempt, transaction| {
            let name = String::from_utf8_lossy(attempt.payload()).into_owned();
            transaction.execute(&insert, &[&name]).await.map(|_| ())
        })
        .handler("slow", move |attempt| {
            println!("slow {}", attempt.number());
            // A node that a busy machine keeps from renewing starts it once more.
            let go = Path::new(&folder).join(format!("go {}", attempt.number().min(2)));
            until("the end of the slow job", || go.exists());
        })
        .open(store)
        .unwrap();
    until_ready(&node);
    println!("ready");
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    until("a refusal, or the end", || node.status().counts.refused > 0);
    println!("refused");
    loop {
        thread::park();
    }
}

/// A child, which is killed at the end.
struct Process {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Process {
    fn start(name: &str, schema: &Schema, folder: &Path) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::child", "--nocapture"])
            .env(NAME, name)
            .env(SCHEMA, &schema.name)
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let (output, shared) = (child.stdout.take().unwrap(), Arc::clone(&lines));
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                shared.lock().unwrap().push(line);
            }
        });
        Process { child, lines }
    }

    /// Waits until the child has said something. The harness may print before it on the line.
    fn until_says(&self, what: &str) {
        until(what, || {
            let lines = self.lines.lock().unwrap();
            lines.iter().any(|line| line.contains(what))
        });
    }

    fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn schedule(jobs: &Durable, from: usize) {
    for number in from..from + 60 {
        let delay = millis(fastrand::u64(..600));
        let job = Job::new("effect", format!("{number}")).after(delay);
        jobs.schedule(job).unwrap();
    }
}

fn effects(schema: &Schema) -> BTreeMap<String, i64> {
    let text = format!("SELECT job, count(*) FROM {}_effects GROUP BY job", schema.name);
    let rows = schema.client().query(&text, &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// The largest delay of jobs that were due between two times, in seconds. A job's text is its due
/// time in microseconds.
fn delay(schema: &Schema, from: WallTime, to: WallTime) -> f64 {
    let text = format!(
        "SELECT coalesce(max(extract(epoch FROM at)::float8 - job::float8 / 1e6), 0) FROM {}_effects \
         WHERE job::bigint BETWEEN $1 AND $2",
        schema.name
    );
    let micros = |time: WallTime| time.as_unix_micros() as i64;
    let row = schema.client().query_one(&text, &[&micros(from), &micros(to)]);
    row.unwrap().get(0)
}

/// Jobs are due all the time while one of two nodes is killed. Those at the end are the
/// control: so slow is the machine.
#[test]
fn a_killed_node_is_replaced_within_its_lease_and_one_load() {
    let Some(schema) = Schema::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let create = format!(
        "CREATE TABLE {}_effects (job text NOT NULL, at timestamptz DEFAULT clock_timestamp())",
        schema.name
    );
    schema.client().batch_execute(&create).unwrap();
    let jobs = Durable::builder().open(schema.open()).unwrap();
    let [dies, _stays] = ["dies", "stays"].map(|name| {
        let process = Process::start(name, &schema, folder.path());
        process.until_says("ready");
        process
    });
    until("equal shares", || shares(&schema).values().eq(&[16, 16]));

    let begin = SystemClock.now() + SECOND;
    let dues = (0..400).map(|number| begin + millis(25) * number);
    let effects_of = dues.map(|due| Job::new("effect", due.as_unix_micros().to_string()).at(due));
    for scheduled in jobs.schedule_many(effects_of) {
        scheduled.unwrap();
    }
    until("two seconds of them", || effects(&schema).len() > 80);
    let killed = SystemClock.now();
    dies.signal("KILL");
    until("the end of all jobs", || jobs.count(List::Live).unwrap() == 0);

    let (lease, second) = (2.0, SECOND);
    let taken = delay(&schema, killed, killed + second * 3);
    let after = delay(&schema, killed + second * 5, begin + second * 60);
    println!("delay: {taken:.3} s after the kill, {after:.3} s at the end");
    assert!(taken > lease / 2.0, "the node that was killed had no jobs: {taken}");
    let most = lease * 1.1 + 2.0 + 4.0 * after;
    assert!(taken < most, "taken over after {taken} s, and not {most}");
    let drop = format!("DROP TABLE {}_effects", schema.name);
    schema.client().batch_execute(&drop).unwrap();
}

/// SIGSTOP for longer than the lease in the midst of a handler, SIGCONT, and SIGKILL of the
/// other node: the late outcome is refused, and the effects of each job are there once.
#[test]
fn durable_08_processes_are_paused_and_killed() {
    let Some(schema) = Schema::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let go =
        |attempt: u32| std::fs::write(folder.path().join(format!("go {attempt}")), "").unwrap();
    let create = format!("CREATE TABLE {}_effects (job text NOT NULL)", schema.name);
    schema.client().batch_execute(&create).unwrap();
    let jobs = Durable::builder().open(schema.open()).unwrap();

    let paused = Process::start("paused", &schema, folder.path());
    paused.until_says("ready");
    let slow = jobs.schedule(Job::new("slow", "")).unwrap();
    paused.until_says("slow 1");
    schedule(&jobs, 0);
    paused.signal("STOP");
    let other = Process::start("other", &schema, folder.path());
    other.until_says("slow ");
    schedule(&jobs, 60);

    go(1);
    paused.signal("CONT");
    paused.until_says("refused");
    let found = jobs.get(slow).unwrap();
    assert!(found.is_some_and(|job| job.attempts >= 2), "its outcome counted");
    go(2);
    until("the end of all jobs", || jobs.count(List::Live).unwrap() == 0);

    schedule(&jobs, 120);
    until("a third of the jobs", || effects(&schema).len() > 140);
    other.signal("KILL");
    schedule(&jobs, 180);
    until("the end of all jobs", || jobs.count(List::Live).unwrap() == 0);
    drop((paused, other));
    let effects = effects(&schema);
    assert_eq!(effects.len(), 240);
    assert!(effects.values().all(|count| *count == 1), "{effects:?}");
    let drop = format!("DROP TABLE {}_effects", schema.name);
    schema.client().batch_execute(&drop).unwrap();
}
