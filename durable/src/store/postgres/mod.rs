//! A store in PostgreSQL, for several nodes on several machines.
//!
//! The tables lie in a schema of their own. Everything that is written happens in functions of
//! the database: a batch of changes is one statement and one round trip, and no client holds a
//! lock while it is paused. `schema_1.sql` has the first tables, `functions.sql` the functions.
//!
//! # Leases and shards
//! Each node has a lease with an end by the database's clock, and about the same number of
//! shards as every other. A commit that starts or finishes jobs locks the row of its lease
//! against removal, so a node whose lease was replaced changes nothing. When a node renews, it
//! removes leases that have ended, takes shards that nobody has, and gives up those beyond its
//! share: it starts nothing more of such a shard, and hands it over once nothing of it runs.
//!
//! # What nodes hear of each other
//! A commit that places a job in another node's shard, within the reach of its window, announces
//! the job in the same transaction (`NOTIFY`). Every few seconds a node also reads what is due
//! soon, with the renewal of its lease.

mod error;
mod line;
mod listen;
mod options;
mod rows;
mod schema;
mod shared;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ::postgres::types::ToSql;
use ::postgres::{Client, Row};

use self::error::is_passing;
use self::line::{Failure, Line};
pub use self::options::PostgresOptions;
use self::rows::{COLUMNS, micros, numbers, signed};
use self::shared::{ASK, Shared};
use crate::job::{JobId, StoredJob};
use crate::store::{
    Answer, Change, DueJob, Hear, Lease, List, Store, StoreError, Transactions, Work,
};
use crate::wall::WallTime;

/// How often a commit is repeated that the database has undone.
const REPEATS: u32 = 10;

/// A store in a PostgreSQL database, for several nodes.
///
/// Each node has a `PostgresStore` of its own, in the same process or on other machines, and all
/// their stores use one schema. The nodes share the jobs. Needs PostgreSQL 12 or later, and the
/// feature `postgres`.
///
/// Its calls block. Calls that read jobs, such as [`get`](crate::Jobs::get), panic on a thread that
/// drives an async runtime; make them where the runtime allows blocking.
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
    shared: Arc<Shared>,
    commits: Mutex<Commits>,
    /// The connection on which leases are kept and windows loaded. Nothing slow waits there.
    leases: Mutex<Option<Line>>,
    /// The connection on which lists are read.
    reads: Mutex<Option<Line>>,
    /// The connections for transactions of handlers, while no handler uses them.
    idle: Mutex<Vec<Line>>,
}

