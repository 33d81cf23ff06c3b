//! Jobs that are stored in a transaction of the caller's.

use crate::job::{Job, JobId};
use crate::jobs::{Refusal, Refused, check};
use crate::store::{NewJob, PostgresOptions, StoreError, Transaction};
use crate::wall::{SystemClock, WallClock};

impl Transaction<'_> {
    /// Stores a job, if this transaction is committed.
    ///
    /// # Errors
    /// Returns the job with the reason. If that is [`Refusal::Store`], the transaction cannot be
    /// committed any more.
    pub fn schedule(&mut self, job: Job) -> Result<JobId, Refused> {
        let new = check(job, SystemClock.now(), true)?;
        let answer = self.enqueue(&new);
        scheduled(new, answer)
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
    /// let mut transaction = client.transaction().await?;
    /// transaction.execute("INSERT INTO orders VALUES (7)", &[]).await?;
    /// let job = Job::new("confirmation", "order 7");
    /// PostgresOptions::new().schedule_in(&mut transaction, job).await?;
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
        transaction: &mut tokio_postgres::Transaction<'_>,
        job: Job,
    ) -> Result<JobId, Refused> {
        let new = check(job, SystemClock.now(), true)?;
        let answer = self.enqueue(transaction, &new).await;
        scheduled(new, answer)
    }
}

fn scheduled(new: NewJob, answer: Result<(JobId, bool), StoreError>) -> Result<JobId, Refused> {
    let reason = match answer {
        Ok((id, false)) => return Ok(id),
        Ok((id, true)) => Refusal::KeyTaken(id),
        Err(error) => Refusal::Store(error),
    };
    let job = Box::new(new.into_job());
    Err(Refused { job, reason })
}
