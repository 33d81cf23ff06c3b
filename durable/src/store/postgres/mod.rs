//! A store in PostgreSQL, for several nodes on several machines.
//!
//! The tables lie in a schema of their own. Everything that is written happens in functions of
//! the database: a batch of changes is one statement and one round trip, and no client holds a
//! lock while it is paused. `schema.sql` has the tables, `functions.sql` the functions.
//!
//! # Leases and shards
//! Each node has a lease with an end by the database's clock. The jobs of a kind lie in shards, of
//! which each node that handles the kind has about as many as every other. A commit that starts or
//! finishes jobs locks the row of its lease against removal, so a node whose lease was replaced
//! changes nothing. A renewal writes that row and does nothing else. When nodes have come or gone,
//! each removes leases that have ended, takes shards that nobody has, and gives up those beyond
//! its share: it starts nothing more of such a shard, and hands it over once nothing of it runs.
//!
//! # What nodes hear of each other
//! A commit that places a job in another node's shard, within the reach of its window, announces
//! the job in the same transaction (`NOTIFY`). What was not heard is found by the next load.

mod clock;
mod connection;
mod database;
mod enqueue;
mod error;
mod link;
mod options;
mod rows;
mod schema;
mod transact;
mod transaction;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use self::clock::monotonic;
use self::connection::Argument;
use self::database::Database;
use self::link::Link;
pub use self::options::PostgresOptions;
use self::rows::{
    APPLY, arguments, duration_micros, micros, name, number, numbers, signed, text, time,
};
pub use self::transaction::Transaction;
use crate::job::{JobId, StoredJob};
use crate::store::{
    Answer, Change, Due, Hear, Kind, Lease, List, PAGE_BYTES, Page, Result, Store, StoreError,
    Transactions,
};
use crate::wall::{WallClock, WallTime};

/// The shortest wait for an answer to a node that wants a lease.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest wait of a node that is closed.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// Takes the kinds from a lease, so that it gets no more shards, and gives up those of which nothing
/// runs. The lock waits for commits that start jobs; later ones find no shard.
const LEAVE: &str = "DO $$ BEGIN
    PERFORM set_config('enable_seqscan', 'off', true) FROM {schema}.tickwheel_durable FOR UPDATE;
    PERFORM 1 FROM {schema}.leases l WHERE l.fence = {fence} FOR UPDATE;
    UPDATE {schema}.leases l SET kinds = '{}' WHERE l.fence = {fence};
    UPDATE {schema}.shards s SET fence = 0, leaving = false WHERE s.fence = {fence} AND NOT EXISTS (
        SELECT 1 FROM {schema}.jobs j WHERE j.shard = s.shard AND j.fence = {fence} AND j.fence <> 0);
    NOTIFY tickwheel_{schema}, 'members';
END $$";

/// A store in a PostgreSQL database, for several nodes.
///
/// Each node has a `PostgresStore` of its own, in the same process or on other machines, and all
/// their stores use one schema. The nodes share the jobs. Needs PostgreSQL 12 or later, and the
/// feature `postgres`.
///
/// Its calls block, for [a limited time](PostgresOptions::answers_within) if the database is away.
///
/// ```no_run
/// use std::time::Duration;
/// use tickwheel_durable::{Durable, Job, PostgresStore};
///
/// let store = PostgresStore::connect("postgres://app@db.example.org/app")?;
/// let jobs = Durable::builder()
///     .handler("reminder", |attempt| println!("{}", attempt.id()))
///     .open(store)?;
/// jobs.schedule(Job::new("reminder", "call Ada").after(Duration::from_secs(60)))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PostgresStore {
    database: Arc<Database>,
    /// The connection for changes, and whether they are accepted.
    commits: Arc<Link>,
    works: AtomicBool,
    /// The connection on which leases are kept and windows loaded. Nothing slow waits there.
    leases: Arc<Link>,
    /// The connection on which lists are read.
    reads: Arc<Link>,
    /// The thread of the connections.
    runtime: Option<Runtime>,
}

debug!(PostgresStore, this, schema: this.database.schema);

/// A runtime must not be waited for on one of its threads, which may be this one.
impl Drop for PostgresStore {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl PostgresStore {
    /// Carries out a statement that may be carried out twice.
    fn ask(&self, link: &Arc<Link>, text: &str, with: Vec<Argument>) -> Result<Vec<Row>> {
        self.ask_within(Duration::MAX, link, text, with, true)
    }

