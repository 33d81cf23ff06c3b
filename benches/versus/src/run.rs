//! Runs cases round by round, so that a noisy minute hits all of them alike.

use std::io;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Workload;
use crate::case::{Case, Reading, Row, Summary, Work};
use crate::child::{self, Failed};
use crate::effort::Effort;
use crate::workloads;

/// What stands in the row of an engine whose process failed.
const FAILED: &str = "its process failed: the terminal has its last words";

/// The readings of each round so far, or no more of them: who failed once is
/// not asked again.
type Found = Result<Vec<Vec<Reading>>, Failed>;

/// Every case once per round, beginning with another one each time, so that
/// nobody always runs after the same neighbour.
pub fn interleaved(workload: Workload, effort: Effort) -> io::Result<Vec<Row>> {
    let cases = workloads::cases(workload, effort);
    let rounds = effort.rounds(workload);
    let progress = progress(workload.name());
    let mut found: Vec<Found> = cases.iter().map(|_| Ok(Vec::new())).collect();
    let (begun, mut round) = (Instant::now(), 0);
    while rounds.go_on(round, begun.elapsed()) {
        let of_a_round = cases.iter().filter(|case| case.is_measured()).count();
        progress.set_length((of_a_round * rounds.least.max(round + 1)) as u64);
        for turn in 0..cases.len() {
            let index = (turn + round) % cases.len();
            if cases[index].is_measured() {
                progress.set_message(cases[index].to_string());
                another_round(&mut found[index], || {
                    child::measure(workload, effort, index)
                })?;
                progress.inc(1);
            }
        }
        round += 1;
    }
    progress.finish_and_clear();
    let per_case = cases.iter().zip(found);
    let rows = per_case.flat_map(|(case, found)| rows(workload.name(), case, found));
    Ok(rows.collect())
}

fn another_round(
    rounds: &mut Found,
    measure: impl FnOnce() -> io::Result<Result<Vec<Reading>, Failed>>,
) -> io::Result<()> {
    if let Ok(readings) = rounds {
        match measure()? {
            Ok(reading) => readings.push(reading),
            Err(failed) => *rounds = Err(failed),
        }
    }
    Ok(())
}

/// Whether an engine's process failed, which should never be.
pub fn has_failed(row: &Row) -> bool {
    row.outcome.as_ref().err() == Some(&FAILED)
}

fn progress(workload: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:12} {bar:40} {pos}/{len} {msg}");
    ProgressBar::new(0)
        .with_prefix(workload)
        .with_style(style.expect("the template is a literal"))
}

fn rows(workload: &'static str, case: &Case, found: Found) -> Vec<Row> {
    let row = |outcome| Row {
        workload,
        engine: case.engine,
        thread_safe: case.thread_safe,
        threads: case.threads,
        size: case.size,
        outcome,
    };
    match (&case.work, found) {
        (Work::Cannot(reason), _) => vec![row(Err(reason))],
        (Work::Measure(_), Err(Failed)) => vec![row(Err(FAILED))],
        (Work::Measure(_), Ok(rounds)) => {
            let summaries = summaries(&rounds).into_iter();
            summaries.map(|summary| row(Ok(summary))).collect()
        }
    }
}

/// One summary per metric, from the readings of all rounds.
fn summaries(rounds: &[Vec<Reading>]) -> Vec<Summary> {
    let Some(first) = rounds.first() else {
        return Vec::new();
    };
    let summary = |(index, reading): (usize, &Reading)| {
        let values = rounds.iter().map(|round| round[index].value).collect();
        Summary::of(&reading.metric, &reading.unit, values)
    };
    first.iter().enumerate().map(summary).collect()
}
