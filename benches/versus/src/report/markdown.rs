//! Two tables in Markdown: the ten rows of docs/PERFORMANCE.md, and all rows, as the
//! files in `results` have them.

use super::answer::{Answer, Question, label};
use super::asked::{ASKED, best};
use super::notes::{Notes, figure, finished, named};
use super::views::in_order;
use crate::args::Workload;
use crate::case::Row;

/// Returns the table of ten rows. A row that was not measured says so.
pub fn front(rows: &[Row]) -> String {
    let answers: Vec<Answer<'_>> = rows.iter().filter_map(Answer::of).collect();
    let mut notes = Notes::default();
    let mut lines = vec![
        "| | tickwheel | best rival that promises as much | best rival that promises less |".into(),
        "|---|--:|--:|--:|".into(),
    ];
    for asked in &ASKED {
        let cells = match asked.place.find(&answers) {
            Some(ours) => {
                let rivals = ours.rivals(&answers);
                let [equal, less] = [true, false].map(|is_equal| best(&rivals, is_equal));
                let first = first_of(ours, [equal, less]);
                let (equal, less) = (named(equal, &mut notes), named(less, &mut notes));
                format!("{first} | {equal} | {less}")
            }
            None => "not measured | – | –".into(),
        };
        lines.push(format!("| {} | {cells} |", asked.question));
    }
    finished(lines, &notes)
}

/// Returns our figure, in bold unless a rival's median is lower.
fn first_of(ours: &Answer<'_>, rivals: [Option<&Answer<'_>>; 2]) -> String {
    let mut rivals = rivals.iter().flatten();
    match rivals.any(|rival| rival.summary.median < ours.summary.median) {
        true => figure(ours),
        false => format!("**{}**", figure(ours)),
    }
}

/// Returns a table of each workload, with a line for each question.
pub fn all(rows: &[Row]) -> String {
    let mut tables = Vec::new();
    for workload in in_order(rows.iter().map(|row| row.workload)) {
        let of_it = |answer: &Answer<'_>| answer.row.workload == workload;
        let answers: Vec<Answer<'_>> = rows.iter().filter_map(Answer::of).filter(of_it).collect();
        if !answers.is_empty() {
            tables.push(format!("### `{workload}`\n\n{}", one(&answers, workload)));
        }
    }
    tables.join("\n")
}

fn one(answers: &[Answer<'_>], workload: Workload) -> String {
    let mut notes = Notes::new(format!("{workload}-"));
    let mut lines = vec![
        "| metric | threads | size | tickwheel | floor | best rival that promises as much | best rival that promises less |".into(),
        "|---|--:|--:|--:|--:|--:|--:|".into(),
    ];
    let questions: Vec<Question<'_>> = in_order(answers.iter().map(Answer::question));
    for question in questions {
        // The wheel's rivals may have one owner. Those of the engine may not.
        for thread_safe in [false, true] {
            let all = || {
                answers
                    .iter()
                    .filter(|answer| answer.question() == question)
            };
            let is_ours =
                |answer: &&Answer<'_>| answer.is_ours() && answer.row.thread_safe == thread_safe;
            let ours: Vec<&Answer<'_>> = all().filter(is_ours).collect();
            let Some(first) = ours.first() else { continue };
            let floor = all().find(|answer| answer.row.engine.starts_with("floor"));
            let rivals = first.rivals(answers);
            let figures: Vec<String> = ours.iter().map(|answer| short(answer)).collect();
            lines.push(format!(
                "| {} | {} | {} | {} | {} | {} | {} |",
                first.summary.metric,
                first.row.threads,
                label(first.row.size),
                figures.join("<br>"),
                floor.map_or("–".into(), figure),
                named(best(&rivals, true), &mut notes),
                named(best(&rivals, false), &mut notes),
            ));
        }
    }
    finished(lines, &notes)
}

/// Returns a figure of tickwheel, with what took part.
fn short(answer: &Answer<'_>) -> String {
    let name = answer.row.engine.trim_start_matches("tickwheel ");
    format!("{} {name}", figure(answer))
}

#[cfg(test)]
mod tests {
    use super::super::place::WHEEL;
    use super::super::samples::row;
    use super::*;

    #[test]
    fn a_rival_that_promises_less_stands_apart_with_a_footnote() {
        let rows = [
            row(WHEEL, &[10.0, 9.0, 12.0]),
            row("tm-wheel", &[8.0]),
            row("timer-queue", &[9.0]),
            row("BTreeMap", &[90.0]),
            row("BinaryHeap, lazy", &[1.0]),
        ];
        let expected = "| Cancel a timer and schedule another, one owner \
            | 10.0 (9.0–12.0) ns | 90.0 ns BTreeMap | 8.0 ns tm-wheel[^tm-wheel] |";
        let front = front(&rows);
        assert_eq!(front.lines().nth(2), Some(expected));
        assert!(front.contains("| The same, two threads | not measured | – | – |"));
        assert!(front.ends_with("\n[^tm-wheel]: tm-wheel: no order among equal deadlines.\n"));
        let all = all(&rows);
        assert!(all.starts_with("### `pair`\n\n| metric |"), "{all}");
        assert!(
            all.contains(
                "| in flight | 1 | 1k | 10.0 (9.0–12.0) ns wheel | – | 90.0 ns BTreeMap |"
            )
        );
    }

    #[test]
    fn a_figure_is_in_bold_unless_a_rival_is_ahead() {
        let rows = |rival: f64| [row(WHEEL, &[10.0]), row("BTreeMap", &[rival])];
        assert!(front(&rows(11.0)).contains("| **10.0 ns** | 11.0 ns BTreeMap |"));
        assert!(front(&rows(9.0)).contains("| 10.0 ns | 9.0 ns BTreeMap |"));
    }
}
