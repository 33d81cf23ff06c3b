//! Commands that read jobs.

use std::time::Duration;

use clap::Args;
use tickwheel_durable::store::List;
use tickwheel_durable::{JobId, Jobs, StoreError, StoredJob, WallTime};

use crate::failure::Failure;
use crate::open::Opened;
use crate::output::{self, Output, hex, plain};
use crate::time;

/// The number of jobs that are read at once.
const PAGE: usize = 1_000;

/// Which jobs to list.
#[derive(Args)]
pub(crate) struct Listed {
    /// Dead letters, in the order in which they died, instead of waiting and running jobs
    #[arg(long)]
    dead: bool,
    /// Only jobs of this kind
    #[arg(long)]
    kind: Option<String>,
    /// Only jobs that are due within this time; 0s for those that are overdue
    #[arg(long, value_name = "TIME", value_parser = time::length)]
    within: Option<Duration>,
    /// The largest number of jobs to list
    #[arg(long, default_value_t = 100)]
    limit: usize,
}

/// Calls `each` with the jobs of a list, of one kind or of all, in their order, until it returns
/// `false`.
pub(crate) fn for_each<E: From<StoreError>>(
    jobs: &Jobs,
    list: List,
    kind: Option<&str>,
    mut each: impl FnMut(&StoredJob) -> Result<bool, E>,
) -> Result<(), E> {
    let mut last = None;
    loop {
        let page = match kind {
            Some(kind) => jobs.list_kind(list, kind, last.as_ref(), PAGE)?,
            None => jobs.list(list, last.as_ref(), PAGE)?,
        };
        for job in &page {
            if !each(job)? {
                return Ok(());
            }
        }
        last = page.into_iter().next_back();
        if last.is_none() {
            return Ok(());
        }
    }
}

pub(crate) fn list(jobs: &Opened, listed: &Listed, output: &mut Output) -> Result<bool, Failure> {
    let list = if listed.dead { List::Dead } else { List::Live };
    let now = jobs.now();
    let end = listed.within.map(|within| now + within);
    let (mut left, mut is_cut) = (listed.limit, false);
    output.text(&output::head())?;
    for_each(jobs, list, listed.kind.as_deref(), |job| {
        if end.is_some_and(|end| job.due > end) {
            return Ok::<bool, Failure>(false);
        }
        is_cut = left == 0;
        if !is_cut {
            left -= 1;
            output.line(&output::row(job, now), || output::object(job))?;
        }
        Ok(!is_cut && !output.is_closed)
    })?;
    if is_cut {
        output.text(&format!("… and more: see --limit ({})", listed.limit))?;
    }
    output.flush()?;
    Ok(true)
}

pub(crate) fn show(jobs: &Opened, id: JobId, output: &mut Output) -> Result<bool, Failure> {
    let Some(job) = jobs.get(id)? else {
        let message = format!("{id}: there is no such job; it has ended, or never was");
        output.line(&message, || serde_json::json!({"id": id.to_string(), "result": "gone"}))?;
        output.flush()?;
        return Ok(false);
    };
    output.line(&text(&job, jobs.now()), || output::whole_object(&job))?;
    output.flush()?;
    Ok(true)
}

/// Returns all that is stored of a job, for people.
fn text(job: &StoredJob, now: WallTime) -> String {
    let away = time::from_now(job.due, now);
    let payload = match std::str::from_utf8(&job.payload) {
        Ok(text) => plain(text),
        Err(_) => format!("0x{}", hex(&job.payload)),
    };
    let rows = [
        ("id", job.id.to_string()),
        ("kind", plain(&job.kind)),
        ("key", plain(job.key.as_deref().unwrap_or("-"))),
        ("state", output::state(job).to_owned()),
        ("due", format!("{} ({away})", job.due)),
        ("recurrence", output::recurrence(job).map_or("-".to_owned(), |text| plain(&text))),
        ("attempts", job.attempts.to_string()),
        ("version", job.version.to_string()),
        ("failure", plain(job.failure.as_deref().unwrap_or("-"))),
        ("payload", format!("{} bytes: {payload}", job.payload.len())),
    ];
    let lines = rows.map(|(name, value)| format!("{name:<11} {value}"));
    lines.join("\n")
}
