//! Runs cases round by round, so that a noisy minute affects all of them alike, and each
//! round in a process of its own.
//!
//! A round leaves state behind that would disturb the next one: free pieces of memory,
//! which the allocator joins at a later growth; a runtime's clock, which stays slow after it
//! was paused once; threads that are still ending.

use std::io::{self, Error};
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::case::{Case, Effort, Row};

/// The longest time of a round. A round that takes longer hangs, and fails.
const LONGEST: Duration = Duration::from_secs(900);

/// After the first round of a case, no round begins once all have taken this long. Some
/// rivals need a minute for one round of ten million timers.
const LIMIT: Duration = Duration::from_secs(10);

/// Contenders run up to fifteen times until the rounds of one have taken this long on average.
const PATIENCE: Duration = Duration::from_millis(2_500);

/// Whether cases run again after `done` rounds that took `elapsed`. A round of milliseconds
/// says little on a machine that is slow for seconds at a time, so short ones run more often.
fn again(effort: Effort, done: usize, elapsed: Duration) -> bool {
    match done {
        0 => true,
        _ if effort == Effort::Check => false,
        1 | 2 => elapsed < LIMIT,
        _ => done < 15 && elapsed < PATIENCE,
    }
}

/// Measures the wanted cases, workload by workload. Each round begins with another case, so
/// that no case always runs after the same one.
pub fn interleaved(
    cases: &[Case],
    wants: impl Fn(&Case) -> bool,
    effort: Effort,
) -> io::Result<Vec<Row>> {
    let wanted: Vec<usize> = (0..cases.len()).filter(|&it| wants(&cases[it])).collect();
    let style = ProgressStyle::with_template("{elapsed} {bar:40} {pos}/{len} {msg}");
    let progress =
        ProgressBar::new(wanted.len() as u64).with_style(style.expect("the template is a literal"));
    let mut rows = Vec::new();
    for workload in wanted.chunk_by(|&a, &b| cases[a].workload == cases[b].workload) {
        let mut rounds: Vec<Vec<Vec<f64>>> = vec![Vec::new(); workload.len()];
        let mut elapsed = vec![Duration::ZERO; workload.len()];
        // All that do the same work get the same number of rounds: more would find a faster one.
        let mean = |it: usize, elapsed: &[Duration]| {
            let same = (0..workload.len())
                .filter(|&other| cases[workload[other]].asks_the_same(&cases[workload[it]]));
            let elapsed: Vec<Duration> = same.map(|other| elapsed[other]).collect();
            elapsed.iter().sum::<Duration>() / elapsed.len() as u32
        };
        for round in 0.. {
            let due: Vec<usize> = (0..workload.len())
                .map(|turn| (turn + round) % workload.len())
                .filter(|&it| rounds[it].len() == round && again(effort, round, mean(it, &elapsed)))
                .collect();
            for &it in &due {
                let case = &cases[workload[it]];
                progress.set_message(format!("{} {}", case.workload, case.engine));
                let begun = Instant::now();
                rounds[it].push(in_a_process(workload[it], case, effort)?);
                elapsed[it] += begun.elapsed();
                progress.inc(u64::from(round == 0));
            }
            if due.is_empty() {
                break;
            }
        }
        for (&index, rounds) in workload.iter().zip(&rounds) {
            rows.extend(summed_up(&cases[index], rounds));
        }
    }
    progress.finish_and_clear();
    Ok(rows)
}

fn summed_up<'a>(case: &'a Case, rounds: &'a [Vec<f64>]) -> impl Iterator<Item = Row> + 'a {
    let metrics = case.metrics.iter().enumerate();
    metrics.map(move |(index, (metric, unit))| Row {
        workload: case.workload.into(),
        metric: (*metric).into(),
        unit: (*unit).into(),
        threads: case.threads,
        size: case.size,
        engine: case.engine.into(),
        less: case.less.into(),
        rounds: rounds.iter().map(|figures| figures[index]).collect(),
    })
}

/// Measures a case once, in a new process. `index` is its place among all cases, which is
/// the same in every process.
fn in_a_process(index: usize, case: &Case, effort: Effort) -> io::Result<Vec<f64>> {
    // The running program, even if it has been built anew since.
    let mut command = Command::new("/proc/self/exe");
    command.args(["--case", &index.to_string()]);
    command.args(match effort {
        Effort::Check => Some("--check"),
        Effort::Quick => None,
        Effort::Full => Some("--full"),
    });
    let ended = command.stderr(Stdio::inherit()).output()?;
    let figures: Option<Vec<f64>> = serde_json::from_slice(&ended.stdout).ok();
    match figures {
        Some(figures) if ended.status.success() && figures.len() == case.metrics.len() => {
            Ok(figures)
        }
        _ => {
            let what = format!("{} of {} {}", case.workload, case.engine, case.size);
            Err(Error::other(format!("{what}: {}", ended.status)))
        }
    }
}

/// The other end of [`in_a_process`]: measures, and prints the figures.
pub fn child(case: &Case) -> io::Result<()> {
    thread::spawn(|| {
        thread::sleep(LONGEST);
        eprintln!("the round hangs");
        process::exit(1);
    });
    serde_json::to_writer(io::stdout(), &(case.measure)()).map_err(Error::from)
}
