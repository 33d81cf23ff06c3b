//! SIGKILL at named steps and at random moments.
//!
//! A child process schedules jobs and runs them on a file; the parent kills it, and starts it
//! again on the same file. Each round leaves a log. In the end every job that was answered has
//! run, and every run but a job's last one belongs to a round that was killed before its
//! completion was durable.
//!
//! `KILLS` sets the number of kills.

#![cfg(unix)]

mod support;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use support::hooked::{Hooked, Hooks};
use tickwheel_durable::store::{Change, List, StoreError};
use tickwheel_durable::{Durable, Job, RedbStore};

/// The variables by which a child knows its part.
const FOLDER: &str = "DURABLE_KILLS_FOLDER";
const ROUND: &str = "DURABLE_KILLS_ROUND";
const STEP: &str = "DURABLE_KILLS_STEP";

const JOBS: u64 = 24;

/// The moment of a kill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// After a job was stored, before its caller got an answer.
    Stored,
    /// After jobs were started, before their handlers ran.
    Started,
    /// After handlers ran, before their completion was committed.
    Ran,
    /// At a random moment.
    Random,
    /// Not at all: the round runs everything that is left.
    Never,
}

const NAMED: [Step; 3] = [Step::Stored, Step::Started, Step::Ran];

impl Step {
    fn name(self) -> String {
        format!("{self:?}")
    }

    fn of(name: &str) -> Step {
        let all = [NAMED.as_slice(), &[Step::Random, Step::Never]].concat();
        let found = all.into_iter().find(|step| step.name() == name);
        found.expect("an unknown step")
    }
}

/// Asks to be killed at a step, after so many commits of its sort.
struct Dying {
    step: Step,
    left: Mutex<u32>,
}

impl Dying {
    fn is_at(&self, step: Step, changes: &[Change]) -> bool {
        let is_of = |change: &Change| match step {
            Step::Stored => matches!(change, Change::Insert(_)),
            Step::Started => matches!(change, Change::Start { .. }),
            _ => matches!(change, Change::Finish { .. }),
        };
        if self.step != step || !changes.iter().any(is_of) {
            return false;
        }
        let mut left = self.left.lock().unwrap();
        *left = left.saturating_sub(1);
        *left == 0
    }
}

/// Asks the parent for the end, and waits for it.
fn die() -> ! {
    println!("kill me");
    loop {
        thread::park();
    }
}

impl Hooks for Dying {
    fn before_commit(&self, changes: &[Change]) -> Result<(), StoreError> {
        if self.is_at(Step::Ran, changes) { die() } else { Ok(()) }
    }

    fn after_commit(&self, changes: &[Change]) -> Result<(), StoreError> {
        if self.is_at(Step::Stored, changes) || self.is_at(Step::Started, changes) {
            die()
        } else {
            Ok(())
        }
    }
}

/// A log that a kill leaves as it is: each line is one write.
#[derive(Clone)]
struct Log(Arc<File>);

impl Log {
    fn open(folder: &Path) -> Log {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(folder.join("log"));
        Log(Arc::new(file.unwrap()))
    }

    fn line(&self, line: &str) {
        (&*self.0).write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

/// The part of a child: a test that does nothing unless it is started as one.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let folder = PathBuf::from(folder);
    let round = std::env::var(ROUND).unwrap();
    let step = Step::of(&std::env::var(STEP).unwrap());
    let log = Log::open(&folder);
    let left = Mutex::new(1 + fastrand::u32(..4));
    let file = RedbStore::open(folder.join("jobs.redb")).unwrap();
    let store = Hooked::with(file, Dying { step, left });
    let runs = log.clone();
    let this = round.clone();
    let jobs = Durable::builder()
        .workers(3)
        .handler("job", move |attempt| {
            let name = String::from_utf8_lossy(attempt.payload()).into_owned();
            runs.line(&format!("ran {name} {this}"));
        })
        .open(store)
        .unwrap();
    println!("open");
    if step != Step::Never {
        schedule(&jobs, &log, &round);
    }
    while jobs.count(List::Live).unwrap() > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    if step != Step::Never {
        die();
    }
}

fn schedule(jobs: &Durable, log: &Log, round: &str) {
    let part = |thread: u64| {
        for n in 0..JOBS / 3 {
            let name = format!("{round}.{thread}.{n}");
            let delay = Duration::from_millis(fastrand::u64(..20));
            jobs.schedule(Job::new("job", name.clone()).after(delay)).unwrap();
            log.line(&format!("answered {name}"));
        }
    };
    thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || part(thread));
        }
    });
}

fn start(folder: &Path, round: u32, step: Step) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(FOLDER, folder)
        .env(ROUND, round.to_string())
        .env(STEP, step.name())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the child asks for it, or for a random time after it has opened its store, and
/// kills it.
fn kill(folder: &Path, round: u32, step: Step) {
    let mut child = start(folder, round, step);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let awaited = match step {
        Step::Random => "open",
        _ => "kill me",
    };
    let said = lines.by_ref().map_while(Result::ok).find(|line| line.contains(awaited));
    assert!(said.is_some(), "round {round} ended before {step:?}");
    if step == Step::Random {
        thread::sleep(Duration::from_micros(fastrand::u64(..40_000)));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn kills() -> u32 {
    let set = std::env::var("KILLS").ok();
    set.map_or(30, |kills| kills.parse().expect("KILLS is a number"))
}

#[test]
fn durable_02_kills_lose_nothing_and_repeat_only_what_was_not_completed() {
    let folder = tempfile::tempdir().unwrap();
    let kills = kills();
    for round in 0..kills {
        let step = match round % 2 {
            0 => NAMED[round as usize / 2 % NAMED.len()],
            _ => Step::Random,
        };
        kill(folder.path(), round, step);
    }
    assert!(start(folder.path(), kills, Step::Never).wait().unwrap().success());
    check(&fs::read_to_string(folder.path().join("log")).unwrap(), kills);
}

/// Balances the ledger of a log.
fn check(log: &str, kills: u32) {
    let mut runs: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let mut answered = Vec::new();
    for line in log.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["answered", name] => answered.push(name),
            ["ran", name, round] => runs.entry(name).or_default().push(round.parse().unwrap()),
            _ => panic!("{line}"),
        }
    }
    let lost: Vec<_> = answered.iter().filter(|name| !runs.contains_key(*name)).collect();
    assert!(lost.is_empty(), "answered and never run: {lost:?}");
    let mut repeated = 0;
    for (name, rounds) in runs {
        // In rising order: once in each round at most. Only the last round was not killed.
        assert!(rounds.is_sorted_by(|one, next| one < next), "{name}: {rounds:?}");
        repeated += rounds.len() - 1;
    }
    println!("{kills} kills: {} answered, 0 lost, {repeated} run again", answered.len());
    assert!(repeated > 0 || kills < 20, "no kill met a run");
}
