//! A reminder service over HTTP. Reminders survive the process: `tests/kills.rs` kills it at
//! random moments and balances the ledger.
//!
//! ```text
//! cargo run -p tickwheel-reminders -- --store reminders.redb --ledger ledger.txt
//!
//! curl -d '{"text": "call Ada", "in": "90s"}'              127.0.0.1:8080/reminders
//! curl -d '{"text": "tea", "at": "2030-01-01T16:00:00Z"}'  127.0.0.1:8080/reminders
//! curl -d '{"text": "stand up", "cron": "0 9 * * MON-FRI Europe/Berlin", "key": "ada"}' 127.0.0.1:8080/reminders
//! curl           127.0.0.1:8080/reminders        # the first hundred; ?after=ID, ?dead
//! curl           127.0.0.1:8080/reminders/ID
//! curl -X DELETE 127.0.0.1:8080/reminders/ID
//! curl -X POST   127.0.0.1:8080/reminders/ID/retry   # a dead letter
//! curl           127.0.0.1:8080/health           # 200, or 503 with the reason
//! curl           127.0.0.1:8080/metrics          # for Prometheus
//! ```
//! Several nodes share the reminders of a database, and take over from one that dies:
//!
//! ```text
//! cargo run -p tickwheel-reminders -- --store postgres://app@db/app --name one
//! cargo run -p tickwheel-reminders -- --store postgres://app@db/app --name two --listen 127.0.0.1:8081
//! ```
//! A reminder that is due is a line in the ledger. SIGTERM and Ctrl-C end the service once the
//! handlers that run have ended.

mod api;
mod ledger;

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use metrics_exporter_prometheus::PrometheusBuilder;
use tickwheel::time::Global;
use tickwheel_durable::{Durable, PostgresOptions, RedbStore, Retry};
use tokio::net::{TcpListener, TcpStream};

use crate::api::Service;
use crate::ledger::Ledger;

/// The most time for the head of a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause after a connection that could not be accepted, for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Keeps reminders, and writes those that are due to a ledger.
#[derive(Parser)]
struct Args {
    /// The file of the reminders, created if it does not exist; or postgres://… for several
    /// nodes, each with a name of its own
    #[arg(long, default_value = "reminders.redb")]
    store: String,
    /// The schema of the reminders in a PostgreSQL database
    #[arg(long, default_value = "reminders")]
    schema: String,
    /// The file to which due reminders are appended
    #[arg(long, default_value = "ledger.txt")]
    ledger: PathBuf,
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The name of this node; one that comes back under its name takes its lease at once
    #[arg(long, default_value = "reminders")]
    name: String,
    /// The seconds after which another node takes over
    #[arg(long, default_value_t = 10)]
    lease: u64,
    /// The name of this process in the ledger; defaults to the process id
    #[arg(long)]
    life: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let metrics = PrometheusBuilder::new().install_recorder()?;
    let jobs = open(&args)?;
    let service = Arc::new(Service { jobs, metrics });
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(serve(args.listen, &service))?;
    // Ends the connections, and then waits for the handlers that run.
    drop(runtime);
    drop(service);
    Ok(())
}

/// Opens the reminders. A ledger that cannot be written fails the attempt, and the reminder is
/// tried again.
fn open(args: &Args) -> Result<Durable, Box<dyn Error>> {
    let life = args.life.clone();
    let life = life.unwrap_or_else(|| std::process::id().to_string());
    let ledger = Ledger::open(&args.ledger, &life)?;
    let retry = Retry::attempts(100).longest_pause(Duration::from_secs(60));
    let node = Durable::builder()
        .owner(&args.name)
        .lease(Duration::from_secs(args.lease))
        .handler(api::KIND, move |attempt| ledger.write(attempt))
        .retry(api::KIND, retry);
    Ok(if args.store.contains("://") {
        let options = PostgresOptions::new().schema(&args.schema);
        node.open(options.connect(&args.store)?)?
    } else {
        node.open(RedbStore::open(&args.store)?)?
    })
}

/// Answers requests until the process is told to end.
async fn serve(address: SocketAddr, service: &Arc<Service>) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    let mut end = std::pin::pin!(end()?);
    println!("listening on {}", listener.local_addr()?);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            result = &mut end => return Ok(result?),
        };
        match accepted {
            Ok((stream, _)) => drop(tokio::spawn(connection(stream, Arc::clone(service)))),
            Err(_) => tickwheel::time::sleep(PAUSE).await,
        }
    }
}

async fn connection(stream: TcpStream, service: Arc<Service>) {
    let respond = service_fn(move |request| Arc::clone(&service).respond(request));
    let mut builder = http1::Builder::new();
    builder.timer(Global).header_read_timeout(PATIENCE);
    let served = builder.serve_connection(TokioIo::new(stream), respond);
    // A client that goes away is its own affair.
    let _ = served.await;
}

/// Returns what waits for Ctrl-C or SIGTERM, which from now on no longer kill the process.
#[cfg(unix)]
fn end() -> io::Result<impl Future<Output = io::Result<()>>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
        }
    })
}

#[cfg(not(unix))]
fn end() -> io::Result<impl Future<Output = io::Result<()>>> {
    Ok(tokio::signal::ctrl_c())
}
