//! Jobs that are stored in a transaction of the caller's.

use tokio_postgres::GenericClient;

use super::connection::typed;
use super::database::Member;
use super::error::reason;
use super::options::PostgresOptions;
use super::rows::{self, APPLY, arguments};
use super::transaction::Transaction;
use crate::job::{Job, JobId};
use crate::refusal::{Refusal, Refused, check, scheduled};
use crate::store::Change;
use crate::wall::WallTime;

impl Transaction<'_> {
    /// Stores a job, if this transaction is committed.
    ///
    /// # Errors
    /// Returns the job with the reason. If that is [`Refusal::Store`](crate::Refusal::Store), the
    /// transaction cannot be committed any more.
    pub async fn schedule(&self, job: Job) -> Result<JobId, Refused> {
        schedule(&**self, self.schema, job).await
    }
}

impl PostgresOptions {
    /// Stores a job in a transaction of the caller's, on the caller's connection: it is there, and
    /// runs, if and when that is committed. The tables must exist: a node has
    /// [created](PostgresOptions::connect) them. A program that only enqueues needs no node.
    ///
    /// The SQL function `enqueue` does the same for any other client and language. A transaction
    /// that stores or replaces a job with a key is to end soon: a node that schedules one with the
    /// key, or starts that job, commits nothing until then. One that is repeatable read or
    /// serializable may [keep](crate::IfTaken::Keep) a job that has ended since it began, and then
    /// stores none: use read committed.
    ///
    /// ```no_run
    /// use tickwheel_durable::{Job, PostgresOptions};
    ///
    /// # async fn order(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let transaction = client.transaction().await?;
    /// transaction.execute("INSERT INTO orders VALUES (7)", &[]).await?;
    /// let job = Job::new("confirmation", "order 7");
    /// PostgresOptions::new().schedule_in(&transaction, job).await?;
    /// transaction.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the job with the reason. If that is [`Refusal::Store`](crate::Refusal::Store), the
    /// transaction cannot be committed any more.
    pub async fn schedule_in(
        &self,
        transaction: &(impl GenericClient + Sync),
        job: Job,
    ) -> Result<JobId, Refused> {
        schedule(transaction, self.schema_name(), job).await
    }
}

async fn schedule(
    client: &(impl GenericClient + Sync),
    schema: &str,
    job: Job,
) -> Result<JobId, Refused> {
    let mut now = WallTime::default();
    // Of others, the database adds the time to the delay.
    if job.repeat.is_some() {
        let ask = format!("SELECT {schema}.now_micros()");
        match client.query_typed_one(&ask, &[]).await {
            Ok(row) => now = rows::time(row.get(0)),
            Err(error) => {
                let (job, reason) = (Box::new(job), Refusal::Store(reason(&error, schema)));
                return Err(Refused { job, reason });
            }
        }
    }
    let change = Change::Insert(check(job, now, true)?);
    let with = arguments(0, std::slice::from_ref(&change));
    let apply = APPLY.replace("{schema}", schema);
    let answer = match client.query_typed_one(&apply, &typed(&with)).await {
        Ok(row) => Ok(rows::answer(&row, &Member::default())),
        Err(error) => Err(reason(&error, schema)),
    };
    scheduled(answer, change)
}
