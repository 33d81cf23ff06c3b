//! A connection and its prepared statements.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use ::postgres::types::ToSql;
use ::postgres::{Client, Row, Statement};

pub(super) type Failure = ::postgres::Error;
/// The arguments of a statement.
pub(super) type Arguments = Vec<Box<dyn ToSql + Sync + Send>>;
/// The number of a process of the server, and its begin.
pub(super) type Session = (i32, String);

/// How often a process that is to end is looked for.
const LOOK: Duration = Duration::from_millis(5);

/// A connection with its prepared statements.
pub(super) struct Line {
    pub(super) client: Client,
    statements: HashMap<String, Statement>,
}

impl Line {
    pub(super) fn new(client: Client) -> Line {
        let statements = HashMap::new();
        Line { client, statements }
    }

    pub(super) fn statement(&mut self, text: &str) -> Result<Statement, Failure> {
        if let Some(statement) = self.statements.get(text) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(text)?;
        self.statements.insert(text.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(super) fn query(&mut self, text: &str, with: &Arguments) -> Result<Vec<Row>, Failure> {
        let statement = self.statement(text)?;
        let with: Vec<&(dyn ToSql + Sync)> = with.iter().map(|one| &**one as _).collect();
        self.client.query(&statement, &with)
    }

    /// Returns by what the server's process for this connection is known.
    pub(super) fn session(&mut self) -> Result<Session, Failure> {
        let text =
            "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()";
        let row = self.client.query_one(text, &[])?;
        Ok((row.get(0), row.get(1)))
    }

    /// Has the server end a process, and waits until it has. A process may go on to carry out
    /// what it has received, although its client is gone.
    pub(super) fn end(&mut self, (process, begin): &Session) -> Result<(), Failure> {
        let text = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE pid = $1 AND backend_start::text = $2";
        while !self.client.query(text, &[process, begin])?.is_empty() {
            thread::sleep(LOOK);
        }
        Ok(())
    }
}
