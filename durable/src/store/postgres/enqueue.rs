//! Jobs that are stored in a transaction of the caller's.

use std::ops::{Deref, DerefMut};

use ::postgres::types::ToSql;
use ::postgres::{Error, Row};

use super::error::reason;
use super::options::PostgresOptions;
use super::rows::{micros, time};
use crate::job::{Due, IfTaken, Job, JobId, Repeat};
use crate::jobs::{Refusal, Refused, check};
use crate::store::row::recurrence_to_bytes;
use crate::wall::{SystemClock, WallClock};

/// The transaction in which a handler works: one of the crate `postgres`, and jobs in it.
#[allow(missing_debug_implementations, reason = "that of postgres has none")]
pub struct Transaction<'a> {
    pub(super) inner: ::postgres::Transaction<'a>,
    pub(super) schema: &'a str,
}

impl<'a> Deref for Transaction<'a> {
    type Target = ::postgres::Transaction<'a>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}

impl Transaction<'_> {
    /// Stores a job, if this transaction is committed.
    ///
    /// # Errors
    /// Returns the job with the reason. If that is [`Refusal::Store`], the transaction cannot be
    /// committed any more.
    pub fn schedule(&mut self, job: Job) -> Result<JobId, Refused> {
        let (row, text) = Enqueued::of(job, self.schema)?;
        let answer = self.inner.query_one(&text, &row.arguments());
        row.answer(answer, self.schema)
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
        let (row, text) = Enqueued::of(job, self.schema_name())?;
        let answer = transaction.query_one(&text, &row.arguments()).await;
        row.answer(answer, self.schema_name())
    }
}

/// The arguments of the function `enqueue`.
struct Enqueued {
    job: Job,
    micros: i64,
    if_taken: &'static str,
    recurrence: Vec<u8>,
}

impl Enqueued {
    /// Returns the arguments, and the text of the statement.
    fn of(job: Job, schema: &str) -> Result<(Enqueued, String), Refused> {
        let job = check(job, SystemClock.now(), true)?;
        let (recurrence, at, job) = (job.recurrence(), job.due, job.into_job());
        // A delay counts by the clock of the database.
        let (begin, micros) = match (&job.due, &job.repeat) {
            (Due::Unset, Repeat::Once) => ("clock_timestamp()", 0),
            (Due::After(delay), Repeat::Once) => (
                "clock_timestamp()",
                i64::try_from(delay.as_micros()).unwrap_or(i64::MAX),
            ),
            _ => ("'epoch'::timestamptz", micros(at)),
        };
        let text = format!(
            "SELECT * FROM {schema}.enqueue($1::text, $2::bytea, {begin} + $3::bigint * interval '1 microsecond', \
             $4::text, $5::text, $6::bytea)"
        );
        let row = Enqueued {
            micros,
            if_taken: match job.if_taken {
                IfTaken::Refuse => "refuse",
                IfTaken::Keep => "keep",
                IfTaken::Replace => "replace",
                IfTaken::Update => "update",
            },
            recurrence: recurrence_to_bytes(recurrence),
            job,
        };
        Ok((row, text))
    }

    fn arguments(&self) -> [&(dyn ToSql + Sync); 6] {
        [
            &self.job.kind,
            &self.job.payload,
            &self.micros,
            &self.job.key,
            &self.if_taken,
            &self.recurrence,
        ]
    }

    fn answer(self, answer: Result<Row, Error>, schema: &str) -> Result<JobId, Refused> {
        let refused = match answer {
            Ok(row) => {
                let id = JobId::new(time(row.get(1)), row.get::<_, i64>(0) as u64);
                match row.get(2) {
                    false => return Ok(id),
                    true => Refusal::KeyTaken(id),
                }
            }
            Err(error) => Refusal::Store(reason(&error, schema)),
        };
        Err(Refused {
            job: Box::new(self.job),
            reason: refused,
        })
    }
}
