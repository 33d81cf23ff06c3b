//! Opening a store by its name: the one place that knows which stores there are.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_durable::{Durable, RedbOptions, StoreError};

use crate::failure::Failure;
use crate::holder::holders;
use crate::time::rough;

/// The pause between two attempts to open a store.
const PAUSE: Duration = Duration::from_millis(50);

/// Opens a store. Waits for one that is open elsewhere, and says so.
pub(crate) fn open_within(store: &str, wait: Duration) -> Result<Durable, Failure> {
    let begun = Instant::now();
    let mut opened = open(store);
    if let Err(Failure::InUse(message)) = &opened {
        let first = message.lines().next().unwrap_or_default();
        if !wait.is_zero() {
            eprintln!(
                "tickwheel-jobs: {first} Waiting {} for its end.",
                rough(wait)
            );
        }
    }
    while matches!(opened, Err(Failure::InUse(_))) && begun.elapsed() < wait {
        thread::sleep(PAUSE);
        opened = open(store);
    }
    opened
}

/// Opens a store that exists, without handlers: no job starts.
pub(crate) fn open(store: &str) -> Result<Durable, Failure> {
    match store.split_once("://") {
        Some((scheme, _)) => Err(Failure::Open(format!(
            "{scheme}:// is no store that this program knows: pass the path of a file"
        ))),
        None => open_file(Path::new(store)),
    }
}

fn open_file(path: &Path) -> Result<Durable, Failure> {
    if !path.exists() {
        let shown = path.display();
        return Err(Failure::Open(format!(
            "{shown}: there is no such file, and none was created"
        )));
    }
    // The reserve for a full disk belongs to the service.
    let opened = RedbOptions::new().reserve_bytes(0).open(path);
    let store = opened.map_err(|error| refused(path, &error))?;
    let jobs = Durable::builder().owner("tickwheel-jobs").open(store);
    jobs.map_err(|error| Failure::Open(error.to_string()))
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
