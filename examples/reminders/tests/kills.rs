//! Services are killed by SIGKILL at random moments while clients use them, and started again on
//! the same store: one on a file, two on PostgreSQL if there is a server. In the end the ledger,
//! to which all of them append, must balance:
//!
//! - nothing is lost: a reminder whose `POST` was answered has run, unless a `DELETE` was sent,
//!   which may be carried out without an answer;
//! - each repeated run is explained: its attempt has a higher number, and the process of the
//!   earlier run was killed before, or its log says that it had lost its lease;
//! - a reminder that a client has seen gone was durably completed, and one whose `DELETE` was
//!   answered with `cancelled` was removed before it ran: neither runs afterwards.
//!
//! `KILLS` sets the number of kills, `SEED` the moments and the requests.

#![cfg(unix)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use self::support::{Life, Place, ask};

/// The number of clients at a time.
const CLIENTS: u64 = 3;
/// The most time for all reminders to run in the end: many times the pause after a failure.
const PATIENCE: Duration = Duration::from_secs(300);

/// A number that the environment may set.
fn set(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().expect("a number"))
}

/// What a client was told, and how long the ledger was afterwards.
#[derive(Debug)]
enum Told {
    Stored(String),
    /// A `DELETE` was sent.
    Asked(String),
    /// The reminder was cancelled, or seen gone.
    Ended(String, u64),
}

/// What is known of the reminders and of the processes.
#[derive(Default)]
struct Known {
    stored: BTreeSet<String>,
    asked: BTreeSet<String>,
    /// The length that the ledger had when a reminder was seen to have ended.
    ended: BTreeMap<String, u64>,
    /// The length that the ledger had when a process was about to be killed.
    killed: BTreeMap<u64, u64>,
    /// The processes that have lost a lease.
    late: BTreeSet<u64>,
}

impl Known {
    fn note(&mut self, told: Told) {
        match told {
            Told::Stored(id) => drop(self.stored.insert(id)),
            Told::Asked(id) => drop(self.asked.insert(id)),
            Told::Ended(id, length) => drop(self.ended.entry(id).or_insert(length)),
        }
    }
}

/// Where reminders are kept, and how random it is.
struct World {
    place: Place,
    random: fastrand::Rng,
    known: Known,
    next: u64,
    _folder: TempDir,
}

impl World {
    fn new(store: Option<String>) -> World {
        let seed = set("SEED", fastrand::u64(..));
        println!("SEED={seed}");
        let folder = tempfile::tempdir().unwrap();
        World {
            place: Place::new(folder.path(), store),
            random: fastrand::Rng::with_seed(seed),
            known: Known::default(),
            next: 0,
            _folder: folder,
        }
    }

    /// Starts a process of the node with this name.
    fn begin(&mut self, name: &str) -> Life {
        self.next += 1;
        Life::begin(&self.place, name, self.next - 1)
    }

    /// Lets clients use the services until one of them is killed at a random moment.
    fn use_and_kill(&mut self, lives: &mut Vec<Life>) {
        let addresses: Vec<SocketAddr> = lives.iter().map(|life| life.address).collect();
        let (ledger, is_over) = (self.place.ledger(), AtomicBool::new(false));
        let random = &mut self.random;
        let doomed = lives.swap_remove(random.usize(..lives.len()));
        let told: Vec<Told> = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    let client = Client {
                        addresses: &addresses,
                        ledger: &ledger,
                        random: random.fork(),
                        ids: Vec::new(),
                        told: Vec::new(),
                    };
                    let is_over = &is_over;
                    scope.spawn(move || client.work(is_over))
                })
                .collect();
            thread::sleep(Duration::from_micros(random.u64(..150_000)));
            self.known.killed.insert(doomed.number, length(&ledger));
            doomed.kill();
            is_over.store(true, Ordering::SeqCst);
            let told = clients.into_iter().map(|client| client.join().unwrap());
            told.flatten().collect()
        });
        told.into_iter().for_each(|told| self.known.note(told));
    }

    /// Waits until every reminder has run, and balances the ledger.
    fn finish(mut self, lives: Vec<Life>) {
        lives.iter().for_each(finish);
        drop(lives);
        for life in 0..self.next {
            let log = fs::read_to_string(self.place.log(life)).unwrap();
            if log.contains("lease lost") {
                self.known.late.insert(life);
            }
        }
        let ledger = fs::read_to_string(self.place.ledger()).unwrap();
        let repeated = check(&ledger, &self.known).unwrap_or_else(|reason| panic!("{reason}"));
        println!(
            "{} stored, {} seen to end, {repeated} runs repeated, {} leases lost, 0 reminders lost",
            self.known.stored.len(),
            self.known.ended.len(),
            self.known.late.len(),
        );
    }
}

