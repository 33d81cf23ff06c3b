//! What tickwheel aims at, and how far it has come.

use super::answer::{Answer, label};
use super::notes::{Notes, finished};
use super::place::{ENGINE, MANY, Place, SLEEP, TASKS, WHEEL, place};
use super::table::number;
use crate::args::Workload;
use crate::case::{Row, Summary};

/// What a row should be at most.
enum Aim {
    /// A figure in the unit of the row.
    Figure(f64),
    /// A share of a rival's figure.
    Of(f64, &'static str),
    /// A share of the figure of the best rival, whatever it promises.
    OfBest(f64),
}

use Aim::{Figure, Of, OfBest};

const TOKIO: &str = "tokio Sleep";
const MAP: &str = "BTreeMap";
const DRIVEN: &str = "tickwheel sleep, driven";

/// A row that was not measured, because its size is that of a longer run, is left out.
#[rustfmt::skip]
const TARGETS: [(Place, Aim); 66] = [
    (place(Workload::Pair, "in flight", (1_024, 1), WHEEL), OfBest(0.77)),
    (place(Workload::Pair, "in flight", (65_536, 1), WHEEL), OfBest(0.77)),
    (place(Workload::Pair, "background", (1_000_000, 1), WHEEL), OfBest(0.77)),
    (place(Workload::Pair, "in flight", (1_024, 1), ENGINE), Of(0.25, TOKIO)),
    (place(Workload::Pair, "in flight", (1_024, 2), ENGINE), Of(0.25, TOKIO)),
    (place(Workload::Pair, "in flight", (1_024, 8), ENGINE), Of(0.25, TOKIO)),
    (place(Workload::Pair, "background", (100_000, 1), ENGINE), Of(0.25, TOKIO)),
    (place(Workload::Pair, "background", (1_000_000, 1), ENGINE), Of(0.25, TOKIO)),
    (place(Workload::PairClock, "in flight", (1_024, 1), ENGINE), Figure(30.0)),
    (place(Workload::Reuse, "request", (1_000, 1), WHEEL), Figure(5.0)),
    (place(Workload::Reuse, "request, engine", (1_000, 1), ENGINE), Figure(15.0)),
    (place(Workload::Closures, "pair", (1_024, 1), TASKS), Figure(60.0)),
    (place(Workload::Closures, "pair, named", (1_024, 1), TASKS), Figure(150.0)),
    (place(Workload::Closures, "expire and run", (100_000, 1), TASKS), Figure(200.0)),
    (place(Workload::Closures, "live", (1_000_000, 1), TASKS), Figure(72.0)),
    (place(Workload::Expire, "one tick, CPU of the engine", (100_000, 1), MANY), Of(1.0, TOKIO)),
    (place(Workload::Expire, "spread, CPU of the engine", (100_000, 1), MANY), Figure(120.0)),
    (place(Workload::Expire, "spread", (1_000, 1), WHEEL), Of(1.0, MAP)),
    (place(Workload::Expire, "spread", (10_000, 1), WHEEL), Of(1.0, MAP)),
    (place(Workload::Expire, "spread", (100_000, 1), WHEEL), Of(1.0, MAP)),
    (place(Workload::Expire, "spread", (1_000_000, 1), WHEEL), Of(1.0, MAP)),
    (place(Workload::Expire, "spread", (10_000_000, 1), WHEEL), Of(1.0, MAP)),
    (place(Workload::Expire, "one tick", (1_000_000, 1), WHEEL), OfBest(1.0)),
    (place(Workload::Uptime, "level wraps", (1_000, 1), WHEEL), OfBest(1.0)),
    (place(Workload::FillCancel, "fill", (1_000_000, 1), WHEEL), OfBest(1.0)),
    (place(Workload::FillCancel, "cancel", (1_000_000, 1), WHEEL), Figure(45.0)),
    (place(Workload::Churn, "pair", (65_536, 1), WHEEL), OfBest(1.0)),
    (place(Workload::Purgatory, "request", (100_000, 1), WHEEL), OfBest(1.0)),
    (place(Workload::Purgatory, "request", (1_000_000, 1), WHEEL), OfBest(1.0)),
    (place(Workload::Postpone, "earlier", (1_000, 1), WHEEL), Figure(12.0)),
    (place(Workload::Postpone, "earlier", (1_000_000, 1), WHEEL), Figure(190.0)),
    (place(Workload::Postpone, "later", (1_000, 1), WHEEL), Of(0.1, "tokio-util DelayQueue")),
    (place(Workload::Remote, "pair", (256, 2), ENGINE), Figure(60.0)),
    (place(Workload::Remote, "pair, many at once", (256, 2), ENGINE), Figure(40.0)),
    (place(Workload::Memory, "live", (1_000, 1), ENGINE), Figure(133.0)),
    (place(Workload::Memory, "live", (10_000, 1), ENGINE), Figure(53.0)),
    (place(Workload::Memory, "live", (1_000_000, 1), ENGINE), Figure(36.0)),
    (place(Workload::Lateness, "p50", (1_000, 1), ENGINE), Figure(600.0)),
    (place(Workload::Lateness, "p99", (1_000, 1), ENGINE), Figure(1_250.0)),
    (place(Workload::Lateness, "p50, 50 µs", (1_000, 1), ENGINE), Figure(125.0)),
    (place(Workload::Lateness, "p99, 50 µs", (1_000, 1), ENGINE), Figure(300.0)),
    (place(Workload::Tail, "expiring, schedule, p99", (200_000, 1), ENGINE), Figure(15_000.0)),
    (place(Workload::Tail, "expiring, schedule, p99.9", (200_000, 1), ENGINE), Figure(100_000.0)),
    (place(Workload::Tail, "expiring, schedule, p99", (1_000_000, 1), ENGINE), Figure(15_000.0)),
    (place(Workload::Tail, "expiring, schedule, p99.9", (1_000_000, 1), ENGINE), Figure(100_000.0)),
    (place(Workload::Sleep, "delay given", (1, 1), SLEEP), Of(0.75, "tokio")),
    (place(Workload::Sleep, "instant given", (1, 1), SLEEP), Of(0.6, "tokio")),
    (place(Workload::Sleep, "instant given", (1, 1), DRIVEN), Of(0.6, "tokio")),
    (place(Workload::Sleep, "delay given", (1, 2), SLEEP), Of(0.33, "tokio")),
    (place(Workload::Sleep, "memory", (200_000, 1), SLEEP), Figure(80.0)),
    (place(Workload::Timeout, "ready at once", (1, 1), SLEEP), Figure(2.0)),
    (place(Workload::Timeout, "pending once", (1, 1), SLEEP), Of(0.65, "tokio")),
    (place(Workload::Tasks, "oneshot", (64, 2), SLEEP), Of(0.33, "tokio")),
    (place(Workload::Tasks, "duplex", (64, 2), SLEEP), Of(0.33, "tokio")),
    (place(Workload::Tasks, "oneshot", (512, 2), SLEEP), Of(0.33, "tokio")),
    (place(Workload::Tasks, "duplex", (512, 2), SLEEP), Of(0.33, "tokio")),
    (place(Workload::Tasks, "oneshot, one processor", (64, 2), SLEEP), Of(0.67, "tokio")),
    (place(Workload::Tasks, "duplex, one processor", (64, 2), SLEEP), Of(0.67, "tokio")),
    (place(Workload::Tasks, "oneshot, one processor", (512, 2), SLEEP), Of(0.67, "tokio")),
    (place(Workload::Tasks, "duplex, one processor", (512, 2), SLEEP), Of(0.67, "tokio")),
    (place(Workload::Wake, "spread", (100_000, 1), SLEEP), Of(0.6, "tokio")),
    (place(Workload::Wake, "one tick", (100_000, 1), SLEEP), Of(1.0, "tokio")),
    (place(Workload::Wake, "tasks that sleep again", (10, 2), DRIVEN), Of(1.3, "tokio")),
    (place(Workload::AsyncLateness, "p50", (500, 2), SLEEP), Of(0.65, "tokio")),
    (place(Workload::AsyncLateness, "p90", (500, 2), SLEEP), Of(0.65, "tokio")),
    (place(Workload::Reuse, "request, engine", (1_000_000, 1), ENGINE), Of(0.25, TOKIO)),
];

/// Returns the table of targets.
pub fn targets(rows: &[Row]) -> String {
    let answers: Vec<Answer<'_>> = rows.iter().filter_map(Answer::of).collect();
    let mut notes = Notes::new("target-");
    let mut lines = vec![
        "| workload | metric | threads | size | tickwheel | target | |".to_owned(),
        "|---|---|--:|--:|--:|--:|---|".to_owned(),
    ];
    for (place, aim) in &TARGETS {
        if let Some(ours) = place.find(&answers) {
            lines.extend(line(ours, aim, &answers, &mut notes));
        }
    }
    finished(lines, &notes)
}

fn line(ours: &Answer<'_>, aim: &Aim, answers: &[Answer<'_>], notes: &mut Notes) -> Option<String> {
    let row = ours.row;
    let (goal, target) = goal(ours, aim, answers, notes)?;
    Some(format!(
        "| `{}` | {} | {} | {} | {} {} {} | {target} | {} |",
        row.workload,
        ours.summary.metric,
        row.threads,
        label(row.size),
        pair(ours.summary),
        ours.summary.unit,
        row.engine.trim_start_matches("tickwheel "),
        verdict(ours.summary, goal),
    ))
}