    fn ask_within(
        &self,
        limit: Duration,
        link: &Arc<Link>,
        text: &str,
        with: Vec<Argument>,
        is_safe: bool,
    ) -> Result<Vec<Row>> {
        let (link, database) = (Arc::clone(link), Arc::clone(&self.database));
        let text = text.replace("{schema}", &database.schema);
        let ask = async move { link.ask(&database, &text, &with, is_safe).await };
        self.database.wait(limit, ask)
    }

    fn read(&self, text: &str, with: Vec<Argument>) -> Result<Vec<StoredJob>> {
        let rows = self.ask(&self.reads, text, with)?;
        rows.iter().map(rows::stored).collect()
    }

    /// Moves shards, and takes note of those that this node has.
    fn balance(&self, fence: u64) -> Result<Lease> {
        self.database.member.lock().is_stale = false;
        let text = "SELECT * FROM {schema}.balance($1)";
        let rows = self.ask(&self.leases, text, vec![number(fence)])?;
        self.database.note(fence, &rows);
        Ok(Lease { fence })
    }

    /// Asks for the time.
    fn ask_time(&self) -> Result<()> {
        let asked = monotonic();
        let told = self.ask(&self.commits, "SELECT {schema}.now_micros()", Vec::new())?;
        let told = told.first().map_or(0, |row| row.get(0));
        self.database.clock.set(time(told), asked);
        Ok(())
    }

    /// Commits changes, in parts if the database says that a row or a page of some job is damaged.
    fn commit_parts(&self, changes: &[Change]) -> Result<Vec<Answer>> {
        match (self.try_commit(changes), changes) {
            (Err(StoreError::Damaged(how)), [_]) => Ok(vec![Answer::Damaged(how)]),
            (Err(StoreError::Damaged(_)), [_, ..]) => {
                let (first, second) = changes.split_at(changes.len() / 2);
                let mut answers = self.commit_parts(first)?;
                answers.extend(self.commit_parts(second)?);
                Ok(answers)
            }
            (answers, _) => answers,
        }
    }

    fn try_commit(&self, changes: &[Change]) -> Result<Vec<Answer>> {
        let with = arguments(self.database.member.lock().fence, changes);
        let rows = self.ask_within(Duration::MAX, &self.commits, APPLY, with, false)?;
        let member = self.database.member.lock();
        Ok(rows.iter().map(|row| rows::answer(row, &member)).collect())
    }
}

impl Store for PostgresStore {
    fn acquire(&self, owner: &str, kinds: &[Kind], length: Duration) -> Result<Option<Lease>> {
        let names: Vec<String> = kinds.iter().map(|kind| kind.name.clone()).collect();
        let limits = kinds.iter().map(|kind| kind.most.map(|most| signed(most as u64)));
        let limits: Vec<Option<i64>> = limits.collect();
        self.database.member.lock().kinds.clone_from(&names);
        let reach = self.database.hear.get().map(|(reach, _)| *reach);
        let with = vec![
            text(Some(owner)),
            (Box::new(names), Type::TEXT_ARRAY),
            (Box::new(limits), Type::INT8_ARRAY),
            number(duration_micros(length)),
            number(duration_micros(reach.unwrap_or(Duration::from_secs(60)))),
        ];
        let rows = self.ask(&self.leases, "SELECT {schema}.acquire($1, $2, $3, $4, $5)", with)?;
        let fence = rows.first().map(|row| row.get::<_, i64>(0) as u64);
        fence.map(|fence| self.balance(fence)).transpose()
    }

    fn renew(&self, lease: Lease, length: Duration) -> Result<bool> {
        let (asked, limit) = (monotonic(), length.max(SHORTEST));
        let with = vec![number(lease.fence), number(duration_micros(length))];
        let text = "SELECT * FROM {schema}.renew($1, $2)";
        let rows = self.ask_within(limit, &self.leases, text, with, true)?;
        let Some(row) = rows.first() else {
            return Ok(false);
        };
        self.database.clock.set(time(row.get(0)), asked);
        let until_end = row.get::<_, Option<i64>>(1);
        let mut member = self.database.member.lock();
        member.until_end = until_end.map(|micros| Duration::from_micros(micros.max(0) as u64));
        let wants_balance = member.wants_balance();
        drop(member);
        if wants_balance {
            self.balance(lease.fence)?;
        }
        Ok(true)
    }

    fn leave(&self, lease: Lease) {
        let text = LEAVE.replace("{fence}", &lease.fence.to_string());
        let _ = self.ask_within(GIVE_BACK, &self.leases, &text, Vec::new(), true);
    }

    fn give_back(&self, lease: Lease) {
        if self.leases.is_open() {
            let text = "SELECT {schema}.give_back($1)";
            let _ = self.ask_within(GIVE_BACK, &self.leases, text, vec![number(lease.fence)], true);
        }
    }

