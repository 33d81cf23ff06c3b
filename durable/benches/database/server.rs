//! A database for each contender, and what the server has counted of it.

use std::thread;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};

/// The time after which the server has counted what a silent connection has done.
pub(crate) const COUNTED: Duration = Duration::from_secs(12);

/// The commits of a probe.
const PROBES: i32 = 100;

pub(crate) struct Server {
    params: String,
    client: Client,
}

/// Returns the name of a contender's database.
fn database(contender: &str) -> String {
    let letters = contender.chars().filter(|letter| letter.is_alphanumeric());
    format!("bench_{}", letters.collect::<String>())
}

impl Server {
    pub(crate) fn new(params: String) -> Server {
        let client = Client::connect(&params, NoTls).unwrap();
        Server { params, client }
    }

    /// Returns how a contender connects to its database.
    pub(crate) fn params(&self, contender: &str) -> String {
        format!("{} dbname={}", self.params, database(contender))
    }

    /// Creates an empty database.
    pub(crate) fn create_database(&mut self, contender: &str) -> String {
        self.drop_database(contender);
        let text = format!("CREATE DATABASE {}", database(contender));
        self.client.batch_execute(&text).unwrap();
        self.params(contender)
    }

    pub(crate) fn drop_database(&mut self, contender: &str) {
        let name = database(contender);
        let text = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        self.client.batch_execute(&text).unwrap();
    }

    /// Returns the transactions of a database so far. A silent connection is counted after
    /// [`COUNTED`].
    pub(crate) fn transactions(&mut self, contender: &str) -> f64 {
        let text = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1";
        let row = self.client.query_one(text, &[&database(contender)]);
        row.unwrap().get::<_, i64>(0) as f64
    }

    /// Returns how long commits of one row take.
    pub(crate) fn probe(&mut self) -> Vec<Duration> {
        let text = "CREATE TABLE IF NOT EXISTS bench_probe (number int)";
        self.client.batch_execute(text).unwrap();
        let commit = |number| {
            let begin = Instant::now();
            let text = "INSERT INTO bench_probe VALUES ($1)";
            self.client.execute(text, &[&number]).unwrap();
            begin.elapsed()
        };
        (0..PROBES).map(commit).collect()
    }

    /// Waits until the server has counted what is past.
    pub(crate) fn settle(&self) {
        thread::sleep(COUNTED);
    }
}
