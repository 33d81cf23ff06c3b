//! The service is killed by SIGKILL at random moments while clients use it, and started again
//! on the same file. In the end the ledger must balance:
//!
//! - nothing is lost: a reminder whose `POST` was answered has run, unless a `DELETE` was sent,
//!   which may be carried out without an answer; one that was answered with `cancelled` did
//!   not run afterwards;
//! - a reminder runs once in the life of a process at most;
//! - each repeated run is explained: the process of the earlier one was killed, and until then
//!   no client had seen the reminder gone. One that a client has seen gone was durably
//!   completed, and never runs again;
//! - attempts and fences rise from run to run.
//!
//! `KILLS` sets the number of kills, `SEED` the moments and the requests.

#![cfg(unix)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use self::support::{Life, ask};

/// The number of clients at a time.
const CLIENTS: u64 = 3;
/// The most time for all reminders to run in the end: many times the pause after a failure.
const PATIENCE: Duration = Duration::from_secs(300);

/// A number that the environment may set.
fn set(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().expect("a number"))
}

/// What a client was told.
#[derive(Debug)]
enum Told {
    Stored(String),
    /// A `DELETE` was sent.
    Asked(String),
    Cancelled(String),
    Gone(String),
}

/// What the clients were told.
#[derive(Default)]
struct Known {
    stored: BTreeSet<String>,
    /// Reminders that a `DELETE` was sent for.
    asked: BTreeSet<String>,
    /// The life in which a reminder was cancelled, or seen gone.
    cancelled: BTreeMap<String, u64>,
    gone: BTreeMap<String, u64>,
}

impl Known {
    fn note(&mut self, life: u64, told: Told) {
        match told {
            Told::Stored(id) => drop(self.stored.insert(id)),
            Told::Asked(id) => drop(self.asked.insert(id)),
            Told::Cancelled(id) => drop(self.cancelled.insert(id, life)),
            Told::Gone(id) => drop(self.gone.entry(id).or_insert(life)),
        }
    }
}

/// Schedules, cancels and looks up reminders until the service is killed.
fn client(address: SocketAddr, mut random: fastrand::Rng, is_over: &AtomicBool) -> Vec<Told> {
    let mut told = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        if request(address, &mut random, &mut ids, &mut told).is_err() {
            break;
        }
    }
    told
}

fn request(
    address: SocketAddr,
    random: &mut fastrand::Rng,
    ids: &mut Vec<String>,
    told: &mut Vec<Told>,
) -> io::Result<()> {
    let number = random.usize(..ids.len().max(1));
    let path = ids.get(number).map(|id| format!("/reminders/{id}"));
    match (random.u32(..8), path) {
        (0, Some(path)) => {
            let id = ids.swap_remove(number);
            told.push(Told::Asked(id.clone()));
            let (status, answer) = ask(address, "DELETE", &path, "")?;
            match status {
                200 => told.push(Told::Cancelled(id)),
                202 => {}
                404 => told.push(Told::Gone(id)),
                _ => panic!("{status}: {answer}"),
            }
        }
        (1 | 2, Some(path)) => {
            let (status, answer) = ask(address, "GET", &path, "")?;
            match status {
                200 => {}
                404 => told.push(Told::Gone(ids.swap_remove(number))),
                _ => panic!("{status}: {answer}"),
            }
        }
        _ => {
            let delay = format!("{}ms", random.u32(..40));
            let body = json!({"text": "a \"reminder\"\n", "in": delay}).to_string();
            let (status, answer) = ask(address, "POST", "/reminders", &body)?;
            assert_eq!(status, 201, "{answer}");
            let id = answer["id"].as_str().unwrap().to_owned();
            told.push(Told::Stored(id.clone()));
            ids.push(id);
        }
    }
    Ok(())
}

/// Lets clients use the service until it is killed at a random moment.
fn use_and_kill(number: u64, life: Life, random: &mut fastrand::Rng, known: &mut Known) {
    let (address, is_over) = (life.address, AtomicBool::new(false));
    let told: Vec<Told> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (random, is_over) = (random.fork(), &is_over);
                scope.spawn(move || client(address, random, is_over))
            })
            .collect();
        thread::sleep(Duration::from_micros(random.u64(..150_000)));
        life.kill();
        is_over.store(true, Ordering::SeqCst);
        clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect()
    });
    told.into_iter().for_each(|told| known.note(number, told));
}

