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
mod enqueue;
mod error;
mod line;
mod listen;
mod options;
mod rows;
mod schema;
mod shared;
mod transaction;
mod waits;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use ::postgres::Row;
use ::postgres::types::ToSql;

use self::clock::monotonic;
use self::error::is_passing;
use self::line::{Arguments, Line, Session};
pub use self::options::PostgresOptions;
use self::rows::{COLUMNS, Columns, micros, numbers, signed};
use self::shared::Shared;
pub use self::transaction::Transaction;
use self::waits::{Lane, Remote};
use crate::job::{JobId, StoredJob};
use crate::store::{
    Answer, Change, Due, DueJob, Hear, Lease, List, Store, StoreError, Transactions, Work,
};
use crate::wall::{WallClock, WallTime};

/// How often a commit is repeated that the database has undone.
const REPEATS: u32 = 10;
/// The shortest wait for an answer to a node that wants a lease.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest wait of a node that is closed.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// The arguments of a statement.
macro_rules! arguments {
    ($($value:expr),*) => { vec![$(Box::new($value) as Box<dyn ToSql + Sync + Send>),*] };
}

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
    shared: Arc<Shared>,
    commits: Mutex<Commits>,
    /// The connection on which leases are kept and windows loaded. Nothing slow waits there.
    leases: Mutex<Lane>,
    /// The connection on which lists are read.
    reads: Mutex<Lane>,
    /// The connections for transactions of handlers, while no handler uses them.
    idle: Mutex<Vec<Line>>,
}

