//! What a node knows of itself and of the others: its shards, as of the last balance, and how it
//! connects.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use ::postgres::{Client, Row};

use super::clock::{DatabaseClock, monotonic};
use super::error::reason;
use super::line::{Failure, Line};
use super::rows::time;
use super::waits::{Remote, Waits};
use crate::store::{Hear, News, StoreError};

/// The time after which a node asks what others have done.
pub(super) const ASK: Duration = Duration::from_secs(7);
/// The time after which it asks whether a shard that leaves may go.
const ASK_SOON: Duration = Duration::from_millis(50);

pub(super) type Connector = Arc<dyn Fn() -> Result<Client, Failure> + Send + Sync>;

/// A commit is durable on each connection, and one may be silent for long, whatever the role's
/// settings. Only servers from version 14 on end silent ones.
const SETTINGS: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED; SET jit = off; SET standard_conforming_strings = on; \
     SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'; \
     SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'";

/// What the store and its listener know.
pub(super) struct Shared {
    pub(super) schema: String,
    pub(super) linger: Duration,
    pub(super) clock: Arc<DatabaseClock>,
    connector: Connector,
    pub(super) waits: Waits,
    member: Mutex<Member>,
    pub(super) hear: OnceLock<(Duration, Hear)>,
}

/// What the node has, as of the last balance.
#[derive(Default)]
pub(super) struct Member {
    pub(super) fence: u64,
    /// The shards from which it starts jobs.
    pub(super) has: HashSet<u64>,
    /// Whether shards of it leave.
    is_leaving: bool,
    /// Whether nodes have come or gone since.
    pub(super) is_stale: bool,
    /// Whether it hears of that.
    pub(super) is_listening: bool,
    /// The time from the last renewal until the next lease of another node ends.
    pub(super) until_end: Option<Duration>,
}

impl Member {
    /// Returns whether shards may have to move.
    pub(super) fn wants_balance(&self) -> bool {
        self.is_stale
            || !self.is_listening
            || self.is_leaving
            || self.until_end == Some(Duration::ZERO)
    }

    /// Returns the time until that may be so.
    pub(super) fn renew_after(&self) -> Duration {
        match self.is_leaving {
            true => ASK_SOON,
            false => self.until_end.unwrap_or(ASK).clamp(ASK_SOON, ASK),
        }
    }
}

impl Shared {
    pub(super) fn new(schema: String, connector: Connector, waits: Waits) -> Shared {
        Shared {
            schema,
            linger: Duration::ZERO,
            clock: Arc::default(),
            connector,
            waits,
            member: Mutex::default(),
            hear: OnceLock::new(),
        }
    }

    /// Opens a connection, and carries out a statement on it.
    pub(super) fn connect(&self, first: &str) -> Result<Client, StoreError> {
        let connector = Arc::clone(&self.connector);
        let first = format!("{SETTINGS}; {first}");
        let connected = self.waits.connect(move || {
            let mut client = connector()?;
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

    /// Asks for the time.
    pub(super) fn ask_time(&self, remote: &Remote) -> Result<(), StoreError> {
        let (asked, text) = (monotonic(), format!("SELECT {}.now_micros()", self.schema));
        let told = self.call(remote, move |line| line.client.query_one(&text, &[]))?;
        self.clock.set(time(told.get(0)), asked);
        Ok(())
    }

    /// Opens a connection on a thread of its own. The server ends a statement for whose answer
    /// nobody waits any more.
    pub(super) fn remote(&self) -> Result<Remote, StoreError> {
        let limit = self.waits.limit().as_millis();
        Remote::start(self.connect(&format!("SET statement_timeout = {limit}"))?)
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

    /// Takes note of the shards that a balance has left to the node, and tells it of new ones.
    pub(super) fn note(&self, fence: u64, rows: &[Row]) {
        let mut member = self.member();
        let of = |what: i64| rows.iter().filter(move |row| row.get::<_, i64>(0) == what);
        let number = |row: &Row| row.get::<_, i64>(1) as u64;
        let has: HashSet<u64> = of(1).map(number).collect();
        let is_more = member.fence != fence || !has.is_subset(&member.has);
        member.fence = fence;
        member.has = has;
        member.is_leaving = of(0).map(number).any(|count| count > 0);
        drop(member);
        if is_more {
            self.tell(News::Many);
        }
    }
}
