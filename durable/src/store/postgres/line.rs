//! A connection and its prepared statements.

use std::collections::HashMap;

use ::postgres::types::ToSql;
use ::postgres::{Client, Row, Statement};

pub(super) type Failure = ::postgres::Error;

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

    pub(super) fn query(
        &mut self,
        text: &str,
        with: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Failure> {
        let statement = self.statement(text)?;
        self.client.query(&statement, with)
    }
}
