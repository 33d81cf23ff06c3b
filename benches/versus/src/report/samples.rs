//! Measured rows for the tests of the reports.

use crate::args::Workload;
use crate::case::{Reading, Row, Summary};

/// Returns a row of the workload "pair" with a round for each value.
pub fn row(engine: &'static str, values: &[f64]) -> Row {
    let readings: Vec<Reading> = values
        .iter()
        .map(|&value| Reading::new("in flight", "ns", value))
        .collect();
    let rounds: Vec<&Reading> = readings.iter().collect();
    Row {
        workload: Workload::Pair,
        engine,
        thread_safe: false,
        threads: 1,
        size: 1_024,
        outcome: Summary::of(&rounds).ok_or("nothing"),
    }
}
