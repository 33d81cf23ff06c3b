//! The settings of a store, and its opening.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Builder;
use tokio_postgres::{Client, Config, Connection, Error, NoTls};

use super::PostgresStore;
use super::connection::Connector;
use super::database::Database;
use super::error::reason;
use super::link::Link;
use super::schema;
use crate::store::{Result, StoreError};

/// For how long starts and outcomes wait for others.
const LINGER: Duration = Duration::from_micros(5_500);
/// The time until a call that nobody answers is given up.
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
    answers_within: Duration,
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
            answers_within: UNANSWERED,
        }
    }

    /// Sets the schema that holds the tables: up to 48 lower-case letters, digits and
    /// underscores, and no digit first. Stores in different schemas know nothing of each other.
    /// Defaults to `tickwheel`.
    #[must_use]
    pub fn schema(mut self, name: impl Into<String>) -> PostgresOptions {
        self.schema = name.into();
        self
    }

    pub(super) fn schema_name(&self) -> &str {
        &self.schema
    }

    /// Sets the number of shards of each kind with which the tables are created, from 1 to 1,024. It
    /// limits the number of nodes that work on a kind; tables that exist keep theirs. Defaults to 16.
    #[must_use]
    pub fn shards(mut self, shards: u32) -> PostgresOptions {
        self.shards = shards.clamp(1, 1_024);
        self
    }

    /// Sets whether tables are created if there are none. A program that only looks must not.
    /// Defaults to true.
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

    /// Sets how long a call waits for an answer of the database, from 10 ms to an hour. After that
    /// the database counts as away: the call fails with [`StoreError::Io`], the node is
    /// [failing](crate::Health::Failing), and tries again by itself. Defaults to 30 seconds.
    ///
    /// A call fails after this time at the latest, and one that schedules, cancels or moves a job at
    /// once while the node is failing. The database ends a statement after the same time.
    #[must_use]
    pub fn answers_within(mut self, limit: Duration) -> PostgresOptions {
        self.answers_within = limit.clamp(Duration::from_millis(10), Duration::from_secs(3_600));
        self
    }

    /// Connects without TLS, and creates the tables unless they exist. `params` is a URL or
    /// `key=value` pairs, as [`tokio_postgres::Config`](https://docs.rs/tokio-postgres) reads them.
    ///
    /// The role needs the right to create a schema, or to create tables and functions in an
    /// existing one. The database's encoding must be UTF-8. The connection must lead to the database
    /// itself, and not through a pooler that changes servers between transactions.
    ///
    /// # Errors
    /// Returns [`StoreError::Newer`] if a newer version of this crate has created the tables, and
    /// [`StoreError::Foreign`] if the schema holds those of another program; both are left alone.
    /// Returns [`StoreError::Refused`] with the database's message if a right is missing, or if
    /// there are no tables and none are to be [created](PostgresOptions::creates), and
    /// [`StoreError::Io`] if the database does not answer.
    pub fn connect(&self, params: &str) -> Result<PostgresStore> {
        let config: Result<Config, _> = params.parse();
        let config = Arc::new(config.map_err(|error| reason(&error, &self.schema))?);
        self.connect_by(move || {
            let config = Arc::clone(&config);
            async move { config.connect(NoTls).await }
        })
    }

    /// The same, with connections of the caller's, for example with TLS. Each node has three, and
    /// one more for each handler that works in a transaction.
    ///
    /// ```no_run
    /// use rustls::pki_types::{CertificateDer, pem::PemObject};
    /// use rustls::{ClientConfig, RootCertStore};
    /// use tickwheel_durable::PostgresOptions;
    /// use tokio_postgres_rustls::MakeRustlsConnect;
    ///
    /// let mut roots = RootCertStore::empty();
    /// for certificate in CertificateDer::pem_file_iter("/etc/ssl/database.pem")? {
    ///     roots.add(certificate?)?;
    /// }
    /// let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    /// let tls = MakeRustlsConnect::new(config);
    /// let params = "host=db.example.org user=app dbname=app sslmode=require";
    /// let store = PostgresOptions::new()
    ///     .connect_by(move || tokio_postgres::connect(params, tls.clone()))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`connect`](PostgresOptions::connect).
    pub fn connect_by<F, S, T>(
        &self,
        connect: impl Fn() -> F + Send + Sync + 'static,
    ) -> Result<PostgresStore>
    where
        F: Future<Output = Result<(Client, Connection<S, T>), Error>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        schema::check_name(&self.schema)?;
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).thread_name("durable-database");
        let runtime = runtime.enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Io(Arc::new(error)))?;
        let database = Database {
            schema: self.schema.clone(),
            linger: self.linger,
            limit: self.answers_within,
            connector: Connector::new(connect),
            runtime: runtime.handle().clone(),
            clock: Arc::default(),
            member: Default::default(),
            hear: OnceLock::new(),
            idle: Default::default(),
        };
        let store = PostgresStore {
            database: Arc::new(database),
            commits: Arc::default(),
            works: AtomicBool::new(true),
            leases: Arc::new(Link::that_listens()),
            reads: Arc::default(),
            runtime: Some(runtime),
        };
        let (database, options) = (Arc::clone(&store.database), self.clone());
        store.database.wait(Duration::MAX, async move {
            let mut connection = database.open(Arc::new(|_| ()), None).await?;
            let PostgresOptions { schema, .. } = &options;
            schema::open(&mut connection.client, schema, options.shards, options.creates).await
        })?;
        store.ask_time()?;
        Ok(store)
    }
}

impl PostgresStore {
    /// Connects with the default settings. See [`PostgresOptions::connect`].
    ///
    /// # Errors
    /// See [`PostgresOptions::connect`].
    pub fn connect(params: &str) -> Result<PostgresStore> {
        PostgresOptions::new().connect(params)
    }
}
