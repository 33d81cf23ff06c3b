//! The command line.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;

use crate::fault::Faults;
use crate::plan::Kind;

/// Runs random rounds against tickwheel until the time is over, and fails if
/// any promise was broken.
#[derive(Parser)]
#[command(name = "stress")]
pub struct Args {
    /// What the plan of every round follows from; from the clock if left out.
    #[arg(long)]
    seed: Option<u64>,

    /// For how long new rounds are begun.
    #[arg(long, default_value_t = 30)]
    pub seconds: u64,

    /// How many threads submit in a round, or are hostile in a busy one; two to
    /// six, or eight for each processor, if left out.
    #[arg(long)]
    pub threads: Option<usize>,

    /// Which faults there may be: a list of names, `all` or `none`.
    #[arg(long, default_value = "all")]
    pub faults: Faults,

    /// Only rounds of this kind.
    #[arg(long)]
    pub kind: Option<Kind>,

    /// Prints how long calls took in each busy round.
    #[arg(long)]
    pub figures: bool,

    /// The number of the first round.
    #[arg(long, default_value_t = 0)]
    pub from: u64,
}

impl Args {
    pub fn seed(&self) -> u64 {
        let nanos = || SystemTime::now().duration_since(UNIX_EPOCH);
        let of_now = || nanos().map_or(1, |since| since.subsec_nanos().into());
        self.seed.unwrap_or_else(of_now)
    }
}