struct Commits {
    line: Option<Line>,
    /// Whether commits are accepted.
    works: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|error| error.into_inner())
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("schema", &self.shared.schema)
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    fn new(shared: Shared, client: Client) -> PostgresStore {
        PostgresStore {
            shared: Arc::new(shared),
            commits: Mutex::new(Commits {
                line: Some(Line::new(client)),
                works: true,
            }),
            leases: Mutex::default(),
            reads: Mutex::default(),
            idle: Mutex::default(),
        }
    }

    fn text(&self, text: &str) -> String {
        text.replace("{schema}", &self.shared.schema)
    }

    /// Asks on a connection, which is opened first if need be, and anew if it has ended.
    fn ask(
        &self,
        line: &Mutex<Option<Line>>,
        text: &str,
        with: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let (mut line, text) = (lock(line), self.text(text));
        let mut repeats = 0;
        loop {
            let open = match line.take() {
                Some(open) if !open.client.is_closed() => open,
                _ => Line::new(self.shared.connect()?),
            };
            let open = line.insert(open);
            let result = open.query(&text, with);
            let is_closed = open.client.is_closed();
            repeats += 1;
            match result {
                Ok(rows) => return Ok(rows),
                Err(error) if (is_closed || is_passing(&error)) && repeats < 3 => {}
                Err(error) => {
                    // The role's settings, read when it was opened, may have changed since.
                    *line = None;
                    return Err(self.shared.reason(&error));
                }
            }
        }
    }

    fn read(&self, text: &str, with: &[&(dyn ToSql + Sync)]) -> Result<Vec<StoredJob>, StoreError> {
        let rows = self.ask(&self.reads, &text.replace("{columns}", COLUMNS), with)?;
        rows.iter().map(|row| rows::stored(row, 0)).collect()
    }

    fn transact_on(
        &self,
        line: &mut Line,
        work: Work<'_>,
    ) -> Result<Option<(Change, Answer)>, StoreError> {
        let fail = |error| self.shared.reason(&error);
        let text = rows::complete_text(&self.shared.schema);
        let statement = line.statement(&text).map_err(fail)?;
        let mut transaction = line.client.transaction().map_err(fail)?;
        let Some(change) = work(&mut transaction) else {
            return transaction.rollback().map(|()| None).map_err(fail);
        };
        let changes = [change];
        let origin = self.shared.member().fence;
        let rows = rows::apply(&mut transaction, &statement, origin, &changes).map_err(fail)?;
        let answer = rows.first().map_or(Ok(Answer::Gone), rows::answer)?;
        if !matches!(answer, Answer::Placed(_) | Answer::Removed(_)) {
            transaction.rollback().map_err(fail)?;
            let message = "the lease was lost, or the job was moved or cancelled".to_owned();
            return Err(StoreError::Refused(message));
        }
        transaction.commit().map_err(fail)?;
        let [change] = changes;
        Ok(Some((change, answer)))
    }

    fn try_commit(&self, line: &mut Line, changes: &[Change]) -> Result<Vec<Row>, Failure> {
        let origin = self.shared.member().fence;
        let text = rows::apply_text(&self.shared.schema);
        let mut repeats = 0;
        loop {
            let statement = line.statement(&text)?;
            let result = rows::apply(&mut line.client, &statement, origin, changes);
            repeats += 1;
            match result {
                Err(error) if is_passing(&error) && repeats < REPEATS => {}
                result => return result,
            }
        }
    }
}

impl Store for PostgresStore {
    fn acquire(&self, owner: &str, length: Duration) -> Result<Option<Lease>, StoreError> {
        let reach = duration_micros(self.shared.reach());
        let with: [&(dyn ToSql + Sync); 3] = [&owner.as_bytes(), &duration_micros(length), &reach];
        let text = "SELECT * FROM {schema}.acquire($1, $2, $3)";
        let rows = self.ask(&self.leases, text, &with)?;
        Ok(self.shared.note(&rows).map(|fence| Lease { fence }))
    }

    fn renew(&self, lease: Lease, length: Duration) -> Result<bool, StoreError> {
        let with: [&(dyn ToSql + Sync); 2] = [&signed(lease.fence), &duration_micros(length)];
        let rows = self.ask(&self.leases, "SELECT * FROM {schema}.renew($1, $2)", &with)?;
        Ok(self.shared.note(&rows).is_some())
    }

    fn commit(&self, changes: &[Change]) -> Result<Vec<Answer>, StoreError> {
        let mut commits = lock(&self.commits);
        let works = commits.works;
        let Some(line) = commits.line.as_mut().filter(|_| works) else {
            return Err(StoreError::NotWriting);
        };
        let rows = self.try_commit(line, changes);
        let answers = rows
            .map_err(|error| self.shared.reason(&error))
            .and_then(|rows| rows.iter().map(rows::answer).collect());
        commits.works = answers.is_ok();
        answers
    }

    fn renew_after(&self) -> Duration {
        self.shared.member().renew_after.unwrap_or(ASK)
    }

    fn linger(&self) -> Duration {
        self.shared.linger
    }

    fn transactions(&self) -> Option<&dyn Transactions> {
        Some(self)
    }

    fn is_here(&self, id: JobId) -> bool {
        let shard = id.number() % self.shared.shards as u64;
        let member = self.shared.member();
        member.has.get(shard as usize).is_some_and(|has| *has)
    }