/// Returns the target in figures for median and fastest round, and in words. Returns `None` if
/// the rival was not measured.
fn goal(
    ours: &Answer<'_>,
    aim: &Aim,
    answers: &[Answer<'_>],
    notes: &mut Notes,
) -> Option<((f64, f64), String)> {
    let rivals = ours.rivals(answers).into_iter();
    let (share, rival) = match aim {
        Figure(most) => {
            let words = format!("{} {}", number(*most), ours.summary.unit);
            return Some(((*most, *most), words));
        }
        Of(share, name) => (
            share,
            rivals.into_iter().find(|rival| rival.row.engine == *name)?,
        ),
        OfBest(share) => {
            let median = |rival: &&Answer<'_>| rival.summary.median;
            let best = rivals.min_by(|a, b| median(a).total_cmp(&median(b)))?;
            (share, best)
        }
    };
    let (theirs, name) = (rival.summary, rival.row.engine);
    let words = format!("{share} of {} {name}{}", pair(theirs), notes.mark(name));
    Some(((share * theirs.median, share * theirs.min), words))
}

/// Returns a median and, in parentheses, the fastest round.
fn pair(summary: &Summary) -> String {
    let Summary { median, min, .. } = summary;
    format!("{} ({})", number(*median), number(*min))
}

fn verdict(ours: &Summary, (median, min): (f64, f64)) -> &'static str {
    match (ours.median <= median, ours.min <= min) {
        (true, true) => "reached",
        (true, false) => "reached by the median",
        (false, true) => "reached by the fastest round",
        (false, false) => "**missed**",
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::row;
    use super::*;

    #[test]
    fn a_target_is_compared_by_median_and_fastest_round() {
        let lines = |ours: &[f64]| {
            let rows = [row(WHEEL, ours), row("tm-wheel", &[13.0, 10.0, 14.0])];
            targets(&rows).lines().nth(2).unwrap().to_owned()
        };
        let expected = "| `pair` | in flight | 1 | 1k | 10.0 (7.0) ns wheel \
            | 0.77 of 13.0 (10.0) tm-wheel[^target-tm-wheel] | reached |";
        assert_eq!(lines(&[10.0, 7.0, 11.0]), expected);
        assert!(lines(&[10.0, 9.0, 11.0]).ends_with("| reached by the median |"));
        assert!(lines(&[11.0, 7.0, 11.0]).ends_with("| reached by the fastest round |"));
        assert!(lines(&[11.0, 9.0, 11.0]).ends_with("| **missed** |"));
    }
}