fn length(ledger: &Path) -> u64 {
    fs::metadata(ledger).unwrap().len()
}

/// A client of services that may be killed.
struct Client<'a> {
    addresses: &'a [SocketAddr],
    ledger: &'a Path,
    random: fastrand::Rng,
    ids: Vec<String>,
    told: Vec<Told>,
}

impl Client<'_> {
    /// Schedules, cancels and looks up reminders.
    fn work(mut self, is_over: &AtomicBool) -> Vec<Told> {
        while !is_over.load(Ordering::SeqCst) {
            if self.request().is_err() {
                thread::sleep(Duration::from_millis(1));
            }
        }
        self.told
    }

    fn request(&mut self) -> io::Result<()> {
        let address = self.addresses[self.random.usize(..self.addresses.len())];
        if self.ids.is_empty() {
            return self.post(address);
        }
        let number = self.random.usize(..self.ids.len());
        match self.random.u32(..8) {
            0 => self.delete(address, number),
            1 | 2 => self.get(address, number),
            _ => self.post(address),
        }
    }

    fn post(&mut self, address: SocketAddr) -> io::Result<()> {
        let delay = format!("{}ms", self.random.u32(..40));
        let body = json!({"text": "a \"reminder\"\n", "in": delay}).to_string();
        let (status, answer) = ask(address, "POST", "/reminders", &body)?;
        assert_eq!(status, 201, "{answer}");
        let id = answer["id"].as_str().unwrap().to_owned();
        self.told.push(Told::Stored(id.clone()));
        self.ids.push(id);
        Ok(())
    }

    fn get(&mut self, address: SocketAddr, number: usize) -> io::Result<()> {
        let path = format!("/reminders/{}", self.ids[number]);
        let (status, answer) = ask(address, "GET", &path, "")?;
        match status {
            200 => {}
            404 => self.end(number),
            _ => panic!("{status}: {answer}"),
        }
        Ok(())
    }

    fn delete(&mut self, address: SocketAddr, number: usize) -> io::Result<()> {
        let id = self.ids[number].clone();
        self.told.push(Told::Asked(id.clone()));
        let (status, answer) = ask(address, "DELETE", &format!("/reminders/{id}"), "")?;
        match status {
            200 | 404 => self.end(number),
            // Its run goes on.
            202 => drop(self.ids.swap_remove(number)),
            _ => panic!("{status}: {answer}"),
        }
        Ok(())
    }

    fn end(&mut self, number: usize) {
        let ended = Told::Ended(self.ids.swap_remove(number), length(self.ledger));
        self.told.push(ended);
    }
}