struct Commits {
    remote: Remote,
    /// The server's process that may carry out what was sent to it last.
    session: Session,
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
    fn new(shared: Shared, remote: Remote, session: Session) -> PostgresStore {
        PostgresStore {
            shared: Arc::new(shared),
            commits: Mutex::new(Commits {
                remote,
                session,
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
        lane: &Mutex<Lane>,
        limit: Duration,
        text: &str,
        with: Arguments,
    ) -> Result<Vec<Row>, StoreError> {
        let asked = Instant::now();
        let mut lane = lock(lane);
        if let Some(error) = lane.failed_since(asked) {
            return Err(error);
        }
        let query = Arc::new((self.text(text), with));
        let limit = limit.min(self.shared.waits.limit());
        let rows = self.ask_on(&mut lane, limit, &query);
        rows.inspect_err(|error| lane.note(error))
    }

    fn ask_on(
        &self,
        lane: &mut Lane,
        limit: Duration,
        query: &Arc<(String, Arguments)>,
    ) -> Result<Vec<Row>, StoreError> {
        let mut repeats = 0;
        loop {
            let open = match lane.remote.take() {
                Some(open) if !open.is_closed() => open,
                _ => self.shared.remote()?,
            };
            let open = lane.remote.insert(open);
            let query = Arc::clone(query);
            let ask = move |line: &mut Line| line.query(&query.0, &query.1);
            let result = open.call(&self.shared.waits, limit, ask)?;
            repeats += 1;
            match result {
                Ok(rows) => return Ok(rows),
                Err(error) if (open.is_closed() || is_passing(&error)) && repeats < 3 => {}
                Err(error) => {
                    // The role's settings, read when it was opened, may have changed since.
                    lane.remote = None;
                    return Err(self.shared.reason(&error));
                }
            }
        }
    }

    fn read(&self, text: &str, with: Arguments) -> Result<Vec<StoredJob>, StoreError> {
        let text = text.replace("{columns}", COLUMNS);
        let rows = self.ask(&self.reads, Duration::MAX, &text, with)?;
        rows.iter().map(|row| rows::stored(row, 0)).collect()
    }

    /// Moves shards, and takes note of those that this node has.
    fn balance(&self, fence: u64) -> Result<Lease, StoreError> {
        self.shared.member().is_stale = false;
        let text = "SELECT * FROM {schema}.balance($1)";
        let rows = self.ask(&self.leases, Duration::MAX, text, arguments![signed(fence)])?;
        self.shared.note(fence, &rows);
        Ok(Lease { fence })
    }

    fn transact_on(
        &self,
        line: &mut Line,
        work: Work<'_>,
    ) -> Result<Option<(Change, Answer)>, StoreError> {
        let fail = |error| self.shared.reason(&error);
        let text = rows::complete_text(&self.shared.schema);
        let statement = line.statement(&text).map_err(fail)?;
        let mut transaction = Transaction {
            inner: line.client.transaction().map_err(fail)?,
            schema: &self.shared.schema,
        };
        let Some(change) = work(&mut transaction) else {
            return transaction.inner.rollback().map(|()| None).map_err(fail);
        };
        let changes = [change];
        let origin = self.shared.member().fence;
        let columns = Columns::of(origin, &changes);
        let rows = rows::apply(&mut transaction.inner, &statement, &columns).map_err(fail)?;
        let answer = rows.first().map_or(Ok(Answer::Gone), rows::answer)?;
        if !matches!(answer, Answer::Placed(_) | Answer::Removed(_)) {
            transaction.inner.rollback().map_err(fail)?;
            let message = "the lease was lost, or the job was moved or cancelled".to_owned();
            return Err(StoreError::Refused(message));
        }
        transaction.inner.commit().map_err(fail)?;
        let [change] = changes;
        Ok(Some((change, answer)))
    }

    fn try_commit(&self, remote: &Remote, changes: &[Change]) -> Result<Vec<Row>, StoreError> {
        let text = rows::apply_text(&self.shared.schema);
        let columns = Columns::of(self.shared.member().fence, changes);
        self.shared.call(remote, move |line| {
            let mut repeats = 0;
            loop {
                let statement = line.statement(&text)?;
                let result = rows::apply(&mut line.client, &statement, &columns);
                repeats += 1;
                match result {
                    Err(error) if is_passing(&error) && repeats < REPEATS => {}
                    result => return result,
                }
            }
        })
    }

    /// Connects anew for commits. The process of the old connection may still carry out what was
    /// sent to it, after later changes, so it is ended first.
    fn reconnect(&self, commits: &mut Commits) -> Result<(), StoreError> {
        let remote = self.shared.remote()?;
        let old = commits.session.clone();
        commits.session = self.shared.call(&remote, move |line| {
            line.end(&old)?;
            line.session()
        })?;
        commits.remote = remote;
        Ok(())
    }
}

impl Store for PostgresStore {
    fn acquire(
        &self,
        owner: &str,
        kinds: &[String],
        length: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let kinds: Vec<Vec<u8>> = kinds.iter().map(|kind| kind.as_bytes().to_vec()).collect();
        let (owner, reach) = (owner.as_bytes().to_vec(), self.shared.reach());
        let (length, reach) = (duration_micros(length), duration_micros(reach));
        let with = arguments![owner, kinds, length, reach];
        let text = "SELECT {schema}.acquire($1, $2, $3, $4)";
        let rows = self.ask(&self.leases, Duration::MAX, text, with)?;
        let fence = rows.first().map(|row| row.get::<_, i64>(0) as u64);
        fence.map(|fence| self.balance(fence)).transpose()
    }

    fn renew(&self, lease: Lease, length: Duration) -> Result<bool, StoreError> {
        let (asked, limit) = (monotonic(), length.max(SHORTEST));
        let with = arguments![signed(lease.fence), duration_micros(length)];
        let text = "SELECT * FROM {schema}.renew($1, $2)";
        let rows = self.ask(&self.leases, limit, text, with)?;
        let Some(row) = rows.first() else {
            return Ok(false);
        };
        self.shared.clock.set(rows::time(row.get(0)), asked);
        let until_end = row.get::<_, Option<i64>>(1);
        let until_end = until_end.map(|micros| Duration::from_micros(micros.max(0) as u64));
        let mut member = self.shared.member();
        member.until_end = until_end;
        let wants_balance = member.wants_balance();
        drop(member);
        if wants_balance {
            self.balance(lease.fence)?;
        }
        Ok(true)
    }

    fn give_back(&self, lease: Lease) {
        let is_open = |remote: &Remote| !remote.is_closed();
        if !lock(&self.leases).remote.as_ref().is_some_and(is_open) {
            return;
        }
        let text = "SELECT {schema}.give_back($1)";
        let _ = self.ask(
            &self.leases,
            GIVE_BACK,
            text,
            arguments![signed(lease.fence)],
        );
    }

    fn clock(&self) -> Option<Arc<dyn WallClock>> {
        Some(Arc::clone(&self.shared.clock) as _)
    }

    fn unhandled(&self) -> Result<Vec<(String, WallTime)>, StoreError> {
        let text = "SELECT * FROM {schema}.unhandled()";
        let rows = self.ask(&self.reads, Duration::MAX, text, Vec::new())?;
        let kind = |row: &Row| String::from_utf8_lossy(row.get(0)).into_owned();
        let kinds = rows.iter().map(|row| (kind(row), rows::time(row.get(1))));
        Ok(kinds.collect())
    }

    fn commit(&self, changes: &[Change]) -> Result<Vec<Answer>, StoreError> {
        let mut commits = lock(&self.commits);
        if !commits.works {
            return Err(StoreError::NotWriting);
        }
        if self.shared.clock.is_old() {
            // A node that runs jobs is told the time with each renewal.
            let _ = self.shared.ask_time(&commits.remote);
        }
        let rows = self.try_commit(&commits.remote, changes);
        let answers = rows.and_then(|rows| rows.iter().map(rows::answer).collect());
        commits.works = answers.is_ok();
        answers
    }

    fn renew_after(&self) -> Duration {
        self.shared.member().renew_after()
    }

    fn linger(&self) -> Duration {
        self.shared.linger
    }

    fn transactions(&self) -> Option<&dyn Transactions> {
        Some(self)
    }

    fn listen(&self, reach: Duration, hear: Hear) {
        if self.shared.hear.set((reach, hear)).is_ok() {
            listen::start(Arc::downgrade(&self.shared));
        }
    }

    fn recover(&self) -> Result<(), StoreError> {
        // A commit that is on its way says by itself whether it fails.
        let mut commits = match self.commits.try_lock() {
            Ok(commits) => commits,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        if !commits.works || commits.remote.is_closed() {
            self.reconnect(&mut commits)?;
            commits.works = true;
        }
        Ok(())
    }

    fn due_before(&self, lease: Lease, before: WallTime, most: usize) -> Result<Due, StoreError> {
        let with = arguments![signed(lease.fence), micros(before), signed(most as u64)];
        let text = "SELECT * FROM {schema}.due_before($1, $2, $3)";
        let rows = self.ask(&self.leases, Duration::MAX, text, with)?;
        let until = rows.first().and_then(|row| row.get::<_, Option<i64>>(5));
        let due = rows.iter().map(|row| DueJob {
            is_interrupted: ![0, signed(lease.fence)].contains(&row.get(4)),
            ..rows::due_job(row, 0)
        });
        Ok(Due {
            jobs: due.collect(),
            until: until.map(rows::time),
        })
    }

    fn get(&self, id: JobId) -> Result<Option<StoredJob>, StoreError> {
        let (number, born) = numbers(id);
        let text = "SELECT {columns} FROM {schema}.jobs j WHERE j.number = $1 AND j.born = $2";
        Ok(self.read(text, arguments![number, born])?.pop())
    }

    fn find(&self, kind: &str, key: &str) -> Result<Option<StoredJob>, StoreError> {
        let text =
            "SELECT {columns} FROM {schema}.jobs j WHERE j.kind = $1 AND j.key = $2 AND NOT j.dead";
        Ok(self
            .read(
                text,
                arguments![kind.as_bytes().to_vec(), key.as_bytes().to_vec()],
            )?
            .pop())
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
        self.read(text, arguments![due, number, signed(most as u64)])
    }

    fn count(&self, list: List) -> Result<u64, StoreError> {
        let text = "SELECT count(*) FROM {schema}.jobs WHERE dead = $1";
        let rows = self.ask(
            &self.reads,
            Duration::MAX,
            text,
            arguments![list == List::Dead],
        )?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0) as u64))
    }
}

impl Transactions for PostgresStore {
    fn transact(&self, work: Work<'_>) -> Result<Option<(Change, Answer)>, StoreError> {
        let idle = lock(&self.idle).pop();
        let mut line = match idle.filter(|line| !line.client.is_closed()) {
            Some(line) => line,
            None => Line::new(self.shared.connect("")?),
        };
        let transacted = self.transact_on(&mut line, work);
        lock(&self.idle).push(line);
        transacted
    }
}

/// A client of the crate `postgres` must not be dropped on a thread of a runtime.
impl Drop for PostgresStore {
    fn drop(&mut self) {
        let idle = std::mem::take(&mut *lock(&self.idle));
        if !idle.is_empty() {
            let _ = waits::spawn("close", || drop(idle));
        }
    }
}

fn duration_micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
