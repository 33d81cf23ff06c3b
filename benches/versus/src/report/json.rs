//! The rows as JSON.

use serde::Serialize;

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

/// A list of all rows.
pub fn json(rows: &[Row]) -> serde_json::Result<String> {
    let lines: Vec<Line<'_>> = rows.iter().map(Line::of).collect();
    serde_json::to_string_pretty(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Workload;
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
    fn a_row_without_an_answer_says_why() {
        let expected = concat!(
            r#"{"workload":"pair-clock","engine":"floor","thread_safe":false,"#,
            r#""threads":1,"size":1024,"note":"one owner"}"#
        );
        assert_eq!(line(Err("one owner")), expected);
    }
}
