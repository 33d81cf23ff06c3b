//! Runs the same work on tickwheel and on other timer crates, in turns, and prints one table.
//!
//! Quote ratios within one run: absolute times say little on a busy machine.

mod allocator;
mod case;
mod countdown;
mod plot;
mod rival;
mod rivals;
mod run;
mod stopwatch;
mod table;
mod workloads;

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use rustix::termios::tcgetwinsize;

use case::{Case, Effort, Row};
use table::FRONT;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

/// Measures tickwheel beside other timer crates. Without options: the ten rows of the
/// README, in less than three minutes.
#[derive(Parser)]
#[command(name = "versus")]
struct Args {
    /// Measures everything, in full size.
    #[arg(long, conflicts_with = "check")]
    full: bool,

    /// Runs every case once, on the least work, to see that all of them work.
    #[arg(long)]
    check: bool,

    /// Measures all rows of this workload. May be given several times.
    #[arg(long = "workload", value_name = "NAME",
        value_parser = PossibleValuesParser::new(workloads::names()))]
    workloads: Vec<String>,

    /// Measures nothing, and reads rows that `--json` has written. May be given several
    /// times; of a row that is in several files, the last one counts.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["full", "check", "workloads"])]
    from: Vec<PathBuf>,

    /// Writes the rows, with the figure of each round.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Draws front.svg, pair.svg and memory.svg into this folder, as far as their rows were
    /// measured.
    #[arg(long, value_name = "FOLDER")]
    plot: Option<PathBuf>,

    /// Measures one case, once and in this process. Every round is such a run; a profiler
    /// needs it as well.
    #[arg(long, value_name = "INDEX", hide = true)]
    case: Option<usize>,
}

impl Args {
    fn effort(&self) -> Effort {
        match (self.full, self.check) {
            (true, _) => Effort::Full,
            (_, true) => Effort::Check,
            _ => Effort::Quick,
        }
    }

    /// Whether a case is wanted: of the chosen workloads, or of the ten rows.
    fn wants(&self, case: &Case) -> bool {
        if self.workloads.is_empty() {
            self.full || self.check || FRONT.iter().any(|asked| asked.is_of(case))
        } else {
            self.workloads.iter().any(|name| name == case.workload)
        }
    }
}

fn main() -> ExitCode {
    match measure(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &Args) -> Result<(), Box<dyn Error>> {
    let cases = workloads::cases(args.effort());
    if let Some(case) = args.case {
        return Ok(run::child(cases.get(case).ok_or("there is no such case")?)?);
    }
    // A full run takes long, so its rows must not be lost at the end.
    if let Some(file) = &args.json {
        let open = OpenOptions::new().append(true).create(true).open(file);
        open.map_err(|error| about(file, &error))?;
    }
    let rows = if args.from.is_empty() {
        run::interleaved(&cases, |case| args.wants(case), args.effort())?
    } else {
        stored(&args.from)?
    };
    if let Some(file) = &args.json {
        let lines: Result<Vec<String>, _> = rows.iter().map(serde_json::to_string).collect();
        fs::write(file, format!("[\n{}\n]\n", lines?.join(",\n")))?;
    }
    if let Some(folder) = &args.plot {
        plot::all(folder, &rows).map_err(|error| about(folder, &*error))?;
    }
    let width = tcgetwinsize(stdout()).map(|size| size.ws_col);
    match writeln!(stdout(), "{}", table::report(&rows, width.ok())) {
        // As after `| head`.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}

fn about(path: &Path, error: &dyn Error) -> String {
    format!("{}: {error}", path.display())
}

fn stored(files: &[PathBuf]) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows: Vec<Row> = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).map_err(|error| about(file, &error))?;
        for row in serde_json::from_str::<Vec<Row>>(&text).map_err(|error| about(file, &error))? {
            rows.retain(|old| !(old.engine == row.engine && old.asks_the_same(&row)));
            rows.push(row);
        }
    }
    Ok(rows)
}
