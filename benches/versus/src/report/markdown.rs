//! The tables of docs/PERFORMANCE.md, in Markdown: ten rows that users ask about, and
//! all rows. Footnotes say what a rival does not promise.

use std::collections::BTreeSet;

use super::answer::{Answer, Question, label};
use super::asked::{ASKED, best};
use super::table::number;
use super::views::in_order;
use crate::args::Workload;
use crate::case::{Row, Summary};
use crate::rivals::promises::{Lack, lacks};

/// Returns the table of ten rows. A row that was not measured says so.
pub fn front(rows: &[Row]) -> String {
    let answers: Vec<Answer<'_>> = rows.iter().filter_map(Answer::of).collect();
    let mut notes = Notes::default();
    let mut lines = vec![
        "| | tickwheel | best rival that promises as much | best rival that promises less |".into(),
        "|---|--:|--:|--:|".into(),
    ];
    for asked in &ASKED {
        let cells = match asked.answer(&answers) {
            Some(ours) => {
                let rivals = ours.rivals(&answers);
                let equal = named(best(&rivals, true), &mut notes);
                let less = named(best(&rivals, false), &mut notes);
                format!("**{}** | {equal} | {less}", figure(ours))
            }
            None => "not measured | – | –".into(),
        };
        lines.push(format!("| {} | {cells} |", asked.question));
    }
    finished(lines, &notes)
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
    let mut notes = Notes {
        prefix: format!("{workload}-"),
        ..Notes::default()
    };
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
            let is_ours = |answer: &&Answer<'_>| {
                answer.row.engine.starts_with("tickwheel") && answer.row.thread_safe == thread_safe
            };
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

/// Returns a median with the fastest and the slowest round, and the unit.
fn figure(answer: &Answer<'_>) -> String {
    let Summary {
        median,
        min,
        max,
        unit,
        ..
    } = answer.summary;
    let space = if unit.is_empty() { "" } else { " " };
    match min == max {
        true => format!("{}{space}{unit}", number(*median)),
        false => format!(
            "{} ({}–{}){space}{unit}",
            number(*median),
            number(*min),
            number(*max)
        ),
    }
}

/// Returns a figure of tickwheel, with what took part.
fn short(answer: &Answer<'_>) -> String {
    let name = answer.row.engine.trim_start_matches("tickwheel ");
    format!("{} {name}", figure(answer))
}

fn named(rival: Option<&Answer<'_>>, notes: &mut Notes) -> String {
    let Some(rival) = rival else {
        return "–".into();
    };
    let engine = rival.row.engine;
    format!("{} {engine}{}", figure(rival), notes.mark(engine))
}

/// The footnotes of a table.
#[derive(Default)]
struct Notes {
    prefix: String,
    engines: BTreeSet<&'static str>,
}

impl Notes {
    /// Notes an engine, and returns the mark of its footnote.
    fn mark(&mut self, engine: &'static str) -> String {
        if lacks(engine).is_empty() {
            return String::new();
        }
        self.engines.insert(engine);
        format!("[^{}{}]", self.prefix, anchor(engine))
    }

    fn text(&self, engine: &str) -> String {
        let lacks: Vec<&str> = lacks(engine).iter().copied().map(Lack::text).collect();
        let anchor = anchor(engine);
        format!(
            "[^{}{anchor}]: {engine}: {}.",
            self.prefix,
            lacks.join("; ")
        )
    }
}

/// Returns a name as a footnote can have it.
fn anchor(engine: &str) -> String {
    let plain = |letter: char| {
        if letter.is_alphanumeric() {
            letter
        } else {
            '-'
        }
    };
    engine.to_lowercase().chars().map(plain).collect()
}

fn finished(mut lines: Vec<String>, notes: &Notes) -> String {
    if !notes.engines.is_empty() {
        lines.push(String::new());
        lines.extend(notes.engines.iter().map(|engine| notes.text(engine)));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::asked::WHEEL;
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
            | **10.0 (9.0–12.0) ns** | 90.0 ns BTreeMap | 8.0 ns tm-wheel[^tm-wheel] |";
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
}
