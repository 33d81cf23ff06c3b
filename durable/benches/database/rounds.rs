//! What is measured, in rounds that alternate between the contenders.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_durable::{SystemClock, WallClock, WallTime};

use crate::contender::{Contender, Node, Scheduler};
use crate::runs::{Runs, medians, spread};
use crate::server::Server;

/// The lease of the nodes that have one, by default and while one of them is killed.
const LEASE: Duration = Duration::from_secs(10);
const SHORT_LEASE: Duration = Duration::from_secs(1);
/// The variable by which a child knows the contender whose node it is.
pub(crate) const CHILD: &str = "DURABLE_DATABASE";
/// The time for which nothing happens.
const IDLE: Duration = Duration::from_secs(20);
/// A job that stands in the store all the time, so that nobody sleeps for want of any.
const FAR: Duration = Duration::from_secs(3_600);
/// The largest number of jobs that are stored in one commit.
const STORED_AT_ONCE: usize = 500;
/// The jobs of a round that come one by one, and the longest pause between two.
const LONE: usize = 60;
const LONE_PAUSE_MS: u64 = 80;

/// A contender with its nodes and its database.
pub(crate) struct World<'a> {
    contender: &'a dyn Contender,
    database: String,
    nodes: Vec<Box<dyn Node>>,
    scheduler: std::cell::RefCell<Box<dyn Scheduler>>,
    runs: Arc<Runs>,
}

impl<'a> World<'a> {
    pub(crate) fn open(contender: &'a dyn Contender, server: &mut Server) -> World<'a> {
        let database = server.create_database(contender.name());
        let runs: Arc<Runs> = Arc::default();
        let node = |_| contender.node(&database, LEASE, runs.handler());
        let nodes = (0..2).map(node).collect();
        let mut scheduler = contender.scheduler(&database);
        scheduler.schedule(&[SystemClock.now() + FAR]);
        World { contender, database, nodes, scheduler: scheduler.into(), runs }
    }

    pub(crate) fn close(self) {
        drop(self);
    }

    fn name(&self) -> &'static str {
        self.contender.name()
    }

    fn schedule(&self, dues: &[WallTime]) {
        for part in dues.chunks(STORED_AT_ONCE) {
            self.scheduler.borrow_mut().schedule(part);
        }
    }

    /// Runs jobs at a steady rate, and returns their lags. All of them are stored first, so that
    /// only their running is measured.
    fn lags(&self, rate: u64, secs: u64) -> Vec<Duration> {
        let jobs = rate * secs;
        let first =
            SystemClock.now() + Duration::from_secs(1) + jobs as u32 * Duration::from_micros(200);
        let due = |job: u64| first + Duration::from_micros(job * 1_000_000 / rate);
        let dues: Vec<WallTime> = (0..jobs).map(due).collect();
        self.schedule(&dues);
        assert!(SystemClock.now() < first, "too slow to store the jobs");
        let begun = self.runs.wait(dues.len());
        begun.iter().map(|(due, begun)| begun.since(*due)).collect()
    }

    /// Stores jobs that are due at once, one by one, and returns the times from the end of each
    /// commit to the handler.
    fn lone(&self) -> Vec<Duration> {
        let store = |_| {
            thread::sleep(Duration::from_millis(fastrand::u64(20..LONE_PAUSE_MS)));
            let due = SystemClock.now();
            self.schedule(&[due]);
            (due, SystemClock.now())
        };
        let stored: HashMap<WallTime, WallTime> = (0..LONE).map(store).collect();
        let begun = self.runs.wait(LONE);
        begun.iter().map(|(due, begun)| begun.since(stored[due])).collect()
    }

    /// Kills one of two nodes while jobs are due every 5 ms, and returns the largest lag.
    fn take_over(&mut self) -> f64 {
        let own = self.contender.node(&self.database, SHORT_LEASE, self.runs.handler());
        self.nodes = vec![own];
        let mut child = start_child(self.name());
        // The nodes share the jobs by now, if they do.
        thread::sleep(SHORT_LEASE);
        let first = SystemClock.now() + Duration::from_millis(500);
        let due = |job| first + Duration::from_millis(5) * job;
        self.schedule(&(0..300).map(due).collect::<Vec<_>>());
        thread::sleep(Duration::from_secs(1));
        child.kill().unwrap();
        child.wait().unwrap();
        self.wait_until_none_is_left();
        let begun = self.runs.take();
        let lags = begun.iter().map(|(due, begun)| begun.since(*due));
        spread(lags.collect())[2]
    }

