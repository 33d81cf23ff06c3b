//! The command line.

use std::fmt;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};

/// Runs the same work on tickwheel and on its rivals, interleaved, and prints
/// medians side by side.
#[derive(Parser)]
#[command(name = "versus")]
pub struct Args {
    /// Runs only this workload. May be given several times.
    #[arg(long = "workload", value_name = "NAME")]
    pub workloads: Vec<Workload>,

    /// Runs fewer rounds and smaller sizes: all workloads in about eight minutes.
    #[arg(long)]
    pub quick: bool,

    /// Prints these tables in Markdown instead: `front`, the ten rows that users ask
    /// about, `targets`, the rows in which a rival that promises as much is ahead
    /// (`behind`), or `all`.
    #[arg(long, value_name = "WHICH")]
    pub table: Option<Which>,

    /// Measures nothing, and takes the rows from files that `--json` has written. May be
    /// given several times.
    #[arg(long, value_name = "FILE", conflicts_with = "workloads")]
    pub from: Vec<PathBuf>,

    /// Writes the rows as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Writes one SVG plot per workload into this directory, and one of the ten rows that
    /// users ask about, `front.svg`.
    #[arg(long, value_name = "DIR")]
    pub plot: Option<PathBuf>,

    /// Measures one case of one workload, once and in this process. Every round is
    /// such a run; a profiler needs it as well.
    #[arg(long, value_name = "INDEX", requires = "workloads", hide = true)]
    pub only: Option<usize>,
}

impl Args {
    /// Returns the workloads to run. Defaults to all.
    pub fn chosen(&self) -> Vec<Workload> {
        match self.workloads.is_empty() {
            true => Workload::value_variants().to_vec(),
            false => self.workloads.clone(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Which {
    Front,
    Targets,
    Behind,
    All,
}

/// In the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    Pair,
    PairClock,
    Churn,
    Closures,
    Remote,
    FillCancel,
    Expire,
    Postpone,
    Reuse,
    Purgatory,
    Server,
    Leak,
    Lateness,
    Memory,
    Idle,
    CatchUp,
    Uptime,
    Tail,
    Probe,
    Shards,
    Ticker,
    Cores,
    Sleep,
    Timeout,
    Reset,
    Wake,
    AsyncLateness,
    Tasks,
}

/// Its name on the command line, and in every row.
impl fmt::Display for Workload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        out.pad(name.as_ref().map_or("", PossibleValue::get_name))
    }
}
