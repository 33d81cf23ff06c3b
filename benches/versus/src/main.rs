//! Runs the same work on tickwheel, on other timer crates and on the floors:
//! interleaved rounds, medians and their spread.
//!
//! Quote ratios within one run: absolute times say little on a busy machine.

mod allocator;
mod args;
mod case;
mod child;
mod countdown;
mod effort;
mod laps;
mod lines;
mod processors;
mod report;
mod rival;
mod rivals;
mod run;
mod runtime;
mod stopwatch;
mod workloads;

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use args::{Args, Which};
use case::Row;
use effort::Effort;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    let effort = Effort { quick: args.quick };
    if let Some(index) = args.only {
        let cases = args.chosen().into_iter();
        let cases = cases.flat_map(|workload| workloads::cases(workload, effort));
        child::run(&cases.collect::<Vec<_>>(), index)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = compare(&args, effort)?;
    Ok(match rows.iter().any(run::has_failed) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Runs the chosen workloads or reads their rows, prints the tables, and writes the
/// files that the command line names.
fn compare(args: &Args, effort: Effort) -> Result<Vec<Row>, Box<dyn Error>> {
    let rows = match args.from.is_empty() {
        true => measured(args, effort)?,
        false => stored(&args.from)?,
    };
    match args.table {
        Some(Which::Front) => println!("{}", report::front(&rows)),
        Some(Which::Targets) => println!("{}", report::targets(&rows)),
        Some(Which::Behind) => println!("{}", report::behind(&rows)),
        Some(Which::All) => println!("{}", report::all(&rows)),
        None => {}
    }
    if let Some(file) = &args.json {
        fs::write(file, report::json(&rows)?)?;
    }
    if let Some(directory) = &args.plot {
        fs::create_dir_all(directory)?;
        report::plots(directory, &rows)?;
    }
    Ok(rows)
}

/// Runs the chosen workloads, and prints a table after each unless another one is wanted.
fn measured(args: &Args, effort: Effort) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for workload in args.chosen() {
        let found = run::interleaved(workload, effort)?;
        if args.table.is_none() {
            println!("{}", report::table(workload, &found));
        }
        rows.extend(found);
    }
    Ok(rows)
}

/// Returns the rows of all files, in their order.
fn stored(files: &[PathBuf]) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for file in files {
        rows.extend(report::read(&fs::read_to_string(file)?)?);
    }
    Ok(rows)
}