    /// The far job stays.
    fn wait_until_none_is_left(&self) {
        let begin = Instant::now();
        while self.scheduler.borrow_mut().left() > 1 {
            assert!(begin.elapsed() < Duration::from_secs(60), "jobs are left");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Returns the transactions a second of each node while nothing happens.
pub(crate) fn idle(worlds: &[World<'_>], server: &mut Server) -> Vec<f64> {
    server.settle();
    let before = counts(worlds, server);
    let begin = Instant::now();
    thread::sleep(IDLE);
    let after = counts(worlds, server);
    let secs = begin.elapsed().as_secs_f64();
    let each = before.iter().zip(after);
    each.map(|(before, after)| (after - before) / secs / 2.0).collect()
}

fn counts(worlds: &[World<'_>], server: &mut Server) -> Vec<f64> {
    let count = |world: &World<'_>| server.transactions(world.name());
    worlds.iter().map(count).collect()
}

/// The lag at a rate, and the transactions for each job.
pub(crate) struct Lags {
    pub(crate) spread: [f64; 3],
    pub(crate) transactions: f64,
}

/// Returns the medians of rounds. The transactions of a job are those of the seconds in which jobs
/// are due; the ones of the time between are those of idle nodes.
pub(crate) fn lags(
    worlds: &[World<'_>],
    server: &mut Server,
    idle: &[f64],
    (rate, secs, rounds): (u64, u64, u64),
) -> Vec<Lags> {
    let before = counts(worlds, server);
    let begin = Instant::now();
    let mut spreads = vec![Vec::new(); worlds.len()];
    for _ in 0..rounds {
        for (world, spreads) in worlds.iter().zip(&mut spreads) {
            spreads.push(spread(world.lags(rate, secs)));
        }
    }
    server.settle();
    let after = counts(worlds, server);
    let between = begin.elapsed().as_secs_f64() - (secs * rounds) as f64;
    let jobs = (rate * secs * rounds) as f64;
    let each = |(world, spreads): (usize, &Vec<[f64; 3]>)| Lags {
        spread: medians(spreads),
        transactions: ((after[world] - before[world] - idle[world] * 2.0 * between) / jobs)
            .max(0.0),
    };
    spreads.iter().enumerate().map(each).collect()
}

/// Returns the medians of rounds of lone jobs.
pub(crate) fn lone(worlds: &[World<'_>], rounds: u64) -> Vec<[f64; 3]> {
    let mut spreads = vec![Vec::new(); worlds.len()];
    for _ in 0..rounds {
        for (world, spreads) in worlds.iter().zip(&mut spreads) {
            spreads.push(spread(world.lone()));
        }
    }
    spreads.iter().map(|spreads| medians(spreads)).collect()
}

/// Returns the medians of the largest lags after the end of a node.
pub(crate) fn take_overs(worlds: &mut [World<'_>], rounds: u64) -> Vec<f64> {
    let mut most = vec![Vec::new(); worlds.len()];
    for _ in 0..rounds {
        for (world, most) in worlds.iter_mut().zip(&mut most) {
            most.push([world.take_over()]);
        }
    }
    most.iter().map(|most| medians(most)[0]).collect()
}

/// Starts this program again as a node of a contender, and waits until it works.
fn start_child(contender: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(CHILD, contender)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut said).unwrap();
    assert_eq!(said, "open\n");
    child
}

/// Is a node until it is killed.
pub(crate) fn child(contenders: &[Box<dyn Contender>], name: &str, server: &Server) {
    let contender = contenders.iter().find(|contender| contender.name() == name);
    let runs: Arc<Runs> = Arc::default();
    let _node = contender.unwrap().node(&server.params(name), SHORT_LEASE, runs.handler());
    println!("open");
    loop {
        thread::park();
    }
}
