//! Each command, run as a program on a file.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tickwheel_durable::store::{Change, List, Store};
use tickwheel_durable::{
    Durable, IfTaken, Job, JobId, ManualClock, RedbOptions, RedbStore, Retry, State, WallTime,
};

const HOUR: Duration = Duration::from_secs(3_600);

/// A folder with a store of its own.
struct World {
    _folder: TempDir,
    path: PathBuf,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.redb");
        drop(store(&path));
        World { _folder: folder, path }
    }

    /// Opens the store, and closes it after `act`.
    fn with<R>(&self, act: impl FnOnce(&Durable) -> R) -> R {
        act(&Durable::builder().open(store(&self.path)).unwrap())
    }

    fn schedule(&self, job: Job) -> JobId {
        self.with(|jobs| jobs.schedule(job).unwrap())
    }

    /// Leaves a dead letter of this kind.
    fn die(&self, kind: &str, job: Job) -> JobId {
        let now = WallTime::from(SystemTime::now());
        let builder = Durable::builder()
            .handler(kind, |_| Err::<(), _>("no line"))
            .retry(kind, Retry::attempts(1));
        let opened = builder.open_virtual(store(&self.path), ManualClock::new(now));
        let (jobs, node) = opened.unwrap();
        let id = jobs.schedule(job).unwrap();
        node.run_until(now);
        assert_eq!(jobs.get(id).unwrap().unwrap().state, State::Dead);
        id
    }

    fn tool(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tickwheel-jobs"));
        command.arg(&self.path).args(args);
        command
    }

    /// Runs the tool, and returns its exit code and what it printed.
    fn run(&self, args: &[&str]) -> (i32, String) {
        let output = self.tool(args).output().unwrap();
        (code(&output), String::from_utf8(output.stdout).unwrap())
    }

    /// Runs the tool with `--json`, and returns its exit code and its objects.
    fn json(&self, args: &[&str]) -> (i32, Vec<serde_json::Value>) {
        let (code, text) = self.run(&[&["--json"], args].concat());
        let object = |line| serde_json::from_str(line).unwrap();
        (code, text.lines().map(object).collect())
    }

    fn state(&self, id: JobId) -> Option<State> {
        self.with(|jobs| jobs.get(id).unwrap().map(|job| job.state))
    }
}

fn store(path: &PathBuf) -> RedbStore {
    RedbOptions::new().reserve_bytes(0).open(path).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// The answer for a job.
fn word(answer: &serde_json::Value) -> &str {
    answer["result"].as_str().unwrap()
}

fn mail(text: &str) -> Job {
    Job::new("mail", text).after(HOUR)
}

#[test]
fn list_shows_jobs_in_the_order_of_due_times() {
    let world = World::new();
    let later = world.schedule(mail("b").after(3 * HOUR));
    let sooner = world.schedule(mail("a").key("ada", IfTaken::Refuse));
    let (code, jobs) = world.json(&["list"]);
    let ids: Vec<_> = jobs.iter().map(|job| job["id"].as_str().unwrap()).collect();
    assert_eq!((code, ids), (0, vec![&*sooner.to_string(), &*later.to_string()]));
    assert_eq!(jobs[0]["key"], "ada");
    assert_eq!(jobs[0]["state"], "waiting");

    let (_, text) = world.run(&["list"]);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("ID"), "{text}");
    assert!(lines[1].starts_with(&sooner.to_string()), "{text}");
    assert!(lines[1].contains(" in ") && lines[1].ends_with("ada"), "{text}");
}

#[test]
fn list_takes_kinds_times_and_a_limit() {
    let world = World::new();
    world.with(|jobs| {
        for n in 0..5 {
            jobs.schedule(mail("").after(n * 24 * HOUR)).unwrap();
        }
        jobs.schedule(Job::new("call", "")).unwrap();
    });
    let count = |args: &[&str]| world.json(&[&["list"], args].concat()).1.len();
    assert_eq!(count(&[]), 6);
    assert_eq!(count(&["--kind", "call"]), 1);
    assert_eq!(count(&["--within", "0s"]), 2);
    assert_eq!(count(&["--within", "30h"]), 3);
    assert_eq!(count(&["--limit", "4"]), 4);
    assert_eq!(count(&["--dead"]), 0);
    assert!(world.run(&["list", "--limit", "4"]).1.contains("more"));
    assert!(!world.run(&["list", "--limit", "6"]).1.contains("more"));
}