/// Waits until every reminder has run. None may be a dead letter.
fn finish(life: Life) {
    let list = |path: &str| {
        let (status, list) = ask(life.address, "GET", path, "").unwrap();
        assert_eq!(status, 200, "{list}");
        list.as_array().unwrap().len()
    };
    let begun = Instant::now();
    while list("/reminders") > 0 {
        assert!(
            begun.elapsed() < PATIENCE,
            "reminders are left that do not run"
        );
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(list("/reminders?dead"), 0);
    let (status, health) = ask(life.address, "GET", "/health", "").unwrap();
    assert_eq!(status, 200, "{health}");
    life.kill();
}

/// A line of the ledger.
#[derive(Clone, Copy, Debug)]
struct Run {
    attempt: u32,
    fence: u64,
    life: u64,
}

fn runs(ledger: &str) -> BTreeMap<&str, Vec<Run>> {
    let mut runs: BTreeMap<&str, Vec<Run>> = BTreeMap::new();
    for line in ledger.lines() {
        let fields: Vec<&str> = line.splitn(6, ' ').collect();
        let &["ran", id, attempt, fence, life, text] = &fields[..] else {
            panic!("a torn line: {line}");
        };
        assert_eq!(text, r#""a \"reminder\"\n""#);
        runs.entry(id).or_default().push(Run {
            attempt: attempt.parse().unwrap(),
            fence: fence.parse().unwrap(),
            life: life.parse().unwrap(),
        });
    }
    runs
}

/// Balances the ledger. Returns the number of repeated runs.
fn check(ledger: &str, known: &Known) -> Result<usize, String> {
    let runs = runs(ledger);
    let is_ended = |id: &&String| runs.contains_key(id.as_str()) || known.asked.contains(*id);
    if let Some(lost) = known.stored.iter().find(|id| !is_ended(id)) {
        return Err(format!("lost: {lost} was stored and has not run"));
    }
    let mut repeated = 0;
    for (id, runs) in &runs {
        let rises = |one: &Run, next: &Run| {
            one.life < next.life && one.fence < next.fence && one.attempt < next.attempt
        };
        if !runs.is_sorted_by(rises) {
            return Err(format!("unexplained: {id} {runs:?}"));
        }
        let last = runs.last().map_or(0, |run| run.life);
        if known.gone.get(*id).is_some_and(|seen| *seen < last) {
            return Err(format!("completed, and run again: {id} {runs:?}"));
        }
        if known.cancelled.get(*id).is_some_and(|seen| *seen <= last) {
            return Err(format!("cancelled, and run afterwards: {id} {runs:?}"));
        }
        repeated += runs.len() - 1;
    }
    Ok(repeated)
}

#[test]
fn kills_lose_no_reminder_and_explain_each_that_runs_again() {
    let (kills, seed) = (set("KILLS", 8), set("SEED", fastrand::u64(..)));
    println!("KILLS={kills} SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let folder = tempfile::tempdir().unwrap();
    let mut known = Known::default();
    for number in 0..kills {
        let life = Life::begin(folder.path(), number);
        use_and_kill(number, life, &mut random, &mut known);
    }
    finish(Life::begin(folder.path(), kills));
    let ledger = fs::read_to_string(folder.path().join("ledger.txt")).unwrap_or_default();
    let repeated = check(&ledger, &known).unwrap_or_else(|reason| panic!("{reason}"));
    println!(
        "{} stored, {} cancelled, {} seen gone, {repeated} runs repeated, 0 lost",
        known.stored.len(),
        known.cancelled.len(),
        known.gone.len(),
    );
}

/// The check finds what it is for.
#[test]
fn an_unbalanced_ledger_is_found() {
    let line = |id: &str, attempt: u32, life: u64| {
        let fence = life + 1;
        format!(
            "ran {id} {attempt} {fence} {life} {:?}\n",
            "a \"reminder\"\n"
        )
    };
    let known = |told: Vec<(u64, Told)>| {
        let mut known = Known::default();
        told.into_iter()
            .for_each(|(life, told)| known.note(life, told));
        known
    };
    let id = || "1-1".to_owned();
    let stored = known(vec![(0, Told::Stored(id()))]);
    assert_eq!(
        check(&(line("1-1", 1, 0) + &line("1-1", 2, 1)), &stored),
        Ok(1)
    );
    for (ledger, known, found) in [
        (String::new(), &stored, "lost"),
        (
            line("1-1", 1, 0) + &line("1-1", 2, 0),
            &stored,
            "unexplained",
        ),
        (
            line("1-1", 1, 0) + &line("1-1", 1, 1),
            &stored,
            "unexplained",
        ),
        (
            line("1-1", 1, 0) + &line("1-1", 2, 1),
            &known(vec![(0, Told::Gone(id()))]),
            "completed",
        ),
        (
            line("1-1", 1, 0),
            &known(vec![(0, Told::Cancelled(id()))]),
            "cancelled",
        ),
    ] {
        let reason = check(&ledger, known).unwrap_err();
        assert!(reason.starts_with(found), "{reason}");
    }
}
