//! What the calls of a store share: how it connects, the time, and what the node has and hears.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::{Error, Row};

use super::clock::DatabaseClock;
use super::connection::{Connection, Connector, Heard, Session};
use super::error::reason;
use crate::job::JobId;
use crate::store::{DueJob, Hear, News, Result, StoreError};
use crate::wall::WallTime;

/// The time after which a node asks what others have done.
const ASK: Duration = Duration::from_secs(7);
/// The time after which it asks whether a shard that leaves may go.
const ASK_SOON: Duration = Duration::from_millis(50);

pub(super) struct Database {
    pub(super) schema: String,
    pub(super) linger: Duration,
    /// How long a call waits.
    pub(super) limit: Duration,
    pub(super) connector: Connector,
    /// The thread of the connections.
    pub(super) runtime: Handle,
    pub(super) clock: Arc<DatabaseClock>,
    pub(super) member: Mutex<Member>,
    pub(super) hear: OnceLock<(Duration, Hear)>,
    /// The connections for transactions of handlers, while no handler uses them.
    pub(super) idle: Mutex<Vec<Connection>>,
}

/// What the node has, as of the last balance.
#[derive(Default)]
pub(super) struct Member {
    pub(super) fence: u64,
    pub(super) kinds: Vec<String>,
    /// The shards from which it starts jobs, and the places of their kinds.
    has: HashMap<u64, usize>,
    /// Whether shards of it leave.
    is_leaving: bool,
    /// Whether nodes have come or gone since.
    pub(super) is_stale: bool,
    /// The time from the last renewal until the next lease of another node ends.
    pub(super) until_end: Option<Duration>,
}

impl Member {
    /// Returns whether shards may have to move.
    pub(super) fn wants_balance(&self) -> bool {
        self.is_stale || self.is_leaving || self.until_end == Some(Duration::ZERO)
    }

    /// Returns the time until that may be so.
    pub(super) fn renew_after(&self) -> Duration {
        if self.is_leaving { ASK_SOON } else { self.until_end.unwrap_or(ASK).clamp(ASK_SOON, ASK) }
    }

    pub(super) fn place_of(&self, kind: &str) -> Option<usize> {
        self.kinds.iter().position(|own| own == kind)
    }

    /// Takes note of the shards that the node has. Returns whether there are new ones.
    fn note(&mut self, fence: u64, rows: &[Row]) -> bool {
        let leaves = |row: &&Row| row.get::<_, bool>("leaving");
        let has =
            |row: &Row| Some((row.get::<_, i64>("shard") as u64, self.place_of(row.get("kind"))?));
        let stays = rows.iter().filter(|row| !leaves(row));
        let has: HashMap<u64, usize> = stays.filter_map(has).collect();
        let is_more = self.fence != fence || has.keys().any(|shard| !self.has.contains_key(shard));
        self.is_leaving = rows.iter().any(|row| leaves(&row));
        (self.fence, self.has) = (fence, has);
        is_more
    }
}

impl Database {
    pub(super) fn reason(&self, error: &Error) -> StoreError {
        reason(error, &self.schema)
    }

    /// Opens a connection, after the server has ended the process of the last one.
    pub(super) async fn open(&self, heard: Heard, last: Option<&Session>) -> Result<Connection> {
        let opened = Connection::open(&self.connector, heard, self.limit, last).await;
        opened.map_err(|error| self.reason(&error))
    }

    /// Waits for a call, on a thread that is not that of the connections.
    pub(super) fn wait<R: Send + 'static>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<R>> + Send + 'static,
    ) -> Result<R> {
        let limit = limit.min(self.limit);
        let (reply, answer) = sync_channel(1);
        self.runtime.spawn(async move {
            let unanswered = |_| Err(unanswered(limit));
            let result = timeout(limit, call).await.unwrap_or_else(unanswered);
            let _ = reply.send(result);
        });
        answer.recv().unwrap_or(Err(StoreError::NotWriting))
    }

    /// Takes note of the shards that a balance has left to the node.
    pub(super) fn note(&self, fence: u64, rows: &[Row]) {
        let is_more = self.member.lock().note(fence, rows);
        if is_more {
            self.tell(News::Many);
        }
    }

    /// Takes note of what another node has announced, or that nothing is heard any more: then the
    /// next renewal connects anew, and asks what has happened meanwhile.
    pub(super) fn heard(&self, text: Option<&str>) {
        let news = {
            let mut member = self.member.lock();
            let news = text
                .map_or(News::Nodes, |text| news(text, |shard| member.has.get(&shard).copied()));
            member.is_stale |= news == News::Nodes;
            news
        };
        self.tell(news);
    }

    fn tell(&self, news: News) {
        if let Some((_, hear)) = self.hear.get() {
            hear(news);
        }
    }
}

pub(super) fn unanswered(after: Duration) -> StoreError {
    let text = format!("the database has not answered for {after:?}");
    StoreError::Io(Arc::new(io::Error::new(io::ErrorKind::TimedOut, text)))
}

/// Reads an announcement. One that cannot be understood may say anything.
fn news(text: &str, place: impl Fn(u64) -> Option<usize>) -> News {
    let time = WallTime::from_unix_micros;
    let due_job = |[number, born, version, due, shard, is_interrupted]: [u64; 6]| DueJob {
        id: JobId::new(time(born), number),
        version,
        due: time(due),
        is_interrupted: is_interrupted > 0,
        kind: place(shard),
    };
    match serde_json::from_str::<Vec<[u64; 6]>>(text) {
        Ok(placed) => {
            let jobs = placed.into_iter().map(due_job);
            News::Placed(jobs.filter(|job| job.kind.is_some()).collect())
        }
        Err(_) if text == "members" => News::Nodes,
        Err(_) => News::Many,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_are_read() {
        let news = |text| news(text, |shard| (shard == 3).then_some(9));
        let placed = news("[[7,5,2,9,3,1],[8,5,2,9,4,0]]");
        let time = WallTime::from_unix_micros;
        let job = DueJob {
            id: JobId::new(time(5), 7),
            version: 2,
            due: time(9),
            is_interrupted: true,
            kind: Some(9),
        };
        assert_eq!(placed, News::Placed(vec![job]));
        assert_eq!(news("members"), News::Nodes);
        for strange in ["load", "", "[[7,5,2,9,3]]", "[x]", "else"] {
            assert_eq!(news(strange), News::Many, "{strange}");
        }
    }
}
