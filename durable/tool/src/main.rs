//! The command-line tool for the jobs of a store.
//!
//! People read its output; with `--json`, programs do: an object a line. The exit code is 0 if
//! everything was done, 1 if a job was not found or is left, 2 for a wrong command line, 3 if
//! the store cannot be opened, and 4 if it cannot be read or written.
//!
//! A file is open in one process at a time, so the tool works on it while no service has it
//! open. It says which process has it, and can wait for that process to end (`--wait`). A
//! database can be looked at at any time.

mod change;
mod failure;
mod holder;
mod live;
mod look;
mod open;
mod output;
mod stats;
mod time;
mod watch;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use tickwheel_durable::JobId;

use crate::failure::Failure;
use crate::look::Listed;
use crate::open::Place;
use crate::output::Output;

/// Looks at the jobs of a store, and cancels, retries and counts them.
///
/// STORE is the path of a file, or postgres://…. One process at a time can open a file: stop the
/// service that runs its jobs, or let the service offer these calls itself (examples/reminders
/// shows how). A database can be looked at while services work on it.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Args {
    #[command(flatten)]
    place: Place,

    /// Print JSON, one object a line
    #[arg(long, global = true)]
    json: bool,

    /// Wait so long for a file that is open elsewhere, or for the end of `drain`, for example 30s
    #[arg(long, global = true, value_name = "TIME", default_value = "0s", value_parser = time::length)]
    wait: Duration,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List jobs in the order of their due times
    List(Listed),
    /// Show a job with all that is stored of it
    Show {
        /// The id, as `list` prints it
        id: JobId,
    },
    /// Remove waiting jobs, so that they do not run
    Cancel {
        /// The ids
        #[arg(required_unless_present = "key")]
        ids: Vec<JobId>,
        /// The job of this kind with this key; may be repeated
        #[arg(long, num_args = 2, allow_hyphen_values = true, value_names = ["KIND", "KEY"])]
        key: Option<Vec<String>>,
    },
    /// Make dead letters due again, with all their attempts
    Retry {
        /// The ids
        #[arg(required_unless_present = "all")]
        ids: Vec<JobId>,
        /// All dead letters
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// All of this kind
        #[arg(long, requires = "all", conflicts_with = "ids")]
        kind: Option<String>,
        /// Due after this time, for example 10m
        #[arg(long = "in", value_name = "TIME", default_value = "0s", value_parser = time::length)]
        after: Duration,
    },
    /// Remove dead letters
    Bury {
        /// The ids
        #[arg(required = true)]
        ids: Vec<JobId>,
    },
    /// Say how many jobs are left, and with --wait, wait until none is
    ///
    /// Exits with 0 if none is left. Nodes go on working on a database meanwhile. A file that is
    /// open elsewhere is waited for; then nothing starts while this program has it open, so
    /// nothing more is waited for.
    Drain {
        /// Count only jobs that are due within this time, for example 1h
        #[arg(long, value_name = "TIME", value_parser = time::length)]
        within: Option<Duration>,
    },
    /// Count jobs by kind and by due time. Reads them all
    Stats,
    /// Show counts over time, the next jobs and dead letters; between two looks, others may open a file
    ///
    /// In a terminal, keys scroll and quit. Elsewhere, with --json or with --times, prints the counts
    /// of `stats` as lines.
    Watch {
        /// The time between two looks
        #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time::length)]
        every: Duration,
        /// Print lines, and end after so many looks
        #[arg(long)]
        times: Option<u64>,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut output = Output::new(args.json);
    match run(&args, &mut output) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => failure.report(args.json),
    }
}

/// Carries out the command. Returns whether it found everything that it was to find.
fn run(args: &Args, output: &mut Output) -> Result<bool, Failure> {
    if let Command::Watch { every, times } = &args.command {
        let is_live = !args.json && times.is_none() && std::io::stdout().is_terminal();
        return if is_live {
            live::run(&args.place, *every)
        } else {
            watch::watch(&args.place, *every, *times, output)
        };
    }
    let jobs = open::open_within(&args.place, args.wait)?;
    match &args.command {
        Command::List(listed) => look::list(&jobs, listed, output),
        Command::Show { id } => look::show(&jobs, *id, output),
        Command::Cancel { ids, key } => change::cancel(&jobs, ids, key.as_deref(), output),
        Command::Retry { ids, all, kind, after } => {
            if *all {
                change::retry_all(&jobs, kind.as_deref(), *after, output)
            } else {
                change::retry(&jobs, ids, *after, output)
            }
        }
        Command::Bury { ids } => change::bury(&jobs, ids, output),
        Command::Drain { within } => {
            // Nothing changes in a file that this program has open.
            let wait = if args.place.is_shared() { args.wait } else { Duration::ZERO };
            stats::drain(&jobs, *within, wait, output)
        }
        Command::Stats => stats::show(&jobs, output),
        Command::Watch { .. } => unreachable!("handled above"),
    }
}
