//! The same work on tickwheel, on other timer crates and on the floors, side
//! by side: interleaved rounds, medians and their spread.
//!
//! Absolute times say little on a machine that is not quiet; ratios within one
//! run are what to quote.

mod allocator;
mod args;
mod case;
mod effort;
mod report;
mod rival;
mod rivals;
mod rng;
mod run;
mod stopwatch;
mod workloads;

use std::error::Error;
use std::fs;

use clap::Parser;

use args::Args;
use effort::Effort;

#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let effort = Effort { quick: args.quick };
    let mut rows = Vec::new();
    for workload in args.chosen() {
        let cases = workloads::cases(workload, effort);
        let found = run::interleaved(workload.name(), &cases, effort.rounds());
        println!("{}", report::table(workload.name(), &found));
        rows.extend(found);
    }
    if let Some(file) = &args.json {
        fs::write(file, report::json(&rows)?)?;
    }
    if let Some(directory) = &args.plot {
        fs::create_dir_all(directory)?;
        report::plots(directory, &rows)?;
    }
    Ok(())
}
