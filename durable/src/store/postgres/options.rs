//! The settings of a store, and its opening.

use std::sync::Arc;
use std::time::Duration;

use ::postgres::{Client, Config, NoTls};

use super::PostgresStore;
use super::error::reason;
use super::line::Line;
use super::schema;
use super::shared::Shared;
use super::waits::Waits;
use crate::store::StoreError;

/// For how long starts and outcomes wait for others.
const LINGER: Duration = Duration::from_micros(5_500);
/// The time until a connection counts as refused, and until one that answers nothing is broken.
const CONNECT: Duration = Duration::from_secs(10);
const UNANSWERED: Duration = Duration::from_secs(30);
/// The silence after which a connection is probed, and the pause between probes.
const SILENT: Duration = Duration::from_secs(10);
/// The silence after which the client probes by itself.
const SILENT_BY_DEFAULT: Duration = Duration::from_secs(2 * 3_600);

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
    /// underscores. Stores in different schemas know nothing of each other. Defaults to
    /// `tickwheel`.
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
    /// A call that schedules, cancels or moves a job fails after this time at the latest, and at
    /// once while the node is failing. One that reads may also have to connect, and takes up to
    /// three times as long. A handler in a transaction waits as long as the server's machine
    /// acknowledges what is sent.
    #[must_use]
    pub fn answers_within(mut self, limit: Duration) -> PostgresOptions {
        self.answers_within = limit.clamp(Duration::from_millis(10), Duration::from_secs(3_600));
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
            config.tcp_user_timeout(self.answers_within);
        }
        if config.get_keepalives_idle() == SILENT_BY_DEFAULT {
            config
                .keepalives_idle(SILENT)
                .keepalives_interval(SILENT)
                .keepalives_retries(2);
        }
        self.connect_by(move || config.connect(NoTls))
    }

    /// The same, with connections of the caller's, for example with TLS. Each node has four, and
    /// one more for each handler that works in a transaction.
    ///
    /// ```no_run
    /// use postgres::Client;
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
    /// let store = PostgresOptions::new().connect_by(move || {
    ///     let params = "host=db.example.org user=app dbname=app sslmode=require connect_timeout=10";
    ///     Client::connect(params, tls.clone())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`connect`](PostgresOptions::connect).
    pub fn connect_by(
        &self,
        connect: impl Fn() -> Result<Client, ::postgres::Error> + Send + Sync + 'static,
    ) -> Result<PostgresStore, StoreError> {
        schema::check_name(&self.schema)?;
        let waits = Waits::new(self.answers_within);
        let mut shared = Shared::new(self.schema.clone(), Arc::new(connect), waits);
        shared.linger = self.linger;
        let (remote, options) = (shared.remote()?, self.clone());
        remote.call(&shared.waits, Duration::MAX, move |line| {
            let PostgresOptions { schema, .. } = &options;
            schema::open(&mut line.client, schema, options.shards, options.creates)
        })??;
        shared.ask_time(&remote)?;
        let session = shared.call(&remote, Line::session)?;
        Ok(PostgresStore::new(shared, remote, session))
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