#[test]
fn show_tells_all_of_a_job() {
    let world = World::new();
    let job = mail("call Ada").every(HOUR).key("ada", IfTaken::Refuse);
    let id = world.schedule(job).to_string();
    let (code, text) = world.run(&["show", &id]);
    assert_eq!(code, 0);
    for part in [&id, "mail", "ada", "waiting", "every 3600s", "8 bytes: call Ada"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (_, objects) = world.json(&["show", &id]);
    assert_eq!(objects[0]["payload_text"], "call Ada");
    assert_eq!(objects[0]["payload_hex"], "63616c6c20416461");
    let (code, _) = world.run(&["show", "1-1"]);
    assert_eq!(code, 1);
}

/// A payload with an escape sequence does not reach the terminal.
#[test]
fn show_prints_no_control_characters() {
    let world = World::new();
    let id = world.schedule(mail("\u{1b}]0;owned\u{7}")).to_string();
    let (_, text) = world.run(&["show", &id]);
    assert!(!text.contains('\u{1b}') && text.contains("owned"), "{text}");
}

#[test]
fn cancel_takes_ids_and_keys() {
    let world = World::new();
    let plain = world.schedule(mail(""));
    let keyed = world.schedule(mail("").key("ada", IfTaken::Refuse));
    let (code, answers) = world.json(&["cancel", &plain.to_string(), "1-1"]);
    let results: Vec<_> = answers.iter().map(word).collect();
    assert_eq!((code, results), (1, vec!["cancelled", "gone"]));
    let (code, _) = world.run(&["cancel", "--key", "mail", "ada"]);
    assert_eq!(code, 0);
    assert_eq!((world.state(plain), world.state(keyed)), (None, None));
}

#[test]
fn cancel_takes_several_keys() {
    let world = World::new();
    let keys = ["ada", "-b"].map(|key| world.schedule(mail("").key(key, IfTaken::Refuse)));
    let args = ["cancel", "--key", "mail", "ada", "--key", "mail", "-b"];
    let (code, answers) = world.json(&args);
    assert_eq!((code, answers.len()), (0, 2));
    assert_eq!(keys.map(|id| world.state(id)), [None, None]);
}

/// All are cancelled, and the exit code says whether all were found.
#[test]
fn cancel_goes_on_when_nobody_reads_its_answers() {
    let world = World::new();
    let ids = ["a", "b", "c"].map(|text| world.schedule(mail(text)));
    let cancel = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let args = ids.map(|id| id.to_string());
        world.tool(&["cancel"]).args(args).stdout(writer).status().unwrap()
    };
    assert_eq!(cancel().code(), Some(0));
    assert_eq!(ids.map(|id| world.state(id)), [None, None, None]);
    assert_eq!(cancel().code(), Some(1), "none is there any more");
}

/// A job whose process died in its run waits to be started again, unless it is cancelled.
#[test]
fn cancel_ends_a_job_whose_process_died() {
    let world = World::new();
    let id = world.schedule(Job::new("mail", ""));
    let dead = store(&world.path);
    let fence = dead.acquire("dead", &["mail".into()], HOUR).unwrap().unwrap().fence;
    let start = Change::Start { id, version: 1, fence };
    dead.commit(&[start]).unwrap();
    drop(dead);
    let (_, jobs) = world.json(&["list"]);
    assert_eq!((&jobs[0]["state"], &jobs[0]["attempts"]), (&"started".into(), &1.into()));
    let (code, _) = world.json(&["cancel", &id.to_string()]);
    assert_eq!((code, world.state(id)), (0, None));
}

#[test]
fn retry_revives_a_dead_letter() {
    let world = World::new();
    let id = world.die("mail", Job::new("mail", ""));
    let (_, dead) = world.json(&["list", "--dead"]);
    assert_eq!((&dead[0]["failure"], &dead[0]["state"]), (&"no line".into(), &"dead".into()));
    let (code, answers) = world.json(&["retry", &id.to_string(), "--in", "10m"]);
    assert_eq!((code, &answers[0]["result"]), (0, &"revived".into()));
    let job = world.with(|jobs| jobs.get(id).unwrap().unwrap());
    assert_eq!((job.state, job.attempts), (State::Waiting, 0));
    assert!(job.due > WallTime::from(SystemTime::now()));
    let (code, answers) = world.json(&["retry", &id.to_string()]);
    assert_eq!((code, &answers[0]["result"]), (1, &"gone".into()));
}

