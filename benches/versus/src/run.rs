//! Runs cases round by round, so that a noisy minute affects all of them alike.

use std::io;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Workload;
use crate::case::{Case, Reading, Row, Summary, Work};
use crate::child::{self, Failed};
use crate::effort::Effort;
use crate::workloads;

/// The note in the row of an engine whose process failed.
const FAILED: &str = "its process failed: the terminal has its output";

/// The note in the row of a metric without a round that counts.
const NEVER_BOTH: &str = "in no lap did all threads have a processor";

/// The results of a case so far.
#[derive(Default)]
struct Found {
    /// The readings of each round.
    rounds: Vec<Vec<Reading>>,
    /// A case that has failed once does not run again.
    has_failed: bool,
    elapsed: Duration,
}

/// Runs every case once per round. Each round begins with another case, so that
/// no case always runs after the same one. Only short cases take part in the later
/// rounds.
pub fn interleaved(workload: Workload, effort: Effort) -> io::Result<Vec<Row>> {
    let cases = workloads::cases(workload, effort);
    let rounds = effort.rounds(workload);
    let progress = progress(workload, &cases, rounds.least);
    let mut found: Vec<Found> = cases.iter().map(|_| Found::default()).collect();
    for round in 0..rounds.most {
        for turn in 0..cases.len() {
            let index = (turn + round) % cases.len();
            let (case, found) = (&cases[index], &mut found[index]);
            if case.is_measured() && !found.has_failed && rounds.go_on(round, found.elapsed) {
                progress.set_message(case.to_string());
                if round >= rounds.least {
                    progress.inc_length(1);
                }
                another_round(found, || child::measure(workload, effort, index))?;
                progress.inc(1);
            }
        }
    }
    progress.finish_and_clear();
    let per_case = cases.iter().zip(found);
    let rows = per_case.flat_map(|(case, found)| rows(workload, case, found));
    Ok(rows.collect())
}

fn another_round(
    found: &mut Found,
    measure: impl FnOnce() -> io::Result<Result<Vec<Reading>, Failed>>,
) -> io::Result<()> {
    let begun = Instant::now();
    match measure()? {
        Ok(reading) => found.rounds.push(reading),
        Err(Failed) => found.has_failed = true,
    }
    found.elapsed += begun.elapsed();
    Ok(())
}

/// Whether an engine's process failed, which is a defect.
pub fn has_failed(row: &Row) -> bool {
    row.outcome.as_ref().err() == Some(&FAILED)
}

fn progress(workload: Workload, cases: &[Case], least: usize) -> ProgressBar {
    let measured = cases.iter().filter(|case| case.is_measured()).count();
    let style = ProgressStyle::with_template("{prefix:12} {bar:40} {pos}/{len} {msg}");
    ProgressBar::new((measured * least) as u64)
        .with_prefix(workload.to_string())
        .with_style(style.expect("the template is a literal"))
}

fn rows(workload: Workload, case: &Case, found: Found) -> Vec<Row> {
    let row = |outcome| Row {
        workload,
        engine: case.engine,
        thread_safe: case.thread_safe,
        threads: case.threads,
        size: case.size,
        outcome,
    };
    match &case.work {
        Work::Cannot(reason) => vec![row(Err(reason))],
        Work::Measure(_) if found.has_failed => vec![row(Err(FAILED))],
        Work::Measure(_) => {
            let summaries = summaries(&found.rounds).into_iter();
            summaries
                .map(|summary| row(summary.ok_or(NEVER_BOTH)))
                .collect()
        }
    }
}

/// Returns one summary per metric, from the readings of all rounds, or `None` where
/// no round counts.
fn summaries(rounds: &[Vec<Reading>]) -> Vec<Option<Summary>> {
    let metrics = rounds.first().map_or(0, Vec::len);
    let of_metric = |index| {
        let readings: Vec<&Reading> = rounds.iter().map(|round| &round[index]).collect();
        Summary::of(&readings)
    };
    (0..metrics).map(of_metric).collect()
}
