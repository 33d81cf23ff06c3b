//! Connections that many threads share, and waits that end.
//!
//! A server that is stopped says nothing, and its machine acknowledges what is sent to it. So each
//! call has a limit. One that nobody answers is given up with its connection, and before the next
//! connection is used, the server ends the process of the last one: that may carry out what it has
//! received, although its client is gone.

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_postgres::Row;

use super::connection::{Argument, Connection, Heard, Session};
use super::database::Database;
use super::error::is_passing;
use crate::store::Result;

/// How often a statement is repeated that the database has undone, or whose connection has ended.
const REPEATS: u32 = 10;
/// A connection for the statements of many threads, one after the other. It is opened when it is
/// needed, and anew when it has ended.
#[derive(Default)]
pub(super) struct Link {
    state: Mutex<State>,
    /// Whether it hears what other nodes announce.
    listens: bool,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// The process that may still carry out what was sent to it last.
    last: Option<Session>,
}

impl Link {
    pub(super) fn that_listens() -> Link {
        Link { listens: true, ..Link::default() }
    }

    /// Returns whether nothing is on its way, and the next statement needs no new connection.
    pub(super) fn is_open(&self) -> bool {
        let state = self.state.try_lock();
        state.is_ok_and(|state| state.connection.as_ref().is_some_and(Connection::is_open))
    }

    /// Carries out a statement. If it `is_safe`, it may be carried out twice. A caller that gives up
    /// drops the connection.
    pub(super) async fn ask(
        &self,
        database: &Arc<Database>,
        text: &str,
        with: &[Argument],
        is_safe: bool,
    ) -> Result<Vec<Row>> {
        let mut state = self.state.lock().await;
        let mut repeats = 0;
        loop {
            let connection = match state.connection.take().filter(Connection::is_open) {
                Some(connection) => connection,
                None => self.open(database, state.last.as_ref()).await?,
            };
            state.last = Some(connection.session.clone());
            let asked = connection.query(text, with).await;
            repeats += 1;
            match asked {
                Ok(rows) => {
                    state.connection = Some(connection);
                    return Ok(rows);
                }
                Err(error) if repeats < REPEATS && is_passing(&error) => {
                    state.connection = Some(connection);
                }
                Err(_) if repeats < REPEATS && is_safe && !connection.is_open() => {}
                // The role's settings, read when it was opened, may have changed since.
                Err(error) => return Err(database.reason(&error)),
            }
        }
    }

    async fn open(&self, database: &Arc<Database>, last: Option<&Session>) -> Result<Connection> {
        let node = Arc::downgrade(database);
        let heard: Heard = if self.listens {
            Arc::new(move |text| {
                if let Some(database) = node.upgrade() {
                    database.heard(text);
                }
            })
        } else {
            Arc::new(|_| ())
        };
        let connection = database.open(heard, last).await?;
        if self.listens {
            let listen = format!("LISTEN tickwheel_{}", database.schema);
            let listening = connection.client.batch_execute(&listen).await;
            listening.map_err(|error| database.reason(&error))?;
            database.heard(Some("load"));
            database.heard(Some("members"));
        }
        Ok(connection)
    }
}
