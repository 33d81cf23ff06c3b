//! The table of the other designs, and the transaction in which they run a batch.
//!
//! It is their best form that is still correct: one statement claims and removes a batch of due
//! rows, the handlers run before the commit, and a process that dies gives its rows back at once.

use postgres::{Client, NoTls, Transaction};
use tickwheel_durable::{SystemClock, WallClock, WallTime};

use crate::contender::{Handler, Scheduler};

pub(crate) const BODY: [u8; 100] = [7; 100];
/// The channel on which new jobs are announced.
pub(crate) const CHANNEL: &str = "jobs";
/// The largest number of jobs in a batch.
const BATCH: i64 = 500;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS jobs (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, due bigint NOT NULL, body bytea NOT NULL);
    CREATE INDEX IF NOT EXISTS jobs_due ON jobs (due)";
const INSERT: &str = "INSERT INTO jobs (due, body) SELECT due, $2 FROM unnest($1::bigint[]) due";
const CLAIM: &str = "
    DELETE FROM jobs WHERE id = ANY(ARRAY(
        SELECT id FROM jobs WHERE due <= $1 ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED))
    RETURNING due, body";
/// The statements are prepared while the table is empty, and keep their plans.
const PLANS: &str = "SET enable_seqscan = off";

/// Connects, and creates the table unless it exists.
pub(crate) fn connect(database: &str) -> Client {
    let mut client = Client::connect(database, NoTls).unwrap();
    client.batch_execute(SCHEMA).unwrap();
    client.batch_execute(PLANS).unwrap();
    client
}

fn micros(time: WallTime) -> i64 {
    i64::try_from(time.as_unix_micros()).unwrap()
}

/// A batch that was claimed.
pub(crate) struct Batch {
    now: i64,
    pub(crate) is_full: bool,
}

/// Claims due jobs and runs their handlers. The caller commits.
pub(crate) fn run_due(
    transaction: &mut Transaction<'_>,
    claim: &Claim,
    handler: &Handler,
) -> Batch {
    let now = micros(SystemClock.now());
    let rows = transaction.query(&claim.0, &[&now, &BATCH]).unwrap();
    for row in &rows {
        let due: i64 = row.get(0);
        handler(WallTime::from_unix_micros(due.unsigned_abs()));
    }
    let is_full = rows.len() as i64 == BATCH;
    Batch { now, is_full }
}

/// The prepared statement of a connection.
pub(crate) struct Claim(postgres::Statement);

impl Claim {
    pub(crate) fn of(client: &mut Client) -> Claim {
        Claim(client.prepare(CLAIM).unwrap())
    }
}

/// Returns the first due time behind those of a batch.
pub(crate) fn next_due(transaction: &mut Transaction<'_>, batch: &Batch) -> Option<WallTime> {
    let text = "SELECT min(due) FROM jobs WHERE due > $1";
    let next: Option<i64> = transaction.query_one(text, &[&batch.now]).unwrap().get(0);
    next.map(|due| WallTime::from_unix_micros(due.unsigned_abs()))
}

/// A connection that schedules.
pub(crate) struct Table {
    client: Client,
    announces: bool,
}

impl Table {
    pub(crate) fn new(database: &str, announces: bool) -> Table {
        let client = connect(database);
        Table { client, announces }
    }
}

impl Scheduler for Table {
    fn schedule(&mut self, dues: &[WallTime]) {
        let dues: Vec<i64> = dues.iter().map(|due| micros(*due)).collect();
        let mut transaction = self.client.transaction().unwrap();
        transaction.execute(INSERT, &[&dues, &&BODY[..]]).unwrap();
        if let (true, Some(first)) = (self.announces, dues.iter().min()) {
            let text = "SELECT pg_notify($1, $2)";
            transaction.execute(text, &[&CHANNEL, &first.to_string()]).unwrap();
        }
        transaction.commit().unwrap();
    }

    fn left(&mut self) -> u64 {
        let row = self.client.query_one("SELECT count(*) FROM jobs", &[]);
        row.unwrap().get::<_, i64>(0).unsigned_abs()
    }
}
