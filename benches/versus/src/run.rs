//! Runs cases round by round, so that a noisy minute hits all of them alike.

use indicatif::{ProgressBar, ProgressStyle};

use crate::case::{Case, Reading, Row, Summary, Work};

/// Every case once per round, beginning with another one each time: who runs
/// first has the coldest caches.
pub fn interleaved(workload: &'static str, cases: &[Case], rounds: usize) -> Vec<Row> {
    let progress = progress(workload, cases, rounds);
    let mut found: Vec<Vec<Vec<Reading>>> = cases.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..cases.len() {
            let index = (turn + round) % cases.len();
            let case = &cases[index];
            if let Work::Measure(measure) = &case.work {
                progress.set_message(format!("{} {}", case.engine, case.size));
                found[index].push(measure());
                progress.inc(1);
            }
        }
    }
    progress.finish_and_clear();
    let per_case = cases.iter().zip(found);
    per_case
        .flat_map(|(case, found)| rows(workload, case, found))
        .collect()
}

fn progress(workload: &'static str, cases: &[Case], rounds: usize) -> ProgressBar {
    let measured = |case: &&Case| matches!(case.work, Work::Measure(_));
    let runs = cases.iter().filter(measured).count() * rounds;
    let style = ProgressStyle::with_template("{prefix:12} {bar:40} {pos}/{len} {msg}");
    ProgressBar::new(runs as u64)
        .with_prefix(workload)
        .with_style(style.expect("the template is a literal"))
}

fn rows(workload: &'static str, case: &Case, found: Vec<Vec<Reading>>) -> Vec<Row> {
    let row = |outcome| Row {
        workload,
        engine: case.engine,
        thread_safe: case.thread_safe,
        threads: case.threads,
        size: case.size,
        outcome,
    };
    match case.work {
        Work::Cannot(reason) => vec![row(Err(reason))],
        Work::Measure(_) => summaries(&found)
            .into_iter()
            .map(|summary| row(Ok(summary)))
            .collect(),
    }
}

/// One summary per metric, from the readings of all rounds.
fn summaries(rounds: &[Vec<Reading>]) -> Vec<Summary> {
    let Some(first) = rounds.first() else {
        return Vec::new();
    };
    let summary = |(index, reading): (usize, &Reading)| {
        let values = rounds.iter().map(|round| round[index].value).collect();
        Summary::of(reading.metric, reading.unit, values)
    };
    first.iter().enumerate().map(summary).collect()
}
