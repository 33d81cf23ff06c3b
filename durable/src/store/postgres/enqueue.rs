//! Jobs that are stored in a transaction of the caller's.

use ::postgres::types::ToSql;
use ::postgres::{Error, Row};

use super::error::reason;
use super::options::PostgresOptions;
use super::rows::{micros, time};
use super::transaction::Transaction;
use crate::job::{Due, IfTaken, Job, JobId, Repeat};
use crate::store::row::recurrence_to_bytes;
use crate::store::{NewJob, StoreError};

impl Transaction<'_> {
    /// Stores a job. Returns its id, or that of the job that has its key and whether it refuses.
    pub(crate) fn enqueue(&mut self, new: &NewJob) -> Result<(JobId, bool), StoreError> {
        let (row, text) = Enqueued::of(new, self.schema);
        answer(self.inner.query_one(&text, &row.arguments()), self.schema)
    }
}

impl PostgresOptions {
    pub(crate) async fn enqueue(
        &self,
        transaction: &tokio_postgres::Transaction<'_>,
        new: &NewJob,
    ) -> Result<(JobId, bool), StoreError> {
        let (row, text) = Enqueued::of(new, self.schema_name());
        let row = transaction.query_one(&text, &row.arguments()).await;
        answer(row, self.schema_name())
    }
}

/// The arguments of the function `enqueue`.
struct Enqueued<'a> {
    job: &'a Job,
    micros: i64,
    if_taken: &'static str,
    recurrence: Vec<u8>,
}

impl<'a> Enqueued<'a> {
    /// Returns the arguments, and the text of the statement.
    fn of(new: &'a NewJob, schema: &str) -> (Enqueued<'a>, String) {
        let (recurrence, at, job) = (new.recurrence(), new.due(), new.job());
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
        (row, text)
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
}

fn answer(row: Result<Row, Error>, schema: &str) -> Result<(JobId, bool), StoreError> {
    let row = row.map_err(|error| reason(&error, schema))?;
    let id = JobId::new(time(row.get(1)), row.get::<_, i64>(0) as u64);
    Ok((id, row.get(2)))
}
