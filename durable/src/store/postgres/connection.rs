//! Connections to the database, and what they begin with.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Error, Row, SimpleQueryMessage};

/// How often a process that is to end is looked for.
const LOOK: Duration = Duration::from_millis(5);

/// A commit is durable on each connection, and one may be silent for long, whatever the role's
/// settings. Only servers from version 14 on end silent ones. The last row says by what the server's
/// process is known.
const SETTINGS: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED; SET jit = off; \
     SET standard_conforming_strings = on; \
     SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'; \
     SELECT set_config('idle_session_timeout', '0', false) WHERE current_setting('idle_session_timeout', true) <> ''; \
     SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()";

/// Undoes what a handler has done to a session: `DISCARD ALL`, but for prepared statements, of which
/// the client knows some.
const RESET: &str = "SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *; \
     SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES";

/// An argument of a statement.
pub(super) type Argument = (Box<dyn ToSql + Sync + Send>, Type);

/// Returns arguments as the client takes them.
pub(super) fn typed<'a>(with: &'a [Argument]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    let typed = |(value, sort): &'a Argument| (&**value as _, sort.clone());
    with.iter().map(typed).collect()
}

/// The number of a process of the server, and its begin.
pub(super) type Session = (String, String);
type Opening = Pin<Box<dyn Future<Output = Result<(Client, JoinSet<()>), Error>> + Send>>;
/// Is called with each notification that arrives on a connection, and with nothing at its end.
pub(super) type Heard = Arc<dyn Fn(Option<&str>) + Send + Sync>;

/// How a store connects.
pub(super) struct Connector(Box<dyn Fn(Heard) -> Opening + Send + Sync>);

impl Connector {
    pub(super) fn new<F, S, T>(connect: impl Fn() -> F + Send + Sync + 'static) -> Connector
    where
        F: Future<Output = Result<(Client, tokio_postgres::Connection<S, T>), Error>>
            + Send
            + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Connector(Box::new(move |heard| {
            let opening = connect();
            Box::pin(async move {
                let (client, mut connection) = opening.await?;
                let mut driver = JoinSet::new();
                driver.spawn(async move {
                    while let Some(Ok(message)) =
                        poll_fn(|context| connection.poll_message(context)).await
                    {
                        if let AsyncMessage::Notification(notification) = message {
                            heard(Some(notification.payload()));
                        }
                    }
                    heard(None);
                });
                Ok((client, driver))
            })
        }))
    }
}

/// An open connection. It ends with this, whatever is on its way.
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) session: Session,
    _driver: JoinSet<()>,
}

impl Connection {
    pub(super) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    pub(super) async fn query(&self, text: &str, with: &[Argument]) -> Result<Vec<Row>, Error> {
        self.client.query_typed(text, &typed(with)).await
    }

    /// Opens a connection, whose statements the server ends after `limit`. Before that, the server ends
    /// the process of the `last` one.
    pub(super) async fn open(
        connector: &Connector,
        heard: Heard,
        limit: Duration,
        last: Option<&Session>,
    ) -> Result<Connection, Error> {
        let (client, driver) = (connector.0)(heard).await?;
        let mut connection = Connection { client, session: Session::default(), _driver: driver };
        connection.prepare(limit, last).await?;
        Ok(connection)
    }

    /// Makes a connection that a handler had like one that was just opened.
    pub(super) async fn reset(&mut self, limit: Duration) -> Result<(), Error> {
        self.client.batch_execute(RESET).await?;
        self.prepare(limit, None).await
    }

    async fn prepare(&mut self, limit: Duration, last: Option<&Session>) -> Result<(), Error> {
        let settings = format!("SET statement_timeout = {}; {SETTINGS}", limit.as_millis());
        for message in self.client.simple_query(&settings).await? {
            if let SimpleQueryMessage::Row(row) = message
                && let (Some(process), Ok(Some(begin))) = (row.get(0), row.try_get(1))
            {
                self.session = (process.to_owned(), begin.to_owned());
            }
        }
        let Some((process, begin)) = last else {
            return Ok(());
        };
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE pid = $1::int AND backend_start = $2::timestamptz";
        let with: [(&(dyn ToSql + Sync), Type); 2] = [(process, Type::TEXT), (begin, Type::TEXT)];
        while !self.client.query_typed(end, &with).await?.is_empty() {
            sleep(LOOK).await;
        }
        Ok(())
    }
}