#[test]
fn retry_all_takes_those_of_a_kind() {
    let world = World::new();
    for kind in ["mail", "mail", "call"] {
        world.die(kind, Job::new(kind, ""));
    }
    assert_eq!(world.json(&["retry", "--all", "--kind", "mail"]).1.len(), 2);
    assert_eq!(world.with(|jobs| jobs.count(List::Dead).unwrap()), 1);
    assert_eq!(world.json(&["retry", "--all"]).1.len(), 1);
    assert_eq!(world.json(&["retry", "--all"]), (0, vec![]));
}

#[test]
fn retry_says_who_has_the_key() {
    let world = World::new();
    let key = |job: Job| job.key("ada", IfTaken::Refuse);
    let id = world.die("mail", key(Job::new("mail", ""))).to_string();
    let holder = world.schedule(key(mail(""))).to_string();
    let (code, answers) = world.json(&["retry", &id]);
    assert_eq!((code, &answers[0]["result"]), (1, &"key_taken".into()));
    assert!(answers[0]["message"].as_str().unwrap().contains(&holder));
}

#[test]
fn bury_removes_a_dead_letter_and_nothing_else() {
    let world = World::new();
    let (dead, alive) = (world.die("mail", Job::new("mail", "")), world.schedule(mail("")));
    let (code, answers) = world.json(&["bury", &dead.to_string(), &alive.to_string()]);
    let results: Vec<_> = answers.iter().map(word).collect();
    assert_eq!((code, results), (1, vec!["buried", "gone"]));
    assert_eq!((world.state(dead), world.state(alive)), (None, Some(State::Waiting)));
}

#[test]
fn stats_count_by_kind_and_by_due_time() {
    let world = World::new();
    world.die("mail", Job::new("mail", ""));
    world.with(|jobs| {
        for after in [Duration::ZERO, HOUR / 2, 2 * HOUR, 48 * HOUR] {
            jobs.schedule(mail("").after(after)).unwrap();
        }
        jobs.schedule(Job::new("call", "").after(HOUR)).unwrap();
    });
    let (code, objects) = world.json(&["stats"]);
    let stats = &objects[0];
    assert_eq!(code, 0);
    assert_eq!((&stats["waiting"], &stats["dead"]), (&5.into(), &1.into()));
    assert_eq!(stats["overdue"], 1);
    assert_eq!(stats["kinds"]["mail"]["waiting"], 4);
    assert_eq!(stats["kinds"]["call"]["dead"], 0);
    let (_, text) = world.run(&["stats"]);
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert_eq!(row("within an hour").split_whitespace().last(), Some("2"));
    assert_eq!(row("later").split_whitespace().last(), Some("1"));
}

#[test]
fn drain_says_how_many_are_left() {
    let world = World::new();
    assert_eq!(world.json(&["drain"]).0, 0);
    world.schedule(mail("").after(5 * HOUR));
    let (code, objects) = world.json(&["drain"]);
    assert_eq!((code, &objects[0]["left"]), (1, &1.into()));
    assert_eq!(world.json(&["drain", "--within", "1h"]).0, 0);
}

