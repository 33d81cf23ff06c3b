//! Two nodes on one PostgreSQL database: lag and transactions per job at a steady rate, and what
//! they ask while nothing happens.
//!
//!     durable/tests/postgres.sh cargo bench -p tickwheel-durable --features postgres --bench database
//!
//! `JOBS` sets the jobs a second, `SECS` the length.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use tickwheel_durable::store::List;
use tickwheel_durable::{Durable, Job, PostgresOptions, SystemClock, WallClock};

const SCHEMA: &str = "bench_database";

fn setting(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |set| set.parse().expect("a number"))
}

/// Returns the transactions of the database so far. What it counts is up to a second old.
fn transactions(client: &mut Client) -> i64 {
    thread::sleep(Duration::from_millis(1_500));
    let text = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    client.query_one(text, &[]).unwrap().get(0)
}

fn main() {
    let Ok(server) = std::env::var("TICKWHEEL_POSTGRES") else {
        println!("SKIPPED: durable/tests/postgres.sh starts the server");
        return;
    };
    let (rate, secs) = (setting("JOBS", 1_000), setting("SECS", 5));
    let mut client = Client::connect(&server, NoTls).unwrap();
    let drop = format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE");
    client.batch_execute(&drop).unwrap();
    let store = || {
        PostgresOptions::new()
            .schema(SCHEMA)
            .connect(&server)
            .unwrap()
    };
    let lags: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let nodes = [1, 2].map(|_| {
        let lags = Arc::clone(&lags);
        let builder = Durable::builder()
            .workers(8)
            .handler("job", move |attempt| {
                lags.lock()
                    .unwrap()
                    .push(SystemClock.now().since(attempt.due()));
            });
        builder.open(store()).unwrap()
    });
    // The server counts what a connection has done when it has been silent for ten seconds.
    thread::sleep(Duration::from_secs(15));
    let before = transactions(&mut client);
    let begin = Instant::now();
    thread::sleep(Duration::from_secs(20));
    let idle = transactions(&mut client) - before;
    let each = idle as f64 / begin.elapsed().as_secs_f64() / 2.0;
    println!("idle: {each:.2} transactions a second for each node");

    // All jobs are stored first, a few in each commit, so that what is counted is their running.
    let first = SystemClock.now() + Duration::from_secs(5);
    for second in 0..secs {
        let due = |job| {
            first + Duration::from_secs(second) + Duration::from_secs(1) * job as u32 / rate as u32
        };
        for part in (0..rate).collect::<Vec<_>>().chunks(500) {
            let jobs = part
                .iter()
                .map(|job| Job::new("job", [7; 100]).at(due(*job)));
            for scheduled in nodes[0].schedule_many(jobs) {
                scheduled.unwrap();
            }
        }
    }
    assert!(SystemClock.now() < first, "too slow to store the jobs");
    let before = transactions(&mut client);
    let begin = Instant::now();
    while nodes[0].count(List::Live).unwrap() > 0 {
        thread::sleep(Duration::from_millis(500));
    }
    // Those of this loop are not the nodes'.
    let counts = (begin.elapsed().as_secs_f64() / 0.5) as i64;
    let asked = transactions(&mut client) - before - counts;
    let mut lags = std::mem::take(&mut *lags.lock().unwrap());
    lags.sort_unstable();
    let jobs = (rate * secs) as usize;
    println!(
        "{rate} a second: {:.3} transactions for each job; lag p50 {:?}, p99 {:?}, most {:?}; {} runs of {jobs} jobs",
        asked as f64 / jobs as f64,
        lags[lags.len() / 2],
        lags[lags.len() * 99 / 100],
        lags[lags.len() - 1],
        lags.len(),
    );
    std::mem::drop(nodes);
    client.batch_execute(&drop).unwrap();
}