/// Waits until every reminder has run. None may be a dead letter.
fn finish(life: &Life) {
    let list = |path: &str| {
        let (status, list) = ask(life.address, "GET", path, "").unwrap();
        assert_eq!(status, 200, "{list}");
        list.as_array().unwrap().len()
    };
    let begun = Instant::now();
    while list("/reminders") > 0 {
        let elapsed = begun.elapsed();
        assert!(elapsed < PATIENCE, "reminders are left that do not run");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(list("/reminders?dead"), 0);
    let (status, health) = ask(life.address, "GET", "/health", "").unwrap();
    assert_eq!(status, 200, "{health}");
}

/// A line of the ledger, and where it begins.
#[derive(Clone, Copy, Debug)]
struct Run {
    attempt: u32,
    life: u64,
    at: u64,
}

fn runs(ledger: &str) -> BTreeMap<&str, Vec<Run>> {
    let mut runs: BTreeMap<&str, Vec<Run>> = BTreeMap::new();
    let mut at = 0;
    for line in ledger.split_inclusive('\n') {
        let fields: Vec<&str> = line.splitn(5, ' ').collect();
        let &["ran", id, attempt, life, text] = &fields[..] else {
            panic!("a torn line: {line}");
        };
        assert_eq!(text, "\"a \\\"reminder\\\"\\n\"\n");
        runs.entry(id).or_default().push(Run {
            attempt: attempt.parse().unwrap(),
            life: life.parse().unwrap(),
            at,
        });
        at += line.len() as u64;
    }
    runs
}

/// Balances the ledger. Returns the number of repeated runs.
fn check(ledger: &str, known: &Known) -> Result<usize, String> {
    let runs = runs(ledger);
    let is_run = |id: &String| runs.contains_key(id.as_str()) || known.asked.contains(id);
    if let Some(lost) = known.stored.iter().find(|id| !is_run(id)) {
        return Err(format!("lost: {lost} was stored and has not run"));
    }
    let mut repeated = 0;
    for (id, runs) in &runs {
        if !runs.is_sorted_by(|one, next| is_explained(one, next, known)) {
            return Err(format!("unexplained: {id} {runs:?}"));
        }
        let end = known.ended.get(*id).copied().unwrap_or(u64::MAX);
        let is_after = |run: &&Run| run.at >= end && !known.late.contains(&run.life);
        if let Some(run) = runs.iter().find(is_after) {
            return Err(format!("ended, and run again: {id} {run:?}"));
        }
        repeated += runs.len() - 1;
    }
    Ok(repeated)
}

/// Returns whether the second run may follow the first one.
fn is_explained(one: &Run, next: &Run, known: &Known) -> bool {
    let was_killed = known.killed.get(&one.life).is_some_and(|at| *at <= next.at);
    let is_other = one.life != next.life && was_killed;
    one.attempt < next.attempt && (is_other || known.late.contains(&one.life))
}

#[test]
fn kills_lose_no_reminder_and_explain_each_that_runs_again() {
    let mut world = World::new(None);
    for _ in 0..set("KILLS", 8) {
        let mut lives = vec![world.begin("one")];
        world.use_and_kill(&mut lives);
    }
    let last = world.begin("one");
    world.finish(vec![last]);
}

/// A node that is killed comes back under its name, and has its lease at once; or under another
/// one, and the other node takes over when the lease has run out.
#[test]
fn kills_of_one_of_two_nodes_lose_no_reminder() {
    let Ok(server) = std::env::var("TICKWHEEL_POSTGRES") else {
        eprintln!("SKIPPED: TICKWHEEL_POSTGRES is not set; durable/tests/postgres.sh sets it");
        return;
    };
    let url = format!("postgres:///?{}", server.replace(' ', "&"));
    let mut world = World::new(Some(url));
    let mut lives = vec![world.begin("one"), world.begin("two")];
    for kill in 0..set("KILLS", 8) {
        let names: Vec<String> = lives.iter().map(|life| life.name.clone()).collect();
        world.use_and_kill(&mut lives);
        let mut gone = names.into_iter().filter(|name| *name != lives[0].name);
        let name = match kill % 4 {
            3 => format!("node{kill}"),
            _ => gone.next().unwrap(),
        };
        lives.push(world.begin(&name));
    }
    world.finish(lives);
}

/// The check finds what it is for.
#[test]
fn an_unbalanced_ledger_is_found() {
    let line = |attempt: u32, life: u64| {
        let text = "a \"reminder\"\n";
        format!("ran 1-1 {attempt} {life} {text:?}\n")
    };
    let length = line(1, 0).len() as u64;
    let known = |ended: Option<u64>, killed: Option<u64>| {
        let mut known = Known::default();
        let id = || "1-1".to_owned();
        known.note(Told::Stored(id()));
        if let Some(at) = ended {
            known.note(Told::Ended(id(), at));
        }
        known.killed.extend(killed.map(|at| (0, at)));
        known
    };
    let twice = line(1, 0) + &line(2, 1);
    let killed = Some(length);
    assert_eq!(check(&twice, &known(None, killed)), Ok(1));
    let mut late = known(None, None);
    late.late.insert(0);
    assert_eq!(check(&twice, &late), Ok(1));
    let same_attempt = line(1, 0) + &line(1, 1);
    let same_life = line(1, 0) + &line(2, 0);
    for (ledger, known, found) in [
        ("", known(None, None), "lost"),
        (&twice, known(None, None), "unexplained"),
        (&twice, known(None, Some(length + 1)), "unexplained"),
        (&same_attempt, known(None, killed), "unexplained"),
        (&same_life, known(None, killed), "unexplained"),
        (&twice, known(Some(length), killed), "ended"),
        (&line(1, 0), known(Some(0), None), "ended"),
    ] {
        let reason = check(ledger, &known).unwrap_err();
        assert!(reason.starts_with(found), "{reason}");
    }
}
