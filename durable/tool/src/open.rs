//! Opening a store by its name: the one place that knows which stores there are.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
#[cfg(feature = "postgres")]
use tickwheel_durable::PostgresOptions;
use tickwheel_durable::store::Store;
use tickwheel_durable::{Durable, Jobs, RedbOptions, StoreError, SystemClock, WallClock, WallTime};

use crate::failure::Failure;
use crate::holder::holders;
use crate::output::complain;
use crate::time::rough;

/// The pause between two attempts to open a store.
const PAUSE: Duration = Duration::from_millis(50);

/// A store.
#[derive(Clone, Args)]
pub(crate) struct Place {
    /// The store: the path of a file, or the URL of a PostgreSQL database
    pub(crate) store: String,

    /// The schema of the jobs in a PostgreSQL database
    #[arg(long, global = true, default_value = "tickwheel")]
    schema: String,
}

impl Place {
    /// Returns whether others work on the store while this program has it open.
    pub(crate) fn is_shared(&self) -> bool {
        self.store.contains("://")
    }

    /// Returns the name of the store for people. A URL may hold a password.
    pub(crate) fn name(&self) -> &str {
        if self.is_shared() { "PostgreSQL" } else { &self.store }
    }
}

/// An open store.
pub(crate) struct Opened {
    jobs: Durable,
    clock: Arc<dyn WallClock>,
}

impl Opened {
    /// Returns the time by the clock by which its jobs are due.
    pub(crate) fn now(&self) -> WallTime {
        self.clock.now()
    }
}

impl Deref for Opened {
    type Target = Jobs;

    fn deref(&self) -> &Jobs {
        &self.jobs
    }
}

/// Opens a store. Waits for one that is open elsewhere, and says so.
pub(crate) fn open_within(place: &Place, wait: Duration) -> Result<Opened, Failure> {
    let begun = Instant::now();
    let mut opened = open(place);
    if let Err(Failure::InUse(message)) = &opened {
        let first = message.lines().next().unwrap_or_default();
        if !wait.is_zero() {
            complain(&format!("tickwheel-jobs: {first} Waiting {} for its end.", rough(wait)));
        }
    }
    while matches!(opened, Err(Failure::InUse(_))) && begun.elapsed() < wait {
        thread::sleep(PAUSE);
        opened = open(place);
    }
    opened
}

/// Opens a store that exists, without handlers: no job starts.
pub(crate) fn open(place: &Place) -> Result<Opened, Failure> {
    let store = &place.store;
    match store.split_once("://") {
        Some(("postgres" | "postgresql", _)) => open_postgres(store, &place.schema),
        Some((scheme, _)) => Err(Failure::Open(format!(
            "{scheme}:// is no store that this program knows: pass the path of a file, or postgres://…"
        ))),
        None => open_file(Path::new(store)),
    }
}

#[cfg(feature = "postgres")]
fn open_postgres(url: &str, schema: &str) -> Result<Opened, Failure> {
    let options = PostgresOptions::new().schema(schema).creates(false);
    let store = options.connect(url);
    // The URL may hold a password.
    let store = store.map_err(|error| Failure::Open(format!("PostgreSQL: {error}")))?;
    start(store)
}

#[cfg(not(feature = "postgres"))]
fn open_postgres(_: &str, _: &str) -> Result<Opened, Failure> {
    Err(Failure::Open(
        "this program was built without PostgreSQL: build it with the feature `postgres`"
            .to_owned(),
    ))
}

fn start(store: impl Store) -> Result<Opened, Failure> {
    let clock = store.clock().unwrap_or_else(|| Arc::new(SystemClock));
    let jobs = Durable::builder().owner("tickwheel-jobs").open(store);
    let jobs = jobs.map_err(|error| Failure::Open(error.to_string()))?;
    Ok(Opened { jobs, clock })
}

fn open_file(path: &Path) -> Result<Opened, Failure> {
    if !path.exists() {
        let shown = path.display();
        return Err(Failure::Open(format!("{shown}: there is no such file, and none was created")));
    }
    // The reserve for a full disk belongs to the service.
    let opened = RedbOptions::new().reserve_bytes(0).open(path);
    let store = opened.map_err(|error| refused(path, &error))?;
    start(store)
}

fn refused(path: &Path, error: &StoreError) -> Failure {
    let shown = path.display();
    if !matches!(error, StoreError::InUse) {
        return Failure::Open(format!("{shown}: {error}"));
    }
    let holder = match holders(path) {
        empty if empty.is_empty() => "another process".to_owned(),
        holders => holders,
    };
    Failure::InUse(format!(
        "{shown} is open in {holder}, and a file is open in one process at a time.\n\
         Stop that process and run this again; with --wait TIME this program waits for its end.\n\
         To look while it runs, have it answer itself, as examples/reminders does over HTTP.\n\
         Do not copy the file while it is open: the copy may be torn."
    ))
}
