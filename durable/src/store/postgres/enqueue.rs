//! Jobs that are stored in a transaction of the caller's.

use tokio_postgres::GenericClient;
use tokio_postgres::types::{ToSql, Type};

use super::error::reason;
use super::options::PostgresOptions;
use super::rows::{if_taken, micros, time};
use super::transaction::Transaction;
use crate::job::{Due, Job, JobId, Repeat};
use crate::refusal::{Refusal, Refused, check};
use crate::store::{NewJob, StoreError};
use crate::wall::{SystemClock, WallClock};

impl Transaction<'_> {
    /// Stores a job, if this transaction is committed.
    ///
    /// # Errors
    /// Returns the job with the reason. If that is [`Refusal::Store`], the transaction cannot be
    /// committed any more.
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
    /// that replaces a job keeps others from changing or starting it until it ends.
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
    /// Returns the job with the reason. If that is [`Refusal::Store`], the transaction cannot be
    /// committed any more.
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
    let new = check(job, SystemClock.now(), true)?;
    let reason = match enqueue(client, schema, &new).await {
        Ok((id, false)) => return Ok(id),
        Ok((id, true)) => Refusal::KeyTaken(id),
        Err(error) => Refusal::Store(error),
    };
    let job = Box::new(new.into_job());
    Err(Refused { job, reason })
}

/// Returns the id of the job, or that of the one that has its key and whether it refuses.
async fn enqueue(
    client: &(impl GenericClient + Sync),
    schema: &str,
    new: &NewJob,
) -> Result<(JobId, bool), StoreError> {
    let (job, recurrence) = (new.job(), new.recurrence().map(|one| one.to_string()));
    // A delay counts by the clock of the database.
    let (begin, due) = match (&job.due, &job.repeat) {
        (Due::Unset, Repeat::Once) => ("clock_timestamp()", 0),
        (Due::After(delay), Repeat::Once) => (
            "clock_timestamp()",
            i64::try_from(delay.as_micros()).unwrap_or(i64::MAX),
        ),
        _ => ("'epoch'::timestamptz", micros(new.due())),
    };
    let text = format!(
        "SELECT * FROM {schema}.enqueue($1, $2, {begin} + $3 * interval '1 microsecond', $4, $5, $6)"
    );
    let with: [(&(dyn ToSql + Sync), Type); 6] = [
        (&job.kind, Type::TEXT),
        (&job.payload, Type::BYTEA),
        (&due, Type::INT8),
        (&job.key, Type::TEXT),
        (&if_taken(job.if_taken), Type::TEXT),
        (&recurrence, Type::TEXT),
    ];
    let row = client.query_typed_one(&text, &with).await;
    let row = row.map_err(|error| reason(&error, schema))?;
    let id = JobId::new(time(row.get(1)), row.get::<_, i64>(0) as u64);
    Ok((id, row.get(2)))
}
