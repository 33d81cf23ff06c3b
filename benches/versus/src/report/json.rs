//! The rows as JSON.

use serde::{Deserialize, Serialize};

use crate::args::Workload;
use crate::case::{Row, Summary};

/// A row with its figures, or with a note that says why there are none.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    row: &'a Row,
    #[serde(flatten)]
    summary: Option<&'a Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

impl<'a> Line<'a> {
    fn of(row: &'a Row) -> Line<'a> {
        Line {
            row,
            summary: row.outcome.as_ref().ok(),
            note: row.outcome.as_ref().err().copied(),
        }
    }
}

/// A line as a file has it.
#[derive(Deserialize)]
struct Stored {
    workload: Workload,
    engine: String,
    thread_safe: bool,
    threads: usize,
    size: usize,
    #[serde(flatten)]
    summary: Option<Summary>,
    note: Option<String>,
}

/// Returns the rows of a file that [`json`] has written.
pub fn read(text: &str) -> serde_json::Result<Vec<Row>> {
    let stored: Vec<Stored> = serde_json::from_str(text)?;
    Ok(stored.into_iter().map(Stored::into_row).collect())
}

impl Stored {
    fn into_row(self) -> Row {
        let note = || forever(self.note.unwrap_or_default());
        Row {
            workload: self.workload,
            engine: forever(self.engine),
            thread_safe: self.thread_safe,
            threads: self.threads,
            size: self.size,
            outcome: self.summary.ok_or_else(note),
        }
    }
}

/// Names and notes live as long as the program, which reads one file.
fn forever(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// A list of all rows.
pub fn json(rows: &[Row]) -> serde_json::Result<String> {
    let lines: Vec<Line<'_>> = rows.iter().map(Line::of).collect();
    serde_json::to_string_pretty(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Reading;

    fn line(outcome: Result<Summary, &'static str>) -> String {
        let row = Row {
            workload: Workload::PairClock,
            engine: "floor",
            thread_safe: false,
            threads: 1,
            size: 1_024,
            outcome,
        };
        serde_json::to_string(&Line::of(&row)).unwrap()
    }

    #[test]
    fn a_row_has_just_these_fields() {
        let summary = Summary::of(&[&Reading::new("in flight", "ns", 8.5)]);
        let expected = concat!(
            r#"{"workload":"pair-clock","engine":"floor","thread_safe":false,"#,
            r#""threads":1,"size":1024,"metric":"in flight","unit":"ns","#,
            r#""median":8.5,"min":8.5,"max":8.5,"rounds":1}"#
        );
        assert_eq!(line(summary.ok_or("nothing")), expected);
    }

    #[test]
    fn a_file_of_rows_can_be_read_again() {
        let row = |outcome| Row {
            workload: Workload::Pair,
            engine: "floor",
            thread_safe: true,
            threads: 2,
            size: 5,
            outcome,
        };
        let summary = Summary::of(&[&Reading::new("in flight", "ns", 8.5)]);
        let rows = [row(summary.ok_or("nothing")), row(Err("one owner"))];
        let written = json(&rows).unwrap();
        assert_eq!(json(&read(&written).unwrap()).unwrap(), written);
    }

    #[test]
    fn a_row_without_an_answer_says_why() {
        let expected = concat!(
            r#"{"workload":"pair-clock","engine":"floor","thread_safe":false,"#,
            r#""threads":1,"size":1024,"note":"one owner"}"#
        );
        assert_eq!(line(Err("one owner")), expected);
    }
}
