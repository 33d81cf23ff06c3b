//! The table on the terminal.

use comfy_table::{CellAlignment, Table, presets};

use super::answer::{Answer, label};
use super::views::in_order;
use crate::args::Workload;
use crate::case::Row;

const HEADER: [&str; 10] = [
    "metric",
    "threads",
    "size",
    "engine",
    "median",
    "min – max",
    "unit",
    "/ best rival",
    "fastest rounds",
    "processors",
];

/// Columns of numbers.
const RIGHT: [usize; 6] = [1, 2, 4, 5, 7, 8];

/// Returns the table of one workload. Rows that answer the same question stand
/// together, the fastest first. The last columns are ratios to the best rival of
/// the same kind, below one if faster: of the medians, and of the fastest rounds,
/// which vary less on a machine that is slow now and then.
pub fn table(workload: Workload, rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(HEADER);
    for column in RIGHT {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut answers: Vec<Answer<'_>> = rows.iter().filter_map(Answer::of).collect();
    answers.sort_by(|a, b| {
        let by_question = a.question().cmp(&b.question());
        by_question.then(a.summary.median.total_cmp(&b.summary.median))
    });
    let mut last = None;
    for answer in &answers {
        let question = answer.question();
        let is_new = last.replace(question) != Some(question);
        table.add_row(cells(answer, &answers, is_new));
    }
    format!("\n{workload}\n{table}\n{}", notes(rows))
}

/// Returns the cells of a row. Cells that repeat the row above are blank.
fn cells(answer: &Answer<'_>, answers: &[Answer<'_>], is_new: bool) -> Vec<String> {
    let shared = |text: String| if is_new { text } else { String::new() };
    let summary = answer.summary;
    let ratio = |figure| match answer.ratio(answers, figure) {
        Some(ratio) => format!("{ratio:.2}"),
        None => "–".into(),
    };
    vec![
        shared(summary.metric.clone()),
        shared(answer.row.threads.to_string()),
        shared(label(answer.row.size)),
        answer.row.engine.into(),
        number(summary.median),
        format!("{} – {}", number(summary.min), number(summary.max)),
        summary.unit.clone(),
        ratio(|summary| summary.median),
        ratio(|summary| summary.min),
        summary.processors.map_or("–".into(), |had| had.to_string()),
    ]
}

/// Formats a value with about three digits.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Returns the engines that could not take part, with their reasons.
fn notes(rows: &[Row]) -> String {
    let note = |row: &Row| {
        let reason = row.outcome.as_ref().err()?;
        Some(format!("{}: {reason}\n", row.engine))
    };
    in_order(rows.iter().filter_map(note)).concat()
}