/// Others work on a database while the tool looks at it.
#[cfg(feature = "postgres")]
#[test]
fn a_database_is_looked_at_while_a_node_works_on_it() {
    let Ok(server) = std::env::var("TICKWHEEL_POSTGRES") else {
        eprintln!("SKIPPED: TICKWHEEL_POSTGRES is not set; durable/tests/postgres.sh sets it");
        return;
    };
    let schema = format!("tool_{}", std::process::id());
    let url = format!("postgres:///?{}", server.replace(' ', "&"));
    let run = |args: &[&str]| {
        let mut tool = Command::new(env!("CARGO_BIN_EXE_tickwheel-jobs"));
        let tool = tool.args([&url, "--schema", &schema, "--json"]).args(args);
        let output = tool.output().unwrap();
        let objects = output.stdout.lines().map(|line| line.unwrap());
        let objects = objects.map(|line| serde_json::from_str(&line).unwrap());
        (code(&output), objects.collect::<Vec<serde_json::Value>>())
    };
    assert_eq!(run(&["list"]).0, 3, "no tables, and none are created");
    let options = tickwheel_durable::PostgresOptions::new().schema(&schema);
    let service = options.clone().connect(&server).unwrap();
    let mut client = postgres::Client::connect(&server, postgres::NoTls).unwrap();
    // The database's clock is half an hour ahead.
    let now =
        "SELECT (extract(epoch FROM clock_timestamp() + interval '30 min') * 1000000)::bigint";
    let ahead = format!(
        "CREATE OR REPLACE FUNCTION {schema}.now_micros() RETURNS bigint LANGUAGE sql AS $${now}$$"
    );
    client.batch_execute(&ahead).unwrap();
    let node = Durable::builder().handler("mail", |_| ()).open(service);
    let node = node.unwrap();
    let far = node.schedule(mail("far")).unwrap().to_string();
    node.schedule(Job::new("mail", "now")).unwrap();
    let (drained, objects) = run(&["drain", "--within", "1m", "--wait", "10m"]);
    assert_eq!((drained, &objects[0]["left"]), (0, &0.into()));
    assert_eq!(run(&["list"]).1.len(), 1);
    let due_soon = |within| run(&["list", "--within", within]).1.len();
    assert_eq!([due_soon("50m"), due_soon("70m")], [0, 1]);
    assert_eq!(run(&["cancel", &far]).1[0]["result"], "cancelled");
    assert_eq!(run(&["drain"]).0, 0);
    drop(node);
    let drop = format!("DROP SCHEMA {schema} CASCADE");
    client.batch_execute(&drop).unwrap();
}

/// A file that a service has open is left alone, and the message says whose it is and what to
/// do.
#[test]
fn a_file_in_use_is_named_with_its_process() {
    let world = World::new();
    let held = store(&world.path);
    let output = world.tool(&["list"]).output().unwrap();
    let message = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(code(&output), 3);
    if cfg!(target_os = "linux") {
        let process = format!("process {} ", std::process::id());
        assert!(message.contains(&process), "{message}");
    }
    for part in ["Stop that process", "--wait", "Do not copy"] {
        assert!(message.contains(part), "{message}");
    }
    let output = world.tool(&["--json", "list"]).output().unwrap();
    let object: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(object["error"], "in_use");
    drop(held);
    assert_eq!(world.run(&["list"]).0, 0);
}

#[test]
fn a_file_in_use_is_waited_for() {
    let world = World::new();
    let held = store(&world.path);
    let mut tool = world.tool(&["list", "--wait", "10m"]);
    let mut tool = tool.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut messages = BufReader::new(tool.stderr.take().unwrap());
    messages.read_line(&mut said).unwrap();
    assert!(said.contains("Waiting 10m"), "{said}");
    drop(held);
    assert!(tool.wait().unwrap().success());
}

/// A live view leaves the file to others between two looks.
#[test]
fn watch_looks_again_and_again() {
    let world = World::new();
    world.schedule(mail(""));
    let (code, looks) = world.json(&["watch", "--every", "1ms", "--times", "3"]);
    assert_eq!((code, looks.len()), (0, 3));
    assert_eq!(looks[2]["waiting"], 1);
    let held = store(&world.path);
    let (code, looks) = world.json(&["watch", "--every", "1ms", "--times", "2"]);
    assert_eq!((code, &looks[1]["error"]), (0, &"in_use".into()));
    drop(held);
}

#[test]
fn a_reason_that_nobody_reads_keeps_its_exit_code() {
    let world = World::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let held = store(&world.path);
    let status = world.tool(&["list", "--wait", "1ms"]).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(3));
    drop(held);
}

/// A wrong name creates nothing, and a foreign file is left as it is.
#[test]
fn a_path_that_is_no_store_is_refused() {
    let world = World::new();
    let absent = world.path.with_extension("typo");
    let foreign = world.path.with_extension("txt");
    std::fs::write(&foreign, "my notes").unwrap();
    for path in [&absent, &foreign] {
        let program = env!("CARGO_BIN_EXE_tickwheel-jobs");
        let output = Command::new(program).arg(path).arg("list").output().unwrap();
        assert_eq!(code(&output), 3);
    }
    assert!(!absent.exists());
    assert_eq!(std::fs::read(&foreign).unwrap(), b"my notes");
}

#[test]
fn a_wrong_command_line_is_refused() {
    let world = World::new();
    for args in [
        &["cancel"][..],
        &["retry"],
        &["retry", "--kind", "mail"],
        &["retry", "--kind", "mail", "1-1"],
        &["show", "nonsense"],
        &["list", "--within", "soon"],
    ] {
        assert_eq!(world.run(args).0, 2, "{args:?}");
    }
}
