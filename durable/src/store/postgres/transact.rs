//! Changes that are carried out in the transaction of a handler.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::PostgresStore;
use super::connection::{Connection, typed};
use super::database::{Database, unanswered};
use super::rows::{self, COMPLETE, arguments};
use super::transaction::Transaction;
use crate::store::{Answer, Change, Result, StoreError, Transactions, Work};

impl Transactions for PostgresStore {
    fn transact(&self, limit: Duration, work: &mut dyn Work) -> Result<Option<(Change, Answer)>> {
        let database = &self.database;
        database.runtime.block_on(async {
            let idle = database.idle.lock().pop().filter(Connection::is_open);
            let mut connection = match idle {
                Some(connection) => connection,
                None => timeout(database.limit, database.open(Arc::new(|_| ()), None))
                    .await
                    .unwrap_or_else(|_| Err(unanswered(database.limit)))?,
            };
            let result = database.transact_on(&mut connection, limit, work).await;
            let reset = connection.reset(database.limit);
            if result.is_ok() && database.within(reset).await.is_ok() {
                database.idle.lock().push(connection);
            }
            result
        })
    }
}

impl Database {
    async fn transact_on(
        &self,
        connection: &mut Connection,
        limit: Duration,
        work: &mut dyn Work,
    ) -> Result<Option<(Change, Answer)>> {
        let begin = async {
            let inner = connection.client.transaction().await?;
            // The database takes no more than 24 days, and zero for no limit.
            let millis = limit.as_millis().clamp(1, i32::MAX as u128);
            let set = format!("SET LOCAL statement_timeout = {millis}");
            inner.batch_execute(&set).await?;
            Ok(inner)
        };
        let mut transaction =
            Transaction { inner: self.within(begin).await?, schema: &self.schema };
        let (mut changed, text) = (None, COMPLETE.replace("{schema}", &self.schema));
        while let Some(change) = work.work(&mut transaction, changed.take()).await {
            let with = arguments(self.member.lock().fence, slice::from_ref(&change));
            let complete = async { transaction.query_typed_one(&text, &typed(&with)).await };
            let row = self.within(complete).await?;
            let answer = rows::answer(&row, &self.member.lock());
            match answer {
                Answer::Changed(job) => changed = Some(*job),
                Answer::Placed(_) | Answer::Removed(_) => {
                    self.within(transaction.inner.commit()).await?;
                    return Ok(Some((change, answer)));
                }
                _ => {
                    let why = "the lease was lost, or the job was moved or cancelled";
                    return Err(StoreError::Refused(why.to_owned()));
                }
            }
        }
        self.within(transaction.inner.rollback()).await.map(|()| None)
    }

    /// Waits for an answer of the database for a limited time.
    async fn within<R>(
        &self,
        call: impl Future<Output = Result<R, tokio_postgres::Error>>,
    ) -> Result<R> {
        match timeout(self.limit, call).await {
            Ok(answer) => answer.map_err(|error| self.reason(&error)),
            Err(_) => Err(unanswered(self.limit)),
        }
    }
}
