//! The settings of a store, and its opening.

use std::time::Duration;

use ::postgres::{Client, Config, NoTls};

use super::PostgresStore;
use super::error::reason;
use super::schema;
use super::shared::Shared;
use crate::store::StoreError;

/// For how long starts and outcomes wait for others.
const LINGER: Duration = Duration::from_micros(5_500);
/// The time until a connection counts as refused, and until one that answers nothing is broken.
const CONNECT: Duration = Duration::from_secs(10);
const UNANSWERED: Duration = Duration::from_secs(30);

/// Settings of a [`PostgresStore`].
///
/// ```no_run
/// use tickwheel_durable::PostgresOptions;
///
/// let options = PostgresOptions::new().schema("reminders").shards(32);
/// let store = options.connect("host=db.example.org user=app dbname=app")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    schema: String,
    shards: u32,
    creates: bool,
    linger: Duration,
}

impl Default for PostgresOptions {
    fn default() -> PostgresOptions {
        PostgresOptions::new()
    }
}

impl PostgresOptions {
    /// Returns the default settings.
    #[must_use]
    pub fn new() -> PostgresOptions {
        PostgresOptions {
            schema: "tickwheel".to_owned(),
            shards: 16,
            creates: true,
            linger: LINGER,
        }
    }

    /// Sets the schema that holds the tables: up to 48 lower-case letters, digits and
    /// underscores. Stores in different schemas know nothing of each other. Defaults to
    /// `tickwheel`.
    #[must_use]
    pub fn schema(mut self, name: impl Into<String>) -> PostgresOptions {
        self.schema = name.into();
        self
    }

    /// Sets the number of shards with which the tables are created, from 1 to 1,024. It limits
    /// the number of nodes that have work; tables that exist keep theirs. Defaults to 16.
    #[must_use]
    pub fn shards(mut self, shards: u32) -> PostgresOptions {
        self.shards = shards.clamp(1, 1_024);
        self
    }

    /// Sets whether tables are created, or brought up to date, if there are none of this version.
    /// A program that only looks must not. Defaults to true.
    #[must_use]
    pub fn creates(mut self, creates: bool) -> PostgresOptions {
        self.creates = creates;
        self
    }

    /// Sets how long starts and outcomes of jobs may wait for others, so that they share a
    /// transaction. A transaction of nothing else begins so long after the last one began. Defaults
    /// to 5.5 ms.
    ///
    /// At a steady rate, a job starts up to so much later, and a node makes one transaction in
    /// that time instead of one or two for each job. After a quiet moment, a job starts at once.
    /// A backlog does not wait, nor does what a caller schedules, cancels or moves. If the process
    /// dies, a job whose outcome waited runs again.
    ///
    /// Zero lets nothing wait. A node waits for no more than a tenth of its
    /// [lease](crate::Builder::lease).
    #[must_use]
    pub fn linger(mut self, most: Duration) -> PostgresOptions {
        self.linger = most;
        self
    }

    /// Connects without TLS, and creates the tables unless they exist. `params` is a URL or
    /// `key=value` pairs, as [`postgres::Config`](https://docs.rs/postgres) reads them.
    ///
    /// The role needs the right to create a schema, or to create tables and functions in an
    /// existing one. The connection must lead to the database itself, and not through a pooler
    /// that changes servers between transactions.
    ///
    /// # Errors
    /// Returns [`StoreError::Newer`] if a newer version of this crate has created the tables, and
    /// [`StoreError::Foreign`] if the schema holds those of another program; both are left alone.
    /// Returns [`StoreError::Refused`] with the database's message if a right is missing, or if
    /// there are no tables and none are to be [created](PostgresOptions::creates), and
    /// [`StoreError::Io`] if the database does not answer.
    pub fn connect(&self, params: &str) -> Result<PostgresStore, StoreError> {
        let config: Result<Config, _> = params.parse();
        let mut config = config.map_err(|error| reason(&error, &self.schema))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNANSWERED);
        }
        self.connect_by(move || config.connect(NoTls))
    }

    /// The same, with connections of the caller's, for example with TLS. Each node has four, and
    /// one more for each handler that works in a transaction.
    ///
    /// # Errors
    /// See [`connect`](PostgresOptions::connect).
    pub fn connect_by(
        &self,
        connect: impl Fn() -> Result<Client, ::postgres::Error> + Send + Sync + 'static,
    ) -> Result<PostgresStore, StoreError> {
        schema::check_name(&self.schema)?;
        let mut shared = Shared::new(self.schema.clone(), Box::new(connect));
        shared.linger = self.linger;
        let mut client = shared.connect()?;
        shared.shards = schema::open(&mut client, &self.schema, self.shards, self.creates)?;
        Ok(PostgresStore::new(shared, client))
    }
}

impl PostgresStore {
    /// Connects with the default settings. See [`PostgresOptions::connect`].
    ///
    /// # Errors
    /// See [`PostgresOptions::connect`].
    pub fn connect(params: &str) -> Result<PostgresStore, StoreError> {
        PostgresOptions::new().connect(params)
    }
}
