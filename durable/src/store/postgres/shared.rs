//! What a node knows of itself and of the others: its shards, as of the last renewal, and how it
//! connects.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use ::postgres::{Client, Row};

use super::error::reason;
use super::line::{Failure, Line};
use super::rows;
use super::waits::{Remote, Waits};
use crate::store::{DueJob, Hear, News, StoreError};

/// The time after which a node asks what others have done.
pub(super) const ASK: Duration = Duration::from_secs(7);
/// The time after which it asks whether a shard that leaves may go.
const ASK_SOON: Duration = Duration::from_millis(50);

pub(super) type Connector = Arc<dyn Fn() -> Result<Client, Failure> + Send + Sync>;

const SETTINGS: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED; SET jit = off; SET standard_conforming_strings = on; \
     SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'; \
     SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'";

/// What the store and its listener know.
pub(super) struct Shared {
    pub(super) schema: String,
    pub(super) shards: usize,
    pub(super) linger: Duration,
    connector: Connector,
    pub(super) waits: Waits,
    member: Mutex<Member>,
    pub(super) hear: OnceLock<(Duration, Hear)>,
}

/// What the node has, as of the last renewal.
#[derive(Default)]
pub(super) struct Member {
    pub(super) fence: u64,
    /// Whether each shard is this node's.
    pub(super) has: Vec<bool>,
    pub(super) renew_after: Option<Duration>,
}

impl Shared {
    pub(super) fn new(schema: String, connector: Connector, waits: Waits) -> Shared {
        Shared {
            schema,
            shards: 0,
            linger: Duration::ZERO,
            connector,
            waits,
            member: Mutex::default(),
            hear: OnceLock::new(),
        }
    }

    /// Opens a connection on which a commit is durable, and which may be silent for long, whatever
    /// the role's settings, and carries out a statement on it. Only servers from version 14 on end
    /// silent ones.
    pub(super) fn connect(&self, first: String) -> Result<Client, StoreError> {
        let connector = Arc::clone(&self.connector);
        let connected = self.waits.connect(move || {
            let mut client = connector()?;
            client.batch_execute(SETTINGS)?;
            client.batch_execute(&first)?;
            Ok(client)
        })?;
        connected.map_err(|error| self.reason(&error))
    }

    /// Calls `work` on a connection, and waits as long as is set.
    pub(super) fn call<R: Send + 'static>(
        &self,
        remote: &Remote,
        work: impl FnOnce(&mut Line) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, StoreError> {
        let answer = remote.call(&self.waits, self.waits.limit(), work)?;
        answer.map_err(|error| self.reason(&error))
    }

    /// Opens a connection on a thread of its own.
    pub(super) fn remote(&self) -> Result<Remote, StoreError> {
        Remote::start(self.connect(String::new())?)
    }

    pub(super) fn member(&self) -> MutexGuard<'_, Member> {
        self.member
            .lock()
            .unwrap_or_else(|error| error.into_inner())
    }

    pub(super) fn reason(&self, error: &Failure) -> StoreError {
        reason(error, &self.schema)
    }

    pub(super) fn tell(&self, news: News) {
        if let Some((_, hear)) = self.hear.get() {
            hear(news);
        }
    }

    pub(super) fn reach(&self) -> Duration {
        let reach = self.hear.get().map(|(reach, _)| *reach);
        reach.unwrap_or(Duration::from_secs(60))
    }

    /// Takes note of what a renewal has said, and tells the node. Returns the fence, unless the
    /// lease was lost.
    pub(super) fn note(&self, rows: &[Row]) -> Option<u64> {
        let of = |what: i64| rows.iter().filter(move |row| row.get::<_, i64>(0) == what);
        let first = of(1).next()?;
        let fence = first.get::<_, i64>(1) as u64;
        let mut has = vec![false; self.shards];
        for row in of(2) {
            has[row.get::<_, i64>(1) as usize] = true;
        }
        let mut member = self.member();
        let is_more = (0..has.len())
            .any(|shard| has[shard] && !member.has.get(shard).is_some_and(|had| *had));
        *member = Member {
            fence,
            has,
            renew_after: Some(renew_after(first)),
        };
        drop(member);
        if is_more {
            self.tell(News::Many);
        }
        let soon: Vec<DueJob> = of(3).map(|row| rows::due_job(row, 1)).collect();
        if !soon.is_empty() {
            self.tell(News::Placed(soon));
        }
        Some(fence)
    }
}

/// Returns the time until another node's lease may have ended, or a shard may leave.
fn renew_after(row: &Row) -> Duration {
    let until_end: Option<i64> = row.get(2);
    let leaving: i64 = row.get(3);
    let until_end = until_end.map_or(ASK, |micros| {
        Duration::from_micros(u64::try_from(micros).unwrap_or(0)) + Duration::from_millis(1)
    });
    match leaving {
        0 => until_end.clamp(ASK_SOON, ASK),
        _ => ASK_SOON,
    }
}