    fn listen(&self, reach: Duration, hear: Hear) {
        if self.shared.hear.set((reach, hear)).is_ok() {
            listen::start(Arc::downgrade(&self.shared));
        }
    }

    fn recover(&self) -> Result<(), StoreError> {
        let mut commits = lock(&self.commits);
        commits.line = None;
        commits.line = Some(Line::new(self.shared.connect()?));
        commits.works = true;
        Ok(())
    }

    fn due_before(
        &self,
        lease: Lease,
        before: WallTime,
        most: usize,
    ) -> Result<Vec<DueJob>, StoreError> {
        let with: [&(dyn ToSql + Sync); 3] =
            [&signed(lease.fence), &micros(before), &signed(most as u64)];
        let text = "SELECT * FROM {schema}.due_before($1, $2, $3)";
        let rows = self.ask(&self.leases, text, &with)?;
        let due = rows.iter().map(|row| DueJob {
            is_started: row.get::<_, i64>(4) != 0,
            ..rows::due_job(row, 0)
        });
        Ok(due.collect())
    }

    fn get(&self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        let (number, born) = numbers(id);
        let text = "SELECT {columns} FROM {schema}.jobs j WHERE j.number = $1 AND j.born = $2";
        Ok(self.read(text, &[&number, &born])?.pop())
    }

    fn find(&self, kind: &str, key: &str) -> Result<Option<StoredJob>, StoreError> {
        let text =
            "SELECT {columns} FROM {schema}.jobs j WHERE j.kind = $1 AND j.key = $2 AND NOT j.dead";
        Ok(self.read(text, &[&kind.as_bytes(), &key.as_bytes()])?.pop())
    }

    fn list(
        &self,
        list: List,
        after: Option<&StoredJob>,
        most: usize,
    ) -> Result<Vec<StoredJob>, StoreError> {
        let (due, number) = after.map_or((-1, 0), |job| (micros(job.due), signed(job.id.number())));
        let text = match list {
            List::Live => {
                "SELECT {columns} FROM {schema}.shards s, LATERAL (SELECT * FROM {schema}.jobs k \
                 WHERE k.shard = s.shard AND NOT k.dead AND (k.due, k.number) > ($1, $2) \
                 ORDER BY k.due, k.number LIMIT $3) j ORDER BY j.due, j.number LIMIT $3"
            }
            List::Dead => {
                "SELECT {columns} FROM {schema}.jobs j WHERE j.dead AND (j.due, j.number) > ($1, $2) \
                 ORDER BY j.due, j.number LIMIT $3"
            }
        };
        self.read(text, &[&due, &number, &signed(most as u64)])
    }

    fn count(&self, list: List) -> Result<u64, StoreError> {
        let text = "SELECT count(*) FROM {schema}.jobs WHERE dead = $1";
        let rows = self.ask(&self.reads, text, &[&(list == List::Dead)])?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0) as u64))
    }
}

impl Transactions for PostgresStore {
    fn transact(&self, work: Work<'_>) -> Result<Option<(Change, Answer)>, StoreError> {
        let idle = lock(&self.idle).pop();
        let mut line = match idle.filter(|line| !line.client.is_closed()) {
            Some(line) => line,
            None => Line::new(self.shared.connect()?),
        };
        let transacted = self.transact_on(&mut line, work);
        lock(&self.idle).push(line);
        transacted
    }
}

/// Gives back the lease, so that others need not wait for its end.
impl Drop for PostgresStore {
    fn drop(&mut self) {
        let fence = self.shared.member().fence;
        let is_open = lock(&self.leases)
            .as_ref()
            .is_some_and(|line| !line.client.is_closed());
        if fence != 0 && is_open {
            let text = "SELECT {schema}.give_back($1)";
            let _ = self.ask(&self.leases, text, &[&signed(fence)]);
        }
    }
}

fn duration_micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