    fn clock(&self) -> Option<Arc<dyn WallClock>> {
        Some(Arc::clone(&self.database.clock) as _)
    }

    fn unhandled(&self) -> Result<Vec<(String, WallTime)>> {
        let rows = self.ask(&self.reads, "SELECT * FROM {schema}.unhandled()", Vec::new())?;
        let kinds = rows.iter().map(|row| (row.get(0), time(row.get(1))));
        Ok(kinds.collect())
    }

    fn paused(&self) -> Result<Vec<String>> {
        let text = "SELECT kind FROM {schema}.kinds WHERE paused ORDER BY kind";
        let rows = self.ask(&self.reads, text, Vec::new())?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    fn commit(&self, changes: &[Change]) -> Result<Vec<Answer>> {
        if !self.works.load(Ordering::SeqCst) {
            return Err(StoreError::NotWriting);
        }
        if self.database.clock.is_old() {
            // A node that runs jobs is told the time with each renewal.
            let _ = self.ask_time();
        }
        let answers = self.commit_parts(changes);
        self.works.store(answers.is_ok(), Ordering::SeqCst);
        answers
    }

    fn renew_after(&self) -> Duration {
        self.database.member.lock().renew_after()
    }

    fn linger(&self) -> Duration {
        self.database.linger
    }

    fn transactions(&self) -> Option<&dyn Transactions> {
        Some(self)
    }

    fn listen(&self, reach: Duration, hear: Hear) {
        let _ = self.database.hear.set((reach, hear));
    }

    fn recover(&self) -> Result<()> {
        if !self.works.load(Ordering::SeqCst) {
            self.ask_time()?;
            self.works.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    fn due_before(
        &self,
        lease: Lease,
        kinds: &[String],
        before: WallTime,
        most: usize,
    ) -> Result<Due> {
        let with = vec![
            number(lease.fence),
            (Box::new(kinds.to_vec()), Type::TEXT_ARRAY),
            number(before.as_unix_micros()),
            // The database adds to it.
            number(most.min(u32::MAX as usize) as u64),
        ];
        let text = "SELECT * FROM {schema}.due_before($1, $2, $3, $4)";
        let rows = self.ask(&self.leases, text, with)?;
        let until = rows.first().and_then(|row| row.get::<_, Option<i64>>("until"));
        let member = self.database.member.lock();
        Ok(Due {
            jobs: rows.iter().map(|row| rows::due_job(row, &member)).collect(),
            until: until.map(time),
        })
    }

    fn get(&self, id: JobId) -> Result<Option<StoredJob>> {
        let (id, born) = numbers(id);
        let text = "SELECT * FROM {schema}.jobs j WHERE j.number = $1 AND j.born = $2";
        Ok(self.read(text, vec![number(id), number(born)])?.pop())
    }

    fn find(&self, kind: &str, key: &str) -> Result<Option<StoredJob>> {
        let statement =
            "SELECT * FROM {schema}.jobs j WHERE j.kind = $1 AND j.key = $2 AND NOT j.dead";
        Ok(self.read(statement, vec![text(name(kind)), text(name(key))])?.pop())
    }

    fn list(&self, page: Page<'_>) -> Result<Vec<StoredJob>> {
        if page.kind.is_some_and(|kind| name(kind).is_none()) {
            return Ok(Vec::new());
        }
        let behind = page.after.map(|job| (micros(job.due), signed(job.id.number())));
        let (due, id) = behind.unwrap_or((-1, 0));
        let with: Vec<Argument> = vec![
            (Box::new(page.list == List::Dead), Type::BOOL),
            text(page.kind),
            (Box::new(due), Type::INT8),
            (Box::new(id), Type::INT8),
            number(page.most as u64),
        ];
        // To know how long a payload is, the database does not read it.
        let text = format!(
            "SELECT * FROM (SELECT l.*, sum(octet_length(l.payload)) OVER (ORDER BY l.due, l.number) AS bytes \
             FROM {{schema}}.list($1, $2, $3, $4, $5) l) l \
             WHERE l.bytes - octet_length(l.payload) < {PAGE_BYTES} ORDER BY l.due, l.number"
        );
        self.read(&text, with)
    }

    fn count(&self, list: List) -> Result<u64> {
        let text = "SELECT count(*) FROM {schema}.jobs WHERE dead = $1";
        let rows = self.ask(&self.reads, text, vec![(Box::new(list == List::Dead), Type::BOOL)])?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0) as u64))
    }
}
